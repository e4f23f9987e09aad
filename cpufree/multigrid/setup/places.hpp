// Kernels that make a hierarchy on a GPU: transposes, and rows in other places and numbers.
#pragma once

#include "cpufree/formats/layout/slices.hpp"
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

// Other values for a transpose that is there: each is looked for in its row, which is short.
struct TransposeValues {
  Rows a;
  Rows to;
  int row_lanes = 32;

  template <class P>
  CPUFREE_KERNEL_FN void run_in_teams(const P& port) const {
    each_team_item(port, to.count, to.count, [&](std::int64_t column) {
      for (std::int64_t k = to.ptr[column] + port.team_lane(); k < to.ptr[column + 1];
           k += P::team_lanes()) {
        std::int64_t from = a.ptr[to.col[k]];
        while (a.col[from] != column) ++from;
        to.val[k] = a.val[from];
      }
    });
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    in_teams(port, row_lanes, [&](const auto& teams) { run_in_teams(teams); });
  }
};

// Rows, listed by number, in the order of the list; columns by other numbers, and sorted by them.
// `list`, `number`: null for the ones that there are. The rows that are here begin at `first`.
template <class V>
struct PlaceRowsAs {
  Rows from;
  std::int64_t count = 0;  // of rows
  const std::int32_t* list = nullptr;
  const std::int32_t* number = nullptr;
  std::int64_t first = 0;
  const std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  V* val = nullptr;
  std::uint32_t* missing = nullptr;  // 1: some column has no number; with `number` alone
  int row_lanes = 32;

  CPUFREE_KERNEL_FN std::int32_t numbered(std::int64_t k) const {
    return number == nullptr ? from.col[k] : number[from.col[k]];
  }
  template <class P>
  CPUFREE_KERNEL_FN void run_in_teams(const P& port) const {
    each_team_item(port, count, count, [&](std::int64_t i) {
      const std::int64_t row = list == nullptr ? i : list[i] - first;
      const std::int64_t begin = from.ptr[row], end = from.ptr[row + 1];
      for (std::int64_t k = begin + port.team_lane(); k < end; k += P::team_lanes()) {
        const std::int32_t mine = numbered(k);
        if (mine < 0) port.join(missing, 1U);
        std::int64_t to = ptr[i];
        for (std::int64_t other = begin; other < end; ++other) to += numbered(other) < mine ? 1 : 0;
        col[to] = mine;
        val[to] = static_cast<V>(from.val[k]);
      }
    });
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    in_teams(port, row_lanes, [&](const auto& teams) { run_in_teams(teams); });
  }
};
struct PlaceRows : PlaceRowsAs<double> {};
struct PlaceRowsInSingle : PlaceRowsAs<float> {};

// The numbers of places that a list has rows at, from `first` on.
struct InvertList {
  const std::int32_t* list = nullptr;
  std::int64_t count = 0;
  std::int32_t* number = nullptr;
  std::int32_t first = 0;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count,
              [&](std::int64_t i) { number[list[i]] = first + static_cast<std::int32_t>(i); });
  }
};
// No numbers.
struct ClearNumbers {
  std::int64_t count = 0;
  std::int32_t* number = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) { number[i] = -1; });
  }
};

// Values in single precision.
struct RoundValues {
  std::int64_t count = 0;
  const double* from = nullptr;
  float* to = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t k) { to[k] = static_cast<float>(from[k]); });
  }
};

// Where rows begin that come behind a given number of entries of others.
struct ShiftBegins {
  std::int64_t count = 0;
  std::int64_t* begin = nullptr;
  std::int64_t before = 0;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) { begin[i] += before; });
  }
};

// Rows of a level, the long ones of each window first, as multigrid_layout.cpp says: entries of the
// matrix and of the restriction count.
struct OrderByLength {
  std::int64_t rows = 0;
  std::int64_t window = 1;
  const std::int64_t* ptr = nullptr;
  const std::int64_t* restriction = nullptr;
  std::int32_t* list = nullptr;
  std::int32_t* number = nullptr;

  CPUFREE_KERNEL_FN std::int64_t length(std::int64_t row) const {
    return ptr[row + 1] - ptr[row] + restriction[row + 1] - restriction[row];
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      const std::int64_t first = row / window * window, mine = length(row);
      std::int64_t to = first;
      for (std::int64_t k = first; k < first + window && k < rows; ++k) {
        const std::int64_t other = length(k);
        to += other > mine || (other == mine && k < row) ? 1 : 0;
      }
      list[to] = static_cast<std::int32_t>(row);
      number[row] = static_cast<std::int32_t>(to);
    });
  }
};

// A scaled to a diagonal of ones, rows as they lie in a PE. `name`: their numbers in A, of which
// the scale is; null: they have these.
struct ScaleNamedRows {
  std::int64_t rows = 0;
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  Values val;
  const std::int32_t* name = nullptr;
  const double* scale = nullptr;
  double* to = nullptr;

  CPUFREE_KERNEL_FN double of(std::int64_t row) const {
    return scale[name == nullptr ? row : name[row]];
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      for (std::int64_t k = ptr[row]; k < ptr[row + 1]; ++k)
        to[k] = col[k] == row ? 1.0 : val[k] * of(row) * of(col[k]);
    });
  }
};

// The scale of A in the order of a PE's private vectors, 0 in gaps; in one of the two precisions.
struct PlaceScale {
  const layout::PrivateRange* ranges = nullptr;
  int blocks = 1;
  std::int64_t count = 0;
  const std::int32_t* name = nullptr;
  const double* scale = nullptr;
  double* wide = nullptr;
  float* narrow = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t place) {
      const std::int32_t row = layout::private_row(ranges, blocks, place);
      const double found = row < 0 ? 0.0 : scale[name == nullptr ? row : name[row]];
      if (wide != nullptr)
        wide[place] = found;
      else
        narrow[place] = static_cast<float>(found);
    });
  }
};

// How long rows of a list are, of those that are here, from `first` on.
struct LengthsOf {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* list = nullptr;
  std::int64_t count = 0;
  std::int32_t* length = nullptr;
  std::int64_t first = 0;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) {
      const std::int64_t row = list[i] - first;
      length[i] = static_cast<std::int32_t>(ptr[row + 1] - ptr[row]);
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
