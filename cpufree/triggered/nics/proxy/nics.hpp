// Triggered operations by a thread of the host for each PE, which copies for the kernel: the kernel
// writes its triggers into memory of the host, the thread finds them and hands copies, and the
// words that tell of them, to a stream.
#pragma once

#include <memory>

#include "cpufree/triggered/nics/gpu_nics.hpp"

namespace cpufree::nics {

// Throws EngineError, OutOfMemory.
std::unique_ptr<GpuNics> make_proxy_nics(const GpuNicsConfig& config);

}  // namespace cpufree::nics
