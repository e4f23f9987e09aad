// NVSHMEM's host library, loaded at run time: the module works without it. One process is one PE.
// Only functions of the host are used, which NVSHMEM launches on streams of ours: no device
// library.
#pragma once

#include <gpu_names.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cpufree/engines/remote/nvshmem/library.hpp"

namespace cpufree::baselines {

using ShmemId = nvshmem::Id;
inline constexpr int kShmemWorld = 0;  // NVSHMEM_TEAM_WORLD
inline constexpr int kShmemSet = 9;    // NVSHMEM_SIGNAL_SET
inline constexpr int kShmemGe = 5;     // NVSHMEM_CMP_GE

// What the baseline calls during a solve, beside what the engine uses; it has the types of
// NVSHMEM's own functions.
struct ShmemLibrary : remote::Library {
  using Put = void(void*, const void*, std::size_t, std::uint64_t*, std::uint64_t, int, int,
                   gpuStream_t);
  using Get = void(void*, const void*, std::size_t, int, gpuStream_t);
  using Signal = void(std::uint64_t*, std::uint64_t, int, int, gpuStream_t);
  using Reduce = int(int, double*, const double*, std::size_t, gpuStream_t);

  std::function<Put> put_signal;      // nvshmemx_putmem_signal_on_stream
  std::function<Get> get;             // nvshmemx_getmem_on_stream
  std::function<Put> put_signal_nbi;  // on NVSHMEM's own streams, after that of the caller
  std::function<Signal> signal;       // nvshmemx_signal_op_on_stream
  std::function<void(std::uint64_t*, int, std::uint64_t, gpuStream_t)> wait;
  std::function<Reduce> sum, max;
  std::function<void(gpuStream_t)> barrier;
};

// Loads it: from `path` if that is not empty, else from where the system looks. Throws Unsupported,
// which says where it was looked for.
ShmemLibrary load_shmem(const std::string& path);

}  // namespace cpufree::baselines
