// A run of rows. A header that kernels can include: no host types.
#pragma once

#include <cstdint>

namespace cpufree {

// Rows [begin, end).
struct RowRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  constexpr std::int32_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

}  // namespace cpufree
