// The addresses of the solver kernels of the GPU engine, for host code.
#pragma once

#include "cpufree/device/study.hpp"

namespace cpufree {

inline constexpr int kGpuThreads = 512;  // most threads of a block: more would lack registers

// For a matrix that is read where it is, on chip or in memory; for one that comes through rings.
struct GpuKernelPair {
  const void* plain = nullptr;
  const void* streaming = nullptr;
};

// The kernels of a method: for a matrix no columns of which come in runs; for any.
struct GpuKernels {
  GpuKernelPair singles;
  GpuKernelPair runs;
  const void* on_chip = nullptr;  // for simple shares on chip (SlicesOnChip); may be missing
};
inline GpuKernels for_any_code(const GpuKernelPair& kernels, const void* on_chip = nullptr) {
  return {kernels, kernels, on_chip};
}

// Those of `Algorithm` with the preconditioner M for K columns of values of type T; their
// parameters are a gpu_p2p::Shared and a SolveArgs<WarpSlices<T>, K>, by value. Each set is
// instantiated in a file of its own (kernel.cu.in).
template <template <class, class> class Algorithm, class M, class T, int K>
GpuKernels gpu_kernels();

// The same as a study: in double precision, without a preconditioner (study_kernel.cu.in).
template <Study S, template <class, class> class Algorithm>
GpuKernels gpu_study_kernels();

}  // namespace cpufree
