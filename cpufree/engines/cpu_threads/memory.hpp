// Memory of the CPU engine: heaps for symmetric objects, one per PE, and private arrays.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cpufree/base/pages.hpp"

namespace cpufree::cpu_threads {

struct FreePages {
  void operator()(void* p) const noexcept { free_pages(p); }
};

// An array of zeros whose pages the threads that use them touch first.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(std::size_t count)
      : data_(static_cast<T*>(allocate_pages(count * sizeof(T)))), count_(count) {}
  T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }

 private:
  std::unique_ptr<T[], FreePages> data_;
  std::size_t count_ = 0;
};

// One heap of `bytes` per PE.
class SymmetricHeaps {
 public:
  SymmetricHeaps(int pes, std::size_t bytes) : bytes_(bytes) {
    for (int pe = 0; pe < pes; ++pe) heaps_.emplace_back(bytes);
    for (auto& heap : heaps_) bases_.push_back(heap.data());
  }
  std::byte* base(int pe) const { return bases_[static_cast<std::size_t>(pe)]; }
  std::byte* const* bases() const { return bases_.data(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<Array<std::byte>> heaps_;
  std::vector<std::byte*> bases_;
  std::size_t bytes_ = 0;
};

}  // namespace cpufree::cpu_threads
