// Where pieces of memory lie that are taken in turn and given back in the opposite order: in blocks
// that are made when they are first needed. Arithmetic alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace cpufree {

class ScratchBlocks {
 public:
  // `least`: bytes of the first block.
  explicit ScratchBlocks(double least)
      : least_(std::max(kLeast, static_cast<std::size_t>(least))) {}

  struct Place {
    std::size_t block = 0, offset = 0;
  };
  Place mark() const { return now_; }
  void release(Place mark) { now_ = mark; }
  // Bytes of each block.
  const std::vector<std::size_t>& sizes() const { return sizes_; }
  std::size_t bytes() const {
    return std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0});
  }

  // Where the next piece is; there may be one block more than before.
  Place take(std::size_t bytes) {
    const std::size_t room = (bytes + kAligned - 1) / kAligned * kAligned;
    while (now_.block < sizes_.size() && now_.offset + room > sizes_[now_.block])
      now_ = {now_.block + 1, 0};
    // What is known to be needed lies together; beyond, little is to be left unused.
    if (now_.block == sizes_.size())
      sizes_.push_back(std::max(room, sizes_.empty() ? least_ : std::max(kLeast, least_ / 8)));
    const Place place = now_;
    now_.offset += room;
    return place;
  }

 private:
  static constexpr std::size_t kAligned = 256;
  static constexpr std::size_t kLeast = std::size_t{1} << 20;
  std::size_t least_;
  std::vector<std::size_t> sizes_;
  Place now_;
};

}  // namespace cpufree
