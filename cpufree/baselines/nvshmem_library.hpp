// NVSHMEM's host library, loaded at run time: the module works without it. One process is one PE.
// Only functions of the host are used, which NVSHMEM launches on streams of ours: no device
// library.
#pragma once

#include <gpu_names.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace cpufree::baselines {

using ShmemId = std::array<char, 128>;  // nvshmemx_uniqueid_t
inline constexpr int kShmemWorld = 0;   // NVSHMEM_TEAM_WORLD
inline constexpr int kShmemSet = 9;     // NVSHMEM_SIGNAL_SET
inline constexpr int kShmemGe = 5;      // NVSHMEM_CMP_GE

// What is called during a solve has the types of NVSHMEM's own functions.
struct ShmemLibrary {
  using Put = void(void*, const void*, std::size_t, std::uint64_t*, std::uint64_t, int, int,
                   gpuStream_t);
  using Reduce = int(int, double*, const double*, std::size_t, gpuStream_t);

  std::function<ShmemId()> make_id;  // one process for all; it must then start as rank 0
  // With the GPU of this PE current; returns when all PEs have called it. Throws EngineError.
  std::function<void(int rank, int size, const ShmemId&)> start;
  std::function<void*(std::size_t)> allocate;  // nvshmem_malloc: the same size on all PEs, together
  std::function<Put> put_signal;               // nvshmemx_putmem_signal_on_stream
  std::function<Put> put_signal_nbi;           // on NVSHMEM's own streams, after that of the caller
  std::function<void(std::uint64_t*, int, std::uint64_t, gpuStream_t)> wait;
  std::function<Reduce> sum, max;
  std::function<void(gpuStream_t)> barrier;
  std::string version;
  std::string path;  // where it was found
};

// Loads it: from `path` if that is not empty, else from where the system looks. Throws Unsupported,
// which says where it was looked for.
ShmemLibrary load_shmem(const std::string& path);

}  // namespace cpufree::baselines
