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
  explicit Scratch(int device) : device_(device) {}

  struct Mark {
    std::size_t block = 0, taken = 0;
  };
  Mark mark() const { return now_; }
  void release(Mark mark) { now_ = mark; }

  template <class U>
  U* take(std::int64_t count) {
    const std::size_t bytes = (at(count) * sizeof(U) + kAligned - 1) / kAligned * kAligned;
    while (now_.block < blocks_.size() && now_.taken + bytes > blocks_[now_.block].size())
      now_ = {now_.block + 1, 0};
    if (now_.block == blocks_.size()) {
      const std::size_t before = blocks_.empty() ? kLeast : 2 * blocks_.back().size();
      const std::size_t size = std::max(bytes, std::min(before, kMost));
      blocks_.push_back(gpu::DeviceArray<std::byte>::uninitialised(device_, size));
    }
    std::byte* const from = blocks_[now_.block].data() + now_.taken;
    now_.taken += bytes;
    return reinterpret_cast<U*>(from);
  }

 private:
  static constexpr std::size_t kAligned = 256;
  static constexpr std::size_t kLeast = std::size_t{1} << 22, kMost = std::size_t{1} << 29;
  int device_;
  std::vector<gpu::DeviceArray<std::byte>> blocks_;
  Mark now_;
};

}  // namespace cpufree
