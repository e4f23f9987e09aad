#include "cpufree/triggered/nics/gpu_nics.hpp"

namespace cpufree::nics {

GpuNics::GpuNics(const GpuNicsConfig& config) : Nics(config.nics), config_(config) {}

TriggerCounters GpuNics::counters(int pe) const { return config_.counters->counters(heap(pe)); }

int GpuNics::multiprocessors_taken(int) const { return 0; }

void GpuNics::launched(int, const gpu::Stream&) {}

}  // namespace cpufree::nics
