// Memory in huge pages where it is large: sparse products gather from many pages, and the hardware
// prefetchers of CPUs stop at the end of a page.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace cpufree {

// Zeroed memory, aligned to 128 bytes at least; free with `free_pages`. Pages of large blocks are
// not touched: the thread that first uses them decides where they lie. Throws std::bad_alloc.
void* allocate_pages(std::size_t bytes);
void free_pages(void* p) noexcept;

// For std::vector.
template <class T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_pages(count * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { free_pages(p); }
  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }
};

template <class T>
using PageVector = std::vector<T, PageAllocator<T>>;

}  // namespace cpufree
