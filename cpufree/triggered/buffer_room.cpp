#include "cpufree/triggered/buffer_room.hpp"

#include <algorithm>

#include "cpufree/base/error.hpp"

namespace cpufree::triggered {

namespace {
constexpr std::uint64_t kAlign = 256;  // lines of caches, and of what GPUs load at once
}  // namespace

std::uint64_t BufferRoom::find(const std::string& name, std::uint64_t bytes) const {
  std::map<std::uint64_t, std::uint64_t> ends{{bytes_, bytes_}};  // from the begin of the memory
  for (const auto& [other, span] : taken_)
    if (span.bytes > 0)
      ends[span.first - begin_] =
          std::min(bytes_, (span.first - begin_ + span.bytes + kAlign - 1) / kAlign * kAlign);
  std::uint64_t end = 0, left = 0, largest = 0;
  for (const auto& [first, next] : ends) {
    if (bytes <= first - end) return begin_ + end;
    left += first - end;
    largest = std::max(largest, first - end);
    end = next;
  }
  throw InvalidInput("buffer '" + name + "' of " + std::to_string(bytes) + " bytes does not fit: " +
                     std::to_string(left) + " of " + std::to_string(bytes_) + " bytes are left" +
                     (largest < left ? ", at most " + std::to_string(largest) + " of them in a row"
                                     : std::string()) +
                     "; give the domain more memory, or free buffers");
}

void BufferRoom::take(const std::string& name, std::uint64_t place, std::uint64_t bytes) {
  taken_[name] = {place, bytes};
  used_ = std::max(used_, place + bytes);
}

}  // namespace cpufree::triggered
