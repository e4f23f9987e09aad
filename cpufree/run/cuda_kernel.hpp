// The addresses of the solver kernels of the GPU engine, for host code.
#pragma once

#include "cpufree/device/study.hpp"

namespace cpufree {

inline constexpr int kCudaThreads = 512;  // most threads of a block: more would lack registers

// The kernel of `Algorithm` with the preconditioner M for values of type T; its parameters are a
// cuda_p2p::Shared and a SolveArgs<WarpSlices<T>>, by value. Each one is instantiated in a file of
// its own (cuda_kernel.cu.in).
template <template <class, class> class Algorithm, class M, class T>
const void* cuda_kernel();

// The same as a study: in double precision, without a preconditioner (cuda_study_kernel.cu.in).
template <Study S, template <class, class> class Algorithm>
const void* cuda_study_kernel();

}  // namespace cpufree
