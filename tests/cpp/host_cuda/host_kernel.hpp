// What the address of a kernel leads to where kernels run on the host.
#pragma once

#include <cstddef>
#include <functional>

#include "cpufree/engines/cuda_p2p/shared.hpp"

namespace host_cuda {

struct Kernel {
  std::size_t argument_bytes = 0;
  std::function<void(const cpufree::cuda_p2p::Shared&, const void* args, int blocks, int threads,
                     std::size_t fast_bytes)>
      run;
};

}  // namespace host_cuda
