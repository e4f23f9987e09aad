// Puts by NCCL's device API: stores where they reach (LSA), else by the network (GIN).
#include <nccl_device.h>

#include <cuda/atomic>

#include "cpufree/engines/remote/calls.cuh"

#include "cpufree/engines/remote/nccl/blocks.hpp"

// What the host reads and writes (library.cpp): the version of the headers; what the communicator
// of the device is to have, by who reaches whom; the communicator; symmetric memory.
extern "C" {
__device__ int cpufree_nccl_version = NCCL_VERSION_CODE;
__device__ ncclDevComm cpufree_nccl_comm;
__device__ cpufree::nccl::Blocks cpufree_nccl_blocks;
}

namespace cpufree::remote {
namespace {

// Symmetric memory around an object of mine. (ncclFindWindow does not tell where it begins.)
struct Window {
  ncclWindow_t window = nullptr;
  const char* begin = nullptr;

  __device__ explicit Window(const void* object) {
    for (std::int64_t k = 0; k < cpufree_nccl_blocks.count; ++k) {
      const nccl::Block& block = cpufree_nccl_blocks.first[k];
      const std::ptrdiff_t inside = static_cast<const char*>(object) - block.begin;
      if (inside < 0 || static_cast<std::size_t>(inside) >= block.bytes) continue;
      window = static_cast<ncclWindow_t>(block.window);
      begin = block.begin;
    }
  }
  __device__ std::size_t offset(const void* object) const {
    return static_cast<std::size_t>(static_cast<const char*>(object) - begin);
  }
  template <class V>
  __device__ V* on(V* object, int pe) const {
    return static_cast<V*>(ncclGetPeerPointer(window, offset(object), pe));
  }
};

__device__ bool stores_reach(int pe) {
  const ncclTeam near = ncclTeamLsa(cpufree_nccl_comm);
  const int rank = near.rank + pe - cpufree_nccl_comm.rank;
  return rank >= 0 && rank < near.nRanks;
}

}  // namespace
}  // namespace cpufree::remote

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 32, 0)

namespace {
constexpr ncclDevCommRequirements_t over_network() {
  ncclDevCommRequirements_t wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  wanted.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  wanted.ginStrongSignalsRequired = false;
  return wanted;
}
}  // namespace
extern "C" {
__device__ ncclDevCommRequirements_t cpufree_nccl_near = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
__device__ ncclDevCommRequirements_t cpufree_nccl_far = over_network();
}

namespace cpufree::remote {
namespace {

// A block has one of the contexts, whose puts may overtake one another: a signal is behind its own.
struct Network {
  ncclGin gin{cpufree_nccl_comm, static_cast<int>(blockIdx.x % cpufree_nccl_comm.ginContextCount)};

  __device__ static auto rise(const Window& at, const std::uint64_t* flag, std::uint64_t value) {
    return ncclGin_WeakVASignalAdd{at.window, at.offset(flag), value < 2 ? value : 2};
  }
  __device__ void put(const Window& at, const void* to, const void* from, std::size_t bytes,
                      const std::uint64_t* flag, std::uint64_t value, int pe) const {
    gin.put(ncclTeamWorld(cpufree_nccl_comm), pe, at.window, at.offset(to), at.window,
            at.offset(from), bytes, rise(at, flag, value), ncclGin_None{}, ncclCoopCta{});
  }
  __device__ void signal(const Window& at, const std::uint64_t* flag, std::uint64_t value,
                         int pe) const {
    gin.signal(ncclTeamWorld(cpufree_nccl_comm), pe, rise(at, flag, value));
  }
  __device__ void quiet() const { gin.flush(ncclCoopThread{}); }
};

}  // namespace
}  // namespace cpufree::remote

#else  // no signals at addresses: the host refuses PEs that stores do not reach

extern "C" {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
__device__ ncclDevCommRequirements_t cpufree_nccl_near = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
__device__ ncclDevCommRequirements_t cpufree_nccl_near = {};
#endif
__device__ char cpufree_nccl_far = 0;
}

namespace cpufree::remote {
namespace {

struct Network {
  __device__ void put(const Window&, const void*, const void*, std::size_t, const std::uint64_t*,
                      std::uint64_t, int) const {
    __trap();
  }
  __device__ void signal(const Window&, const std::uint64_t*, std::uint64_t, int) const {
    __trap();
  }
  __device__ void quiet() const {}
};

}  // namespace
}  // namespace cpufree::remote

#endif

namespace cpufree::remote {

__device__ void put_signal(void* to, const void* from, std::size_t bytes, std::uint64_t* flag,
                           std::uint64_t value, int pe) {
  const Window at(to);
  if (!stores_reach(pe)) return Network().put(at, to, from, bytes, flag, value, pe);
  auto* const there = at.on(static_cast<std::uint32_t*>(to), pe);
  for (std::size_t k = threadIdx.x; k < bytes / sizeof *there; k += blockDim.x)
    there[k] = static_cast<const std::uint32_t*>(from)[k];
  __syncthreads();
  if (threadIdx.x == 0) signal(flag, value, pe);
}

__device__ void signal(std::uint64_t* flag, std::uint64_t value, int pe) {
  const Window at(flag);
  if (!stores_reach(pe)) return Network().signal(at, flag, value, pe);
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system> there(*at.on(flag, pe));
  there.store(value, cuda::memory_order_release);
}

// NCCL's signals are seen after what they signal.
__device__ void see(std::uint64_t*) {}

__device__ void quiet() {
  if (cpufree_nccl_comm.lsaSize < cpufree_nccl_comm.nRanks) Network().quiet();
}

}  // namespace cpufree::remote
