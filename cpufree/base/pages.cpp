#include "cpufree/base/pages.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace cpufree {

namespace {
constexpr std::size_t kLine = 128;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
}  // namespace

void free_pages(void* p) noexcept { std::free(p); }

void* allocate_pages(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kLine;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (p == nullptr) throw std::bad_alloc();
  // aligned_alloc may hand out used memory. Small blocks are cleared by hand; for large ones the
  // kernel is asked for fresh pages, which are zero, and advised to make them huge.
  if (alignment == kHugePage && madvise(p, rounded, MADV_DONTNEED) == 0) {
    madvise(p, rounded, MADV_HUGEPAGE);
    return p;
  }
  std::memset(p, 0, rounded);
  return p;
}

}  // namespace cpufree
