// Symmetric heaps on GPUs: all in this process, or one in each process of a team, from a library
// such as NVSHMEM (engines/remote).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/device/node_table.hpp"
#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/remote/library.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree {

class GpuHeaps {
 public:
  // One on each of the devices, zeroed. Throws OutOfMemory.
  GpuHeaps(const std::vector<int>& devices, std::size_t bytes);
  // The one of this process on `device`, zeroed, and those of the other PEs of its node, which it
  // addresses directly. All members make it together; the library is started by the first one of a
  // process. Throws Unsupported where loads and stores do not reach a GPU of the node, OutOfMemory,
  // EngineError.
  GpuHeaps(Team& team, const remote::Choice& library, int device, std::size_t bytes,
           const NodeTable& nodes);
  ~GpuHeaps();
  GpuHeaps(const GpuHeaps&) = delete;
  GpuHeaps& operator=(const GpuHeaps&) = delete;

  // Null for PEs of other nodes.
  std::byte* base(int pe) const { return bases_[at(pe)]; }

 private:
  std::vector<gpu::DeviceArray<std::byte>> own_;
  std::vector<std::byte*> bases_;
  bool* lent_ = nullptr;  // of the library's memory
};

// Which PEs reach one another by loads and stores, as the library says; it is started, with room
// for `bytes`, if it does not run yet. All members call it together. Throws Unsupported where that
// is not mutual, EngineError.
NodeTable nodes_of(Team& team, const remote::Choice& library, int device, std::size_t bytes);

// A kernel of a file of kernels that call the library of an engine, for what takes the address of a
// kernel. The library runs; all members call this together. The file is loaded once. Throws
// Unsupported, EngineError.
const void* remote_kernel(Team& team, const std::string& engine, const std::string& file,
                          const std::string& name);

}  // namespace cpufree
