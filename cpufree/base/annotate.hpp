// How functions and loops are marked for the compilers in use, in one place.
#pragma once

// CPUFREE_FN: callable anywhere. CPUFREE_KERNEL_FN: part of a kernel; it calls the port, which
// under CUDA exists on the device only.
#if defined(__CUDACC__)
#define CPUFREE_FN __host__ __device__ inline
#define CPUFREE_KERNEL_FN __device__ inline
#else
#define CPUFREE_FN inline
#define CPUFREE_KERNEL_FN inline
#endif

// The iterations of the loop that follows do not depend on one another.
#if defined(__CUDACC__)
#define CPUFREE_INDEPENDENT
#elif defined(__clang__)
#define CPUFREE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CPUFREE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPUFREE_INDEPENDENT
#endif
