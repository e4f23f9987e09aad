// Memory that processes of one machine share. The maker of a segment tells the others where it is;
// no name stays behind in a file system, so that nothing is left over however the processes end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace cpufree::cpu_processes {

// Where a segment is found, by processes of this machine and user. Two numbers, of which the
// receiver makes the path: a path that came from elsewhere could name any file.
struct SegmentAddress {
  std::int32_t process = 0;
  std::int32_t file = -1;
};

// A segment mapped into this process, which may lie at another address in every process.
class Segment {
 public:
  Segment() = default;
  // New memory, zeroed. Throws OutOfMemory, EngineError.
  static Segment make(std::size_t bytes);
  // The segment that another process has at `address`. That process must not have closed it yet.
  // Throws EngineError, which says what keeps it from being seen here.
  static Segment open(SegmentAddress address, std::size_t bytes);
  ~Segment();
  Segment(Segment&& other) noexcept { *this = std::move(other); }
  Segment& operator=(Segment&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(file_, other.file_);
    return *this;
  }

  std::byte* data() const { return data_; }
  SegmentAddress address() const;
  // It can no longer be opened; processes that have mapped it keep it.
  void close_to_others();

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int file_ = -1;
};

}  // namespace cpufree::cpu_processes
