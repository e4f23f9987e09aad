// Where buffers of a domain lie in its memory: the same on every PE.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cpufree::triggered {

class BufferRoom {
 public:
  // Memory of `bytes` from offset `begin` on.
  BufferRoom(std::uint64_t begin, std::uint64_t bytes) : begin_(begin), bytes_(bytes) {}

  // The first place with room. Throws InvalidInput where there is none.
  std::uint64_t find(const std::string& name, std::uint64_t bytes) const;
  // Whether bytes from a place on have belonged to a buffer before: then they are no zeros.
  bool used_before(std::uint64_t place) const { return place < used_; }
  void take(const std::string& name, std::uint64_t place, std::uint64_t bytes);
  void give_back(const std::string& name) { taken_.erase(name); }

 private:
  struct Span {
    std::uint64_t first, bytes;
  };
  std::uint64_t begin_, bytes_;
  std::uint64_t used_ = 0;
  std::map<std::string, Span> taken_;
};

}  // namespace cpufree::triggered
