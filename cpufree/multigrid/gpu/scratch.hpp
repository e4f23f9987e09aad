// Memory of a GPU for what is needed for a while: an allocation by the driver takes as long as a
// kernel for millions of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree {

// Memory is taken in turn, and given back in the opposite order, by marks. For one stream: who
// takes it next comes later there.
class Scratch {
 public:
  // `least`: bytes that are sure to be needed.
  explicit Scratch(int device, double least = 0.0)
      : device_(device), least_(std::max(kLeast, static_cast<std::size_t>(least))) {}

  struct Mark {
    std::size_t block = 0, taken = 0;
  };
  Mark mark() const { return now_; }
  void release(Mark mark) { now_ = mark; }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& block : blocks_) sum += block.size();
    return sum;
  }
  // An array that is given back with the rest.
  template <class U>
  gpu::DeviceArray<U> array(std::int64_t count) {
    return gpu::DeviceArray<U>::borrow(take<U>(count), at(count));
  }
  template <class U>
  U* take(std::int64_t count) {
    const std::size_t bytes = (at(count) * sizeof(U) + kAligned - 1) / kAligned * kAligned;
    while (now_.block < blocks_.size() && now_.taken + bytes > blocks_[now_.block].size())
      now_ = {now_.block + 1, 0};
    if (now_.block == blocks_.size()) {
      // What is known to be needed lies together; beyond, little is to be left unused.
      const std::size_t size =
          std::max(bytes, blocks_.empty() ? least_ : std::max(kLeast, least_ / 8));
      blocks_.push_back(gpu::DeviceArray<std::byte>::uninitialised(device_, size));
    }
    std::byte* const from = blocks_[now_.block].data() + now_.taken;
    now_.taken += bytes;
    return reinterpret_cast<U*>(from);
  }

 private:
  static constexpr std::size_t kAligned = 256;
  static constexpr std::size_t kLeast = std::size_t{1} << 20;
  int device_;
  std::size_t least_;  // bytes of the first block
  std::vector<gpu::DeviceArray<std::byte>> blocks_;
  Mark now_;
};

}  // namespace cpufree
