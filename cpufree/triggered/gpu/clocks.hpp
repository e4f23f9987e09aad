// The clocks of two GPUs and of the host on one time line.
#pragma once

#include <cstdint>
#include <functional>

#include "cpufree/triggered/gpu/pes.hpp"

namespace cpufree::triggered {

// Nanoseconds to be added to a time of PE k's clock, for the host's steady clock. The errors are
// half of the fastest round trip: an answer was given at some time within it.
struct GpuClocks {
  std::int64_t offset[2] = {0, 0};
  double host_error = 0.0;  // seconds, of PE 0 against the host
  double pair_error = 0.0;  // of PE 1 against PE 0
};

// `packet`: symmetric, zeros; another one for each call. No kernel runs.
GpuClocks measure_clocks(const GpuPes& pes, Symmetric<Packet> packet,
                         const std::function<void()>& look);

}  // namespace cpufree::triggered
