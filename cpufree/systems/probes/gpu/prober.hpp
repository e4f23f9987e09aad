// Probes on GPUs that reach one another's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpufree/systems/probes/prober.hpp"

namespace cpufree {

// A PE on each of the GPUs, of so many blocks and threads; none: two GPUs. `bytes`: see
// ProbeMemory. Messages count as received when their flag has been seen: their values lie in the
// receiver's memory then, and are not read. Throws InvalidInput, Unsupported, OutOfMemory.
std::unique_ptr<Prober> make_gpu_prober(const std::vector<int>& gpus, int blocks, int threads,
                                        std::int64_t bytes);

}  // namespace cpufree
