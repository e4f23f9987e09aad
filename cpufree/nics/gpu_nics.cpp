#include "cpufree/nics/gpu_nics.hpp"

#include "cpufree/base/error.hpp"

namespace cpufree::nics {

GpuNics::GpuNics(const GpuNicsConfig& config) : config_(config) {
  for (int pe = 0; pe < pes(); ++pe) desks_.emplace_back(pe, sizes(), config_.nics.bytes);
}

TriggerCounters GpuNics::counters(int pe) const { return config_.counters->counters(heap(pe)); }

int GpuNics::multiprocessors_taken(int) const { return 0; }

void GpuNics::launched(int, const gpu::Stream&) {}

void GpuNics::check(int, const TriggerOperation&) {}

void GpuNics::add_buffer(const std::string& name, std::uint64_t offset, std::uint64_t bytes) {
  for (Desk& desk : desks_) {
    const std::lock_guard lock(desk.mutex);
    desk.registry.add_buffer(name, offset, bytes);
  }
}

void GpuNics::remove_buffer(const std::string& name) {
  // All are asked before one forgets it.
  for (int pe = 0; pe < pes(); ++pe) {
    Desk& desk = desks_[static_cast<std::size_t>(pe)];
    const std::lock_guard lock(desk.mutex);
    desk.registry.check_unused(name, [&](std::uint32_t op) { return epochs_done(pe, op); });
  }
  for (Desk& desk : desks_) {
    const std::lock_guard lock(desk.mutex);
    desk.registry.forget_buffer(name);
  }
}

void GpuNics::post(int pe, const TriggerOperation& operation) {
  require(pe >= 0 && pe < pes(),
          "there is no PE " + std::to_string(pe) + " to post an operation with");
  Desk& desk = desks_[static_cast<std::size_t>(pe)];
  const std::lock_guard lock(desk.mutex);
  require(!ended_, "the NICs have been stopped: operations are posted before");
  check(pe, operation);
  desk.registry.add(operation);
  if (!hand_over(pe, operation))
    throw EngineError("the NIC of PE " + std::to_string(pe) +
                      " had no room for a post within the wait limit: let operations fire before "
                      "more are posted");
}

}  // namespace cpufree::nics
