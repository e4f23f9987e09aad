// NVSHMEM's host library.
#pragma once

#include <cstddef>
#include <string>

#include "cpufree/base/shared_library.hpp"
#include "cpufree/engines/remote/library.hpp"

namespace cpufree::nvshmem {

using Id = remote::Id;  // nvshmemx_uniqueid_t

// The library: from `path` if that is not empty, else from where the system looks. Throws
// Unsupported, which says where it was looked for.
SharedLibrary open_library(const std::string& path);
// What of it is used.
remote::Library functions_of(const SharedLibrary& library, const std::string& path);
inline remote::Library load(const std::string& path) {
  return functions_of(open_library(path), path);
}

// Bytes of symmetric memory that NVSHMEM is to have from its start on, unless the user has said
// otherwise (NVSHMEM_SYMMETRIC_SIZE). To be called before `start`.
void want_memory(std::size_t bytes);

// The most that the user lets NVSHMEM have on a GPU, in bytes (NVSHMEM_MAX_MEMORY_PER_GPU).
std::size_t most_memory();

}  // namespace cpufree::nvshmem
