// Triggered operations of libfabric: the provider counts, and starts transfers. One thread passes
// triggers on from the rings of blocks to the provider's counters, and polls for completions.
#pragma once

#include <memory>

#include "cpufree/triggered/nics/nics.hpp"

namespace cpufree::nics {

// How libfabric is asked: by calls with FI_TRIGGER, or by its deferred work queue.
enum class FabricCalls { triggered, work_queue };

// Throws Unsupported where no provider has triggered operations, EngineError where libfabric fails.
// Queues of completions are not offered: an operation that reports is refused.
std::unique_ptr<Nics> make_libfabric_nics(const NicsConfig& config, FabricCalls calls);

}  // namespace cpufree::nics
