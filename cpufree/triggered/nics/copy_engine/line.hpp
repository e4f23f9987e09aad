// The stream of one operation.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "cpufree/engines/cpu_threads/atomic.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/triggered/nics/gpu_nics.hpp"

namespace cpufree::nics {

// Where things are, for the lines of one PE.
struct LinePlace {
  int pe = 0;
  std::vector<int> devices;
  std::byte* const* heaps = nullptr;
  TriggerBoard board;
  TriggerCounters counters;
  // Streams of this PE may write words in the memory of PE k. Where they may not, the word is
  // copied.
  std::vector<bool> writes_to;
};

// An epoch of an operation that is posted: what its stream does, once.
class Line {
 public:
  static constexpr std::uint32_t kAhead = 32;  // epochs that are queued and not over

  explicit Line(const LinePlace& place);

  // Does all that a line does, once, on memory that holds zeros and keeps them.
  void warm_up();

  std::int64_t operation() const { return operation_; }
  void take(std::uint32_t operation) { operation_ = operation; }
  // Epochs that are over: the stream writes how many.
  std::uint32_t over() const {
    return static_cast<std::uint32_t>(cpu_threads::load_flag(over_[0]));
  }
  std::uint32_t queued() const { return queued_; }
  std::uint32_t posted() const { return posted_; }

  // Throws Unsupported for a threshold that words cannot tell from that of epochs before.
  void require_threshold(const TriggerOperation& operation) const;
  void post(const TriggerOperation& operation);
  // Queues what there is room for. True: something was.
  bool feed();
  // The same behind what is on `stream` now.
  void feed_behind(const gpu::Event& event);

  std::uint64_t threshold(std::uint32_t epoch) const { return find(epoch).threshold; }

  // Whether an epoch is the first of a post.
  bool starts(std::uint32_t epoch) const { return find(epoch).first.epoch == epoch; }

  // Ends what is queued and has not fired: lets the copies happen, and puts back what was there.
  void undo(const gpu::Stream& stream);
  void settle() const noexcept { stream_.settle(); }

 private:
  struct Ends {
    const std::byte* from;
    std::byte* to;
    int from_pe, to_pe;
  };
  const TriggerOperation& find(std::uint32_t epoch) const;
  Ends ends_of(const TriggerOperation& o, std::uint32_t epoch) const;
  template <class T>
  T* on(T* object, int pe) const {
    return reinterpret_cast<T*>(place_.heaps[pe] +
                                (reinterpret_cast<std::byte*>(object) - place_.heaps[place_.pe]));
  }
  int device(int pe) const { return place_.devices[static_cast<std::size_t>(pe)]; }
  void copy(const Ends& ends, std::uint64_t bytes) const;
  void write(Flag* flag, int pe, Epoch value);
  void queue(std::uint32_t epoch);

  LinePlace place_;
  gpu::Stream stream_;
  gpu::MappedArray<Flag> over_;
  gpu::PinnedArray<Epoch> values_;  // that are copied to words
  std::int64_t operation_ = -1;
  std::deque<TriggerOperation> posts_;  // in order of epochs
  std::uint32_t posted_ = 0;            // epochs
  std::uint32_t queued_ = 0;            // epochs
};

}  // namespace cpufree::nics
