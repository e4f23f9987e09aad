// Streams, owned.
#pragma once

#include <utility>

#include "cpufree/gpu/event.hpp"

namespace cpufree::gpu {

// The host waits until all of a stream is done; bounded: throws Stuck.
inline void drain(gpuStream_t stream, const Deadline& deadline, const char* what) {
  gpuError_t status = gpuSuccess;
  for (unsigned look = 1; (status = gpuStreamQuery(stream)) == gpuErrorNotReady; ++look)
    if (look % 64 == 0 && deadline.over()) give_up(deadline, what);
  check(status, what);
}
// The same for a step of a set-up or of a solve, such as "the slices of a matrix", with its own
// bound.
inline void wait_for_stream(int device, gpuStream_t stream, const char* what) {
  wait_for_step(device, what, [&](const auto&... bound) { drain(stream, bound...); });
}

// A stream that waits for no other one, of a device that is current when it is used.
class Stream {
 public:
  // `urgent`: of the highest priority.
  explicit Stream(int device, bool urgent = false) : device_(device) {
    const OnDevice here(device);
    multiprocessors_ = gpu::multiprocessors(device);
    check_call(urgent ? gpuStreamCreateUrgent(&stream_) : gpuStreamCreate(&stream_),
               "StreamCreate");
  }
  ~Stream() {
    if (stream_ != nullptr && !abandoned) static_cast<void>(gpuStreamDestroy(stream_));
  }
  Stream(Stream&& other) noexcept
      : device_(other.device_),
        multiprocessors_(other.multiprocessors_),
        stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  operator gpuStream_t() const { return stream_; }
  int device() const { return device_; }
  int multiprocessors() const { return multiprocessors_; }

  void record(const Event& event) const {
    check_call(gpuEventRecord(event, stream_), "EventRecord");
  }
  void wait_for(const Event& event) const {
    check_call(gpuStreamWaitEvent(stream_, event, 0), "StreamWaitEvent");
  }
  // Whether all of it is done; `what`: that is, for an error.
  bool done(const char* what) const {
    const gpuError_t status = gpuStreamQuery(stream_);
    if (status == gpuErrorNotReady) return false;
    check(status, what);
    return true;
  }
  // The host waits until all of it is done; bounded: throws Stuck.
  void drain(const Deadline& deadline, const char* what) const {
    gpu::drain(stream_, deadline, what);
  }
  void wait(const char* what) const { wait_for_stream(device_, stream_, what); }
  // The same, whatever the errors; not where a step has not ended.
  void settle() const noexcept {
    if (!abandoned) static_cast<void>(gpuStreamSynchronize(stream_));
  }

 private:
  int device_;
  int multiprocessors_ = 1;
  gpuStream_t stream_ = nullptr;
};

}  // namespace cpufree::gpu
