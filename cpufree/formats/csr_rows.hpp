// Matrix format: compressed rows, one row per lane. The plain format, for any engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/block.hpp"
#include "cpufree/formats/local.hpp"

namespace cpufree {

// Row pointers are 32 bits wide, modulo 2^32; a range of rows knows its 64-bit beginning, and has
// fewer than 2^32 nonzeros.
template <class T>
struct CsrRows {
  using Value = T;
  using Single = CsrRows<float>;  // the same with values in single precision
  const std::uint32_t* row_ptr = nullptr;
  const std::int32_t* col = nullptr;
  const T* val = nullptr;

  // Rows [begin, end); `start` is the position of the first one's first nonzero.
  struct Rows {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int64_t start = 0;
  };

  // Calls f(row, lane, (A x)(row)) for all rows of the range. x(column) is the operand.
  template <class Format = void, Port P, class X, class F>
  CPUFREE_KERNEL_FN void multiply(P& port, const Rows& rows, X&& x, F&& f) const {
    const std::uint32_t base = rows.begin < rows.end ? row_ptr[rows.begin] : 0U;
    for_each(port, rows.begin, rows.end, [&](std::int32_t i, int lane) {
      const std::int64_t first = rows.start + static_cast<std::uint32_t>(row_ptr[i] - base);
      const auto count = static_cast<std::uint32_t>(row_ptr[i + 1] - row_ptr[i]);
      f(i, lane, row_times_vector(val + first, col + first, count, x));
    });
  }

  template <Port P>
  CPUFREE_KERNEL_FN CsrRows resident(P&, std::byte*) const {
    return *this;
  }
};

}  // namespace cpufree
