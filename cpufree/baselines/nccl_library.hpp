// The collective library (NCCL, or RCCL, which has the same interface), loaded at run time: the
// module works without it. The types are those of its version 2 ABI, as far as it is used here.
#pragma once

#include <gpu_names.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cpufree::baselines {

using CollComm = void*;  // ncclComm_t
struct CollId {          // ncclUniqueId: of the communicator that is made by it
  char bytes[128] = {};
};
enum CollType : int { kCollFloat = 7, kCollDouble = 8 };
inline constexpr int kCollSum = 0;

// Calls that return 0 where all is well.
struct CollLibrary {
  std::function<int(CollComm*, int, const int*)> init_all;
  std::function<int(CollId*)> make_id;
  std::function<int(CollComm*, int, CollId, int)> init_rank;
  std::function<int(CollComm)> destroy;
  std::function<int(CollComm)> abort;
  std::function<int()> group_start;
  std::function<int()> group_end;
  std::function<int(const void*, void*, std::size_t, int, int, CollComm, gpuStream_t)> all_reduce;
  std::function<int(const void*, std::size_t, int, int, CollComm, gpuStream_t)> send;
  std::function<int(void*, std::size_t, int, int, CollComm, gpuStream_t)> receive;
  std::function<const char*(int)> error_text;
  int version = 0;   // 22809: 2.28.9
  std::string path;  // where it was found
};

// Loads it: from `path` if that is not empty, else from where the system looks. Throws Unsupported,
// which says where it was looked for.
CollLibrary load_collectives(const std::string& path);

std::string version_text(int version);

}  // namespace cpufree::baselines
