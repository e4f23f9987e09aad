#include "cpufree/engines/remote/calls.cuh"

#include <nvshmem.h>
#include <nvshmemx.h>

namespace cpufree::remote {

__device__ void put_signal(void* to, const void* from, std::size_t bytes, std::uint64_t* flag,
                           std::uint64_t value, int pe) {
  nvshmemx_putmem_signal_nbi_block(to, from, bytes, flag, value, NVSHMEM_SIGNAL_SET, pe);
}

__device__ void signal(std::uint64_t* flag, std::uint64_t value, int pe) {
  nvshmemx_signal_op(flag, value, NVSHMEM_SIGNAL_SET, pe);
}

// A wait that is over at once: what it does afterwards is what is wanted. On some networks the
// values behind a flag have to be asked for. (nvshmem_signal_wait_until does not do so in 3.4.)
__device__ void see(std::uint64_t* mine) { nvshmem_uint64_wait_until(mine, NVSHMEM_CMP_GE, 0); }

__device__ void quiet() { nvshmem_quiet(); }

}  // namespace cpufree::remote
