// Symmetric heaps on GPUs: all in this process, or one in each process of a team, from NVSHMEM.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cuda_p2p/memory.hpp"
#include "cpufree/run/team.hpp"

namespace cpufree {

class CudaHeaps {
 public:
  // One on each of the devices, zeroed. Throws OutOfMemory.
  CudaHeaps(const std::vector<int>& devices, std::size_t bytes);
  // The one of this process on `device`, zeroed, and those of the others, which it addresses
  // directly. All members make it together; NVSHMEM is started by the first one of a process.
  // Throws Unsupported where loads and stores do not reach a GPU, OutOfMemory, EngineError.
  CudaHeaps(Team& team, const std::string& library, int device, std::size_t bytes);
  ~CudaHeaps();
  CudaHeaps(const CudaHeaps&) = delete;
  CudaHeaps& operator=(const CudaHeaps&) = delete;

  std::byte* base(int pe) const { return bases_[at(pe)]; }

 private:
  std::vector<cuda_p2p::DeviceArray<std::byte>> own_;
  std::vector<std::byte*> bases_;
  bool* lent_ = nullptr;  // of NVSHMEM's memory
};

}  // namespace cpufree
