// Kernels that are built in: all are instantiated at build time (kernel.cu.in).
#include "cpufree/base/index.hpp"
#include "cpufree/launch/gpu/gpus.hpp"
#include "cpufree/multigrid/cycle.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"
#include "cpufree/solvers/host/columns.hpp"
#include "cpufree/solvers/host/dispatch.hpp"

namespace cpufree {

template <class T>
GpuKernels kernels_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  if (has_kind(wanted.kinds, kSingleValues)) return mixed_kernels(spec, wanted.columns);
  if (wanted.columns > 1)
    return with_columns(at(wanted.columns), [&]<int K>() {
      return with_columns_kernel<T>(spec, []<template <class, class> class Algorithm, class M>() {
        return gpu_kernels<Algorithm, M, T, K>();
      });
    });
  if (spec.study != Study::none)
    return with_study(spec.study, spec.method,
                      []<Study S, template <class, class> class Algorithm>() {
                        return gpu_study_kernels<S, Algorithm>();
                      });
  if (spec.preconditioner == Preconditioner::amg)  // for cg alone
    return gpu_kernels<ConjugateGradient, Multigrid<T>, T, 1>();
  return with_algorithm<T>(spec.method, spec.preconditioner,
                           []<template <class, class> class Algorithm, class M>() {
                             return gpu_kernels<Algorithm, M, T, 1>();
                           });
}

bool kernels_compiled() { return false; }

std::string kernel_compiler() { return ""; }

int ship_kernels(const std::string&, const std::string&) {
  throw Unsupported("the kernels of this build are built in: there are none to ship");
}

template GpuKernels kernels_for<float>(const SolveSpec&, const KernelsWanted&);
template GpuKernels kernels_for<double>(const SolveSpec&, const KernelsWanted&);

template <class T>
void compile_ahead_for(const SolveSpec&, const KernelsWanted&) {}
template void compile_ahead_for<float>(const SolveSpec&, const KernelsWanted&);
template void compile_ahead_for<double>(const SolveSpec&, const KernelsWanted&);

}  // namespace cpufree
