// Events, owned.
#pragma once

#include <utility>

#include "cpufree/gpu/deadline.hpp"
#include "cpufree/gpu/device.hpp"

namespace cpufree::gpu {

// An event of one device, recorded by a Stream.
class Event {
 public:
  explicit Event(int device, bool timed = false) {
    const OnDevice here(device);
    check_call(timed ? gpuEventCreate(&event_) : gpuEventCreateUntimed(&event_), "EventCreate");
  }
  ~Event() {
    if (event_ != nullptr && !abandoned) static_cast<void>(gpuEventDestroy(event_));
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  operator gpuEvent_t() const { return event_; }

  // The host waits; for one that was never recorded, not at all. Bounded: throws Stuck.
  void wait(const Deadline& deadline, const char* what) const {
    gpuError_t status = gpuSuccess;
    for (unsigned look = 1; (status = gpuEventQuery(event_)) == gpuErrorNotReady; ++look)
      if (look % 64 == 0 && deadline.over()) give_up(deadline, what);
    check(status, what);
  }
  // The same for a step of a set-up, on a GPU.
  void wait(int device, const char* what) const {
    wait_for_step(device, what, [&](const auto&... bound) { wait(bound...); });
  }
  // Seconds from this one to a later one, both timed and over.
  double seconds_until(const Event& later) const {
    float milliseconds = 0.0F;
    check_call(gpuEventElapsedTime(&milliseconds, event_, later), "EventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  gpuEvent_t event_ = nullptr;
};

}  // namespace cpufree::gpu
