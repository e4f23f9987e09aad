// Triggered operations by a block of each PE's GPU, which copies over the link. It keeps a
// multiprocessor for itself from the beginning to `stop`: meanwhile nothing may be allocated or
// freed on the devices, which would wait for it.
#pragma once

#include <memory>

#include "cpufree/triggered/nics/gpu_nics.hpp"

namespace cpufree::nics {

// Launches the NICs. Throws EngineError, OutOfMemory.
std::unique_ptr<GpuNics> make_block_nics(const GpuNicsConfig& config);

}  // namespace cpufree::nics
