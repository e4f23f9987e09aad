// The processes of a baseline, one for each GPU: PEs of NVSHMEM that have memory alike, and what
// they do all together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "cpufree/baselines/gpu.hpp"
#include "cpufree/baselines/nvshmem_library.hpp"

namespace cpufree::baselines {

class ShmemTeam {
 public:
  // Once NVSHMEM has been started, on all PEs. `stream`: this PE's; it is kept.
  ShmemTeam(ShmemLibrary library, const Stream& stream)
      : library_(std::move(library)), stream_(stream) {
    source_ = symmetric<double>(kPadded);
    targets_ = symmetric<double>(2 * kPadded);
  }
  const ShmemLibrary& library() const { return library_; }

  // Zeros, as many on all PEs, which ask for the same in the same order; they live as long as the
  // process. They are written only after all have met.
  template <class V>
  DeviceArray<V> symmetric(std::size_t count) const {
    const OnDevice here(stream_.device());
    const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(V);
    void* const p = library_.allocate(bytes);
    if (p == nullptr)
      throw OutOfMemory("NVSHMEM's symmetric memory has no room for " + std::to_string(bytes) +
                        " bytes more on each GPU; use more GPUs, or free what else is on them");
    DeviceArray<V> array = DeviceArray<V>::borrow(static_cast<V*>(p), count);
    array.clear(stream_);
    return array;
  }

  // The host waits until all PEs have come here, and what is on their streams is done.
  void meet(double limit) const {
    const OnDevice here(stream_.device());
    library_.barrier(stream_);
    stream_.drain(Deadline(limit), "the other processes of this baseline");
  }

  // The largest of what the PEs give, the same bits on all; with idle streams. Of two targets, that
  // of reduction n is written again by n + 2: who begins it has the result of n + 1, to which
  // all contributed after reading that of n.
  double largest(double value, double limit) {
    const OnDevice here(stream_.device());
    source_.upload(stream_, &value, 1);
    double* const to = targets_.data() + (rounds_++ % 2) * kPadded;
    if (library_.max(kShmemWorld, to, source_.data(), kPadded, stream_) != 0)
      throw EngineError("a reduction of NVSHMEM could not be launched");
    stream_.drain(Deadline(limit), "the other processes of this baseline");
    DeviceArray<double>::borrow(to, 1).download(stream_, &value, 1);
    return value;
  }

 private:
  static constexpr std::size_t kPadded = 2;  // a value and a pad: even numbers take less time

  ShmemLibrary library_;
  const Stream& stream_;
  DeviceArray<double> source_, targets_;
  std::size_t rounds_ = 0;
};

}  // namespace cpufree::baselines
