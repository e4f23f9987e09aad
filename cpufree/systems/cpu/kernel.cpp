#include "cpufree/systems/cpu/kernel.hpp"

#include "cpufree/systems/dispatch.hpp"

namespace cpufree {

template <class T>
CpuKernel<T> cpu_kernel(const SolveSpec& spec) {
  using P = cpu_threads::Port;
  return with_algorithm<T>(spec.method, spec.preconditioner,
                           []<template <class, class> class Algorithm, class M>() -> CpuKernel<T> {
                             return solve_kernel<Algorithm, M, AnySlices, P, Sliced<T, P::width>>;
                           });
}

template CpuKernel<float> cpu_kernel<float>(const SolveSpec&);
template CpuKernel<double> cpu_kernel<double>(const SolveSpec&);

}  // namespace cpufree
