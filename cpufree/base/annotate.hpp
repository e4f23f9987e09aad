// How functions and loops are marked for the compilers in use, in one place.
#pragma once

// Whether what is compiled is device code: by NVIDIA's compilers, or as HIP.
#if defined(__CUDACC__) || defined(__HIP__)
#define CPUFREE_ON_GPU
#endif

// CPUFREE_FN: callable anywhere. CPUFREE_KERNEL_FN: part of a kernel; it calls the port, which
// on GPUs exists on the device only. CPUFREE_COLD_FN: the same, called rarely; kept out of line,
// so that it costs the loops around it no registers. CPUFREE_HOT_FN: the opposite, for what a
// compiler might leave out of line, where every iteration would pay for the call.
#if defined(CPUFREE_ON_GPU)
#define CPUFREE_FN __host__ __device__ inline
#define CPUFREE_KERNEL_FN __device__ inline
#define CPUFREE_COLD_FN __device__ __noinline__
#define CPUFREE_HOT_FN __device__ __forceinline__
#else
#define CPUFREE_FN inline
#define CPUFREE_KERNEL_FN inline
#define CPUFREE_COLD_FN inline
#define CPUFREE_HOT_FN inline
#endif

// CPUFREE_APART_FN: of engines on CPUs, out of line wherever it is called, and compiled once.
#if defined(__GNUC__)
#define CPUFREE_APART_FN __attribute__((noinline))
#else
#define CPUFREE_APART_FN
#endif

// CPUFREE_LONG_FN: so long that compilers take many seconds to optimise it as a whole; functions
// that it calls, with the loops over points, are optimised as others.
#if defined(__GNUC__) && !defined(__clang__) && !defined(CPUFREE_ON_GPU)
#define CPUFREE_LONG_FN __attribute__((optimize("O1")))
#else
#define CPUFREE_LONG_FN
#endif

// Whether what is compiled is a kernel of an engine whose blocks have fast memory of their own.
#if defined(CPUFREE_ON_GPU)
inline constexpr bool kFastMemory = true;
#else
inline constexpr bool kFastMemory = false;
#endif

// Whether a fused multiply-add is an instruction, and no call.
#if defined(CPUFREE_ON_GPU) || defined(__FP_FAST_FMA)
inline constexpr bool kFastFma = true;
#else
inline constexpr bool kFastFma = false;
#endif

// The iterations of the loop that follows do not depend on one another.
#if defined(CPUFREE_ON_GPU)
#define CPUFREE_INDEPENDENT
#elif defined(__clang__)
#define CPUFREE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CPUFREE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPUFREE_INDEPENDENT
#endif

// The loop that follows is not to be unrolled; is to be unrolled in full (its arrays then live in
// registers). Device code alone: the compiler behind nvcc, for the host's, does not know them.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define CPUFREE_ONE_COPY _Pragma("unroll 1")
#define CPUFREE_UNROLL _Pragma("unroll")
#else
#define CPUFREE_ONE_COPY
#define CPUFREE_UNROLL
#endif

// CPUFREE_STEP_FN: part of a kernel, so long that the kernel has one copy of it for all its calls,
// with AMD's compiler, too, which inlines all others. A kernel with such calls is
// CPUFREE_CALLS_STEPS.
#if defined(__HIP__)  // steps take up to 32 registers of the other kind, of 256: twice 112 remain
#define CPUFREE_STEP_FN __device__ __attribute__((noinline))
#define CPUFREE_CALLS_STEPS __attribute__((amdgpu_num_vgpr(112)))
#else
#define CPUFREE_STEP_FN CPUFREE_COLD_FN
#define CPUFREE_CALLS_STEPS
#endif
