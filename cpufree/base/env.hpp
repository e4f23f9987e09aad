// The environment variables that C++ reads. (Those of cpufree's own are Python's: env.py.)
#pragma once

#include <cstdlib>
#include <string>

namespace cpufree {

// NVSHMEM's NVSHMEM_MAX_MEMORY_PER_GPU, such as "2GB"; empty where it is not set.
inline std::string nvshmem_max_memory() {
  const char* const said = std::getenv("NVSHMEM_MAX_MEMORY_PER_GPU");
  return said == nullptr ? "" : said;
}

// Whether NCCL is told (NCCL_P2P_DISABLE) not to let GPUs reach one another's memory.
inline bool nccl_avoids_peers() {
  const char* const said = std::getenv("NCCL_P2P_DISABLE");
  return said != nullptr && std::string(said) != "0" && *said != '\0';
}

}  // namespace cpufree
