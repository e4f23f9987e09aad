// Kernels that make a hierarchy on a GPU: transposes, and rows in other places and numbers.
#pragma once

#include "cpufree/multigrid/setup/products.hpp"

namespace cpufree::multigrid::setup {

// How many entries columns have.
struct CountColumns {
  const std::int32_t* col = nullptr;
  std::int64_t entries = 0;
  std::uint32_t* count = nullptr;  // zeroed before

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, entries, [&](std::int64_t k) { port.add(&count[col[k]], std::uint32_t{1}); });
  }
};

// The transpose, rows' entries in any order.
struct SpreadColumns {
  Rows a;
  const std::int64_t* ptr = nullptr;  // of the transpose
  std::uint32_t* taken = nullptr;     // places of each of its rows; zeroed before
  std::int32_t* col = nullptr;
  double* val = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, a.count, [&](std::int64_t row) {
      for (std::int64_t k = a.ptr[row]; k < a.ptr[row + 1]; ++k) {
        const std::int32_t column = a.col[k];
        const std::int64_t to = ptr[column] + port.add(&taken[column], std::uint32_t{1});
        col[to] = static_cast<std::int32_t>(row);
        val[to] = a.val[k];
      }
    });
  }
};

// Rows, listed by number, in the order of the list; columns by other numbers, and sorted by them.
// `list`, `number`: null for the ones that there are.
template <class V>
struct PlaceRowsAs {
  Rows from;
  std::int64_t count = 0;  // of rows
  const std::int32_t* list = nullptr;
  const std::int32_t* number = nullptr;
  const std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  V* val = nullptr;

  CPUFREE_KERNEL_FN std::int32_t numbered(std::int64_t k) const {
    return number == nullptr ? from.col[k] : number[from.col[k]];
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_team_item(port, count, count, [&](std::int64_t i) {
      const std::int64_t row = list == nullptr ? i : list[i];
      const std::int64_t begin = from.ptr[row], end = from.ptr[row + 1];
      for (std::int64_t k = begin + port.team_lane(); k < end; k += P::team_lanes()) {
        const std::int32_t mine = numbered(k);
        std::int64_t to = ptr[i];
        for (std::int64_t other = begin; other < end; ++other) to += numbered(other) < mine ? 1 : 0;
        col[to] = mine;
        val[to] = static_cast<V>(from.val[k]);
      }
    });
  }
};
struct PlaceRows : PlaceRowsAs<double> {};
struct PlaceRowsInSingle : PlaceRowsAs<float> {};

// How long rows of a list are.
struct LengthsOf {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* list = nullptr;
  std::int64_t count = 0;
  std::int32_t* length = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) {
      length[i] = static_cast<std::int32_t>(ptr[list[i] + 1] - ptr[list[i]]);
    });
  }
};

// Entries times the scale of their columns, or of their rows.
struct ScaleColumns {
  std::int64_t entries = 0;
  const std::int32_t* col = nullptr;
  double* val = nullptr;
  const double* scale = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, entries, [&](std::int64_t k) { val[k] *= scale[col[k]]; });
  }
};
struct ScaleEachRow {
  Rows a;
  const double* scale = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, a.count, [&](std::int64_t row) {
      for (std::int64_t k = a.ptr[row]; k < a.ptr[row + 1]; ++k) a.val[k] *= scale[row];
    });
  }
};
// 1 / scale.
struct InvertScale {
  std::int64_t count = 0;
  const double* scale = nullptr;
  double* inverse = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) { inverse[i] = 1.0 / scale[i]; });
  }
};

}  // namespace cpufree::multigrid::setup
