// What kernels ask of NVSHMEM's device library. Defined in a file of its own (calls.cu), which is
// the only one that reads NVSHMEM's headers: they take half a minute to compile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree::nvshmem {

// By all threads of a block: `bytes` from `from` to `to` on `pe`, then `value` into `*flag` there.
// `from`, `to` and `flag` are addresses of mine, in memory of NVSHMEM.
__device__ void put_signal(void* to, const void* from, std::size_t bytes, std::uint64_t* flag,
                           std::uint64_t value, int pe);
// By one thread: the signal alone.
__device__ void signal(std::uint64_t* flag, std::uint64_t value, int pe);
// By one thread, after flags set by other PEs have been seen: what came before them is here.
// `mine`: any flag in memory of NVSHMEM.
__device__ void see(std::uint64_t* mine);
// By one thread: returns once all puts of this PE have arrived.
__device__ void quiet();

}  // namespace cpufree::nvshmem
