// Kernels that make a hierarchy on a GPU: scaled matrices, and which of their entries are strong.
// What strength.cpp does on the host.
//
// Kernels are as those of formats/layout: structs of arguments, threads that take items in turns.
// Sums are in the order of a row's entries, or of integers.
#pragma once

#include <cmath>

#include "cpufree/formats/layout/rows.hpp"
#include "cpufree/multigrid/rules.hpp"

namespace cpufree::multigrid::setup {

using layout::each_item;
using layout::each_team_item;

// Lanes that share a row where rows are short; else there are 32.
inline constexpr int kFewLanes = 8;
// f(port), of teams of a given number of lanes.
template <class P, class F>
CPUFREE_KERNEL_FN auto in_teams(const P& port, int lanes, F&& f) {
  return lanes == kFewLanes ? f(port.template in_teams<kFewLanes>()) : f(port);
}

// A matrix in the memory of a GPU, columns increasing within rows.
struct Rows {
  std::int64_t count = 0;
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  double* val = nullptr;
};

// Values of either precision, one of them not null.
struct Values {
  const double* wide = nullptr;
  const float* narrow = nullptr;
  CPUFREE_KERNEL_FN double operator[](std::int64_t k) const {
    return wide != nullptr ? wide[k] : static_cast<double>(narrow[k]);
  }
};

// Which entries of a matrix are strong (class Strength).
struct Bits {
  const std::uint8_t* bits = nullptr;
  CPUFREE_KERNEL_FN bool operator()(std::int64_t row, std::int64_t begin, std::int64_t k) const {
    const std::int64_t bit = k - begin;
    return (bits[byte_of_row(row, begin) + bit / 8] >> static_cast<unsigned>(bit % 8) & 1) != 0;
  }
};

// Inverse square roots of a diagonal; where an entry is not positive, 1.
struct InvertRoots {
  std::int64_t rows = 0;
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  Values val;
  double* root = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      double found = 1.0;
      for (std::int64_t k = ptr[row]; k < ptr[row + 1]; ++k)
        if (col[k] == row && val[k] > 0.0) found = 1.0 / std::sqrt(val[k]);
      root[row] = found;
    });
  }
};

// S A S with a diagonal of ones, `to` where A is or elsewhere; and the thresholds of its rows.
struct ScaleRows {
  std::int64_t rows = 0;
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  Values val;
  const double* root = nullptr;
  double theta = 0.0;
  double* to = nullptr;
  double* threshold = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      double most = 0.0;
      for (std::int64_t k = ptr[row]; k < ptr[row + 1]; ++k) {
        const bool diagonal = col[k] == row;
        const double scaled = diagonal ? 1.0 : val[k] * root[row] * root[col[k]];
        to[k] = scaled;
        const double size = std::fabs(scaled);
        if (!diagonal && most < size) most = size;
      }
      threshold[row] = threshold_of(most, theta);
    });
  }
};

// Marks strong entries; counts those beside which row and column are of one PE. `owner`: null where
// there is one PE.
struct FindStrong {
  Rows a;
  const std::int32_t* owner = nullptr;
  const double* threshold = nullptr;
  std::uint8_t* bits = nullptr;
  std::int32_t* count = nullptr;
  std::int32_t* isolated = nullptr;  // 1: the row has no strong entry
  std::uint32_t* weak = nullptr;     // 1: some entry beside the diagonal is not strong

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    bool some_weak = false;
    each_item(port, a.count, [&](std::int64_t row) {
      const std::int64_t begin = a.ptr[row], end = a.ptr[row + 1];
      std::int32_t own = 0, all = 0;
      for (std::int64_t first = begin; first <= end; first += 8) {
        unsigned byte = 0;
        for (std::int64_t k = first; k < first + 8 && k < end; ++k) {
          const std::int32_t column = a.col[k];
          if (column == row) continue;
          const double mine = threshold[row], other = threshold[column];
          if (!is_strong(std::fabs(a.val[k]), mine > other ? mine : other)) {
            some_weak = true;
            continue;
          }
          byte |= 1U << static_cast<unsigned>(k - first);
          ++all;
          own += owner == nullptr || owner[column] == owner[row] ? 1 : 0;
        }
        bits[byte_of_row(row, begin) + (first - begin) / 8] = static_cast<std::uint8_t>(byte);
      }
      count[row] = own;
      isolated[row] = all == 0 ? 1 : 0;
    });
    if (some_weak && port.get(weak) == 0) port.join(weak, 1U);
  }
};

// The strong graph: columns of strong entries of one PE.
struct ListStrong {
  Rows a;
  const std::int32_t* owner = nullptr;
  Bits strong;
  const std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, a.count, [&](std::int64_t row) {
      const std::int64_t begin = a.ptr[row];
      std::int64_t to = ptr[row];
      for (std::int64_t k = begin; k < a.ptr[row + 1]; ++k)
        if (strong(row, begin, k) && (owner == nullptr || owner[a.col[k]] == owner[row]))
          col[to++] = a.col[k];
    });
  }
};

// The diagonal of the filtered matrix, which does to `constant` what A does; and the inverse of
// its root.
struct FilterDiagonal {
  Rows a;
  Bits strong;
  const double* constant = nullptr;
  double* diagonal = nullptr;
  double* root = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, a.count, [&](std::int64_t row) {
      const std::int64_t begin = a.ptr[row];
      double weak = 0.0;
      for (std::int64_t k = begin; k < a.ptr[row + 1]; ++k)
        if (a.col[k] != row && !strong(row, begin, k))
          weak += a.val[k] * constant[a.col[k]] / constant[row];
      const double found = guarded_diagonal(1.0 + weak);
      diagonal[row] = found;
      root[row] = 1.0 / std::sqrt(found);
    });
  }
};

}  // namespace cpufree::multigrid::setup
