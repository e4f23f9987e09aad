// Kernels that are built in: all are instantiated at build time (kernel.cu.in).
#include "cpufree/systems/dispatch.hpp"
#include "cpufree/systems/gpu/kernels/table.hpp"

namespace cpufree {

template <class T>
GpuKernels kernels_for(const SolveSpec& spec, const KernelsWanted&) {
  if (spec.study != Study::none)
    return with_study(spec.study, spec.method,
                      []<Study S, template <class, class> class Algorithm>() {
                        return gpu_study_kernels<S, Algorithm>();
                      });
  return with_algorithm<T>(spec.method, spec.preconditioner,
                           []<template <class, class> class Algorithm, class M>() {
                             return gpu_kernels<Algorithm, M, T>();
                           });
}

template GpuKernels kernels_for<float>(const SolveSpec&, const KernelsWanted&);
template GpuKernels kernels_for<double>(const SolveSpec&, const KernelsWanted&);

}  // namespace cpufree
