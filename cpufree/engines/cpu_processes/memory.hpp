// Memory that processes of one machine share. Whoever makes a segment hands out its address; no
// name stays behind in a file system, so that nothing is left over however the processes end.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace cpufree::cpu_processes {

// A segment mapped into this process, which may lie at another address in every process.
class Segment {
 public:
  Segment() = default;
  // New memory, zeroed. Throws OutOfMemory, EngineError.
  static Segment make(std::size_t bytes);
  // The segment that another process calls `address`. That process must not have closed it yet.
  // Throws EngineError, which says what keeps it from being seen here.
  static Segment open(const std::string& address, std::size_t bytes);
  ~Segment();
  Segment(Segment&& other) noexcept { *this = std::move(other); }
  Segment& operator=(Segment&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(file_, other.file_);
    return *this;
  }

  std::byte* data() const { return data_; }
  // For processes of this machine and user.
  std::string address() const;
  // Nobody can open it any more; who has it mapped keeps it.
  void close_to_others();

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int file_ = -1;
};

}  // namespace cpufree::cpu_processes
