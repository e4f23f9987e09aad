// Memory in huge pages where it is large: sparse products gather from many pages, and the hardware
// prefetchers of CPUs stop at the end of a page.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace cpufree {

// Zeroed memory, aligned to 128 bytes at least; free with `free_pages`. Pages of large blocks are
// not touched: the thread that first uses them decides where they lie. Throws std::bad_alloc.
void* allocate_pages(std::size_t bytes);
void free_pages(void* p) noexcept;

// For std::vector. `resize` leaves new elements of plain types as the memory is, so that it touches
// no page: write them before reading them.
template <class T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_pages(count * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { free_pages(p); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Values>
  void construct(U* p, Values&&... values) {
    ::new (static_cast<void*>(p)) U(std::forward<Values>(values)...);
  }
  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }
};

template <class T>
using PageVector = std::vector<T, PageAllocator<T>>;

}  // namespace cpufree
