// What the text of every kernel begins with where HIP's compiler reads it: what NVRTC has or has
// been told to do, and this compiler has not.
#pragma once

// The compiler's own part of the standard library differs from version to version: kernels have
// device_std.hpp under another name.
#define std cpufree_std

#define __grid_constant__
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#undef __noinline__
#define __noinline__

// As in CUDA: most threads of a block, and so many blocks that a multiprocessor, of four units with
// waves of 64 threads, is to have registers for.
#undef __launch_bounds__
#define CPUFREE_PICK(threads, blocks, ...) threads, blocks
#define CPUFREE_BOUNDS(threads, blocks)                   \
  __attribute__((amdgpu_flat_work_group_size(1, threads), \
                 amdgpu_waves_per_eu(((threads) * (blocks) + 255) / 256)))
#define CPUFREE_BOUNDS_OF(...) CPUFREE_BOUNDS(__VA_ARGS__)
#define __launch_bounds__(...) CPUFREE_BOUNDS_OF(CPUFREE_PICK(__VA_ARGS__, 1, 1))

// Vectors in memory of the block.
struct alignas(16) CpufreeDouble2 {
  double x, y;
};
#define double2 CpufreeDouble2

// Functions that say nothing are device functions, too.
#pragma clang force_cuda_host_device begin

// Calls would take half of the registers from a kernel.
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)

// Objects that are made in bytes (Port::keep).
inline void* operator new(__SIZE_TYPE__, unsigned char* at) { return at; }
