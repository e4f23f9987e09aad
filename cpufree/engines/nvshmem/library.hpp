// NVSHMEM's host library, loaded at run time: without it, everything else works. One process is one
// PE. Kernels get addresses of one another's memory; of NVSHMEM's device library only those for
// GPUs in several nodes use anything (calls.cuh).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

#include "cpufree/base/shared_library.hpp"

namespace cpufree::nvshmem {

using Id = std::array<char, 128>;  // nvshmemx_uniqueid_t

struct Library {
  std::function<Id()> make_id;  // one process for all; it must then start as rank 0
  // With the GPU of this PE current; returns when all PEs have called it. Throws EngineError.
  std::function<void(int rank, int size, const Id&)> start;
  std::function<void*(std::size_t)> allocate;  // nvshmem_malloc: the same size on all PEs, together
  // nvshmem_ptr: the address of a symmetric object on another PE, null where loads and stores do
  // not reach that.
  std::function<void*(const void*, int)> address;
  // nvshmemx_culibrary_init: readies a CUlibrary whose kernels call NVSHMEM's device library, once
  // NVSHMEM has started. Throws EngineError.
  std::function<void(void*)> ready;
  std::string version;
  std::string path;  // where it was found
};

// The library: from `path` if that is not empty, else from where the system looks. Throws
// Unsupported, which says where it was looked for.
SharedLibrary open_library(const std::string& path);
// What of it is used.
Library functions_of(const SharedLibrary& library, const std::string& path);
inline Library load(const std::string& path) { return functions_of(open_library(path), path); }

// Bytes of symmetric memory that NVSHMEM is to have from its start on, unless the user has said
// otherwise (NVSHMEM_SYMMETRIC_SIZE). To be called before `start`.
void want_memory(std::size_t bytes);

// The most that the user lets NVSHMEM have on a GPU, in bytes (NVSHMEM_MAX_MEMORY_PER_GPU).
std::size_t most_memory();

}  // namespace cpufree::nvshmem
