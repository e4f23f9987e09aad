// The environment variables that C++ reads. (Python reads the others of cpufree's own: env.py.)
#pragma once

#include <cstdlib>
#include <string>

namespace cpufree {

// CPUFREE_CPU_LEVEL, which version of the CPU engine's kernels runs (plugins/cpu/levels.cpp); empty
// where it is not set.
inline std::string cpu_level_asked_for() {
  const char* const said = std::getenv("CPUFREE_CPU_LEVEL");
  return said == nullptr ? "" : said;
}

// CPUFREE_ARCH, the architecture that GPU kernels are made for ("sm_80"); empty where it is not
// set.
inline std::string gpu_architecture_asked_for() {
  const char* const said = std::getenv("CPUFREE_ARCH");
  return said == nullptr ? "" : said;
}

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
