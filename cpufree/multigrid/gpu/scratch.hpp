// Memory of a GPU for what is needed for a while: an allocation by the driver takes as long as a
// kernel for millions of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/solvers/gpu/plan/scratch_blocks.hpp"

namespace cpufree {

// Memory is taken in turn, and given back in the opposite order, by marks. For one stream: who
// takes it next comes later there.
class Scratch {
 public:
  // `least`: bytes that are sure to be needed.
  explicit Scratch(int device, double least = 0.0) : device_(device), places_(least) {}

  using Mark = ScratchBlocks::Place;
  Mark mark() const { return places_.mark(); }
  void release(Mark mark) { places_.release(mark); }

  std::size_t bytes() const { return places_.bytes(); }
  // An array that is given back with the rest.
  template <class U>
  gpu::DeviceArray<U> array(std::int64_t count) {
    return gpu::DeviceArray<U>::borrow(take<U>(count), at(count));
  }
  template <class U>
  U* take(std::int64_t count) {
    const Mark place = places_.take(at(count) * sizeof(U));
    if (places_.sizes().size() > blocks_.size())
      blocks_.push_back(
          gpu::DeviceArray<std::byte>::uninitialised(device_, places_.sizes().back()));
    return reinterpret_cast<U*>(blocks_[place.block].data() + place.offset);
  }

 private:
  int device_;
  ScratchBlocks places_;
  std::vector<gpu::DeviceArray<std::byte>> blocks_;
};

}  // namespace cpufree
