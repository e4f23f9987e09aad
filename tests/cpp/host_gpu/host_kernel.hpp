// What the address of a kernel leads to where kernels run on the host.
#pragma once

#include <cstddef>
#include <functional>

#include "cpufree/engines/gpu_p2p/shared.hpp"

namespace host_engine {

struct Kernel {
  std::size_t argument_bytes = 0;
  std::function<void(const cpufree::gpu_p2p::Shared&, const void* args, int blocks, int threads,
                     std::size_t fast_bytes)>
      run;
};

// What a library of kernels is told by NVSHMEM (nvshmemx_culibrary_init): where an object of mine
// is on another PE.
struct Library {
  void* (*address)(const void*, int pe) = nullptr;
};
inline Library library;

// The kernel of this name, null where there is none.
const Kernel* kernel_named(const char* name);

}  // namespace host_engine
