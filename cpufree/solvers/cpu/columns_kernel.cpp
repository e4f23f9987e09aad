#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/solvers/host/dispatch.hpp"

namespace cpufree {

template <class T, int K>
CpuKernel<T, K> cpu_columns_kernel(const SolveSpec& spec) {
  if (!is_pointwise(spec.preconditioner)) return nullptr;  // rare: compiled when first used
  return with_columns_kernel<T>(spec, []<template <class, class> class Algorithm, class M>() {
    return static_cast<CpuKernel<T, K>>(solve_kernel<Algorithm, M>);
  });
}

template CpuKernel<float, 2> cpu_columns_kernel(const SolveSpec&);
template CpuKernel<float, 4> cpu_columns_kernel(const SolveSpec&);
template CpuKernel<float, 8> cpu_columns_kernel(const SolveSpec&);
template CpuKernel<double, 2> cpu_columns_kernel(const SolveSpec&);
template CpuKernel<double, 4> cpu_columns_kernel(const SolveSpec&);
template CpuKernel<double, 8> cpu_columns_kernel(const SolveSpec&);

}  // namespace cpufree
