// What kernels ask of a library between nodes. Each library's definitions are in a file of its own
// (nvshmem/calls.cu, nccl/calls.cu), the only one that reads its headers: they take
// half a minute to compile. Kernels are linked with one of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree::remote {

// By all threads of a block: `bytes` from `from` to `to` on `pe`, then `value` into `*flag` there.
// `from`, `to` and `flag` are addresses of mine, in symmetric memory. A flag's values are those of
// every other epoch (RemotePort), so that a library may add what it rises by.
__device__ void put_signal(void* to, const void* from, std::size_t bytes, std::uint64_t* flag,
                           std::uint64_t value, int pe);
// By one thread: the signal alone.
__device__ void signal(std::uint64_t* flag, std::uint64_t value, int pe);
// By one thread, after flags set by other PEs have been seen: what came before them is here.
// `mine`: any flag in symmetric memory.
__device__ void see(std::uint64_t* mine);
// By one thread of a block: returns once all puts of the block have arrived.
__device__ void quiet();

}  // namespace cpufree::remote
