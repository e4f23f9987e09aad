// Kernels that make the rows of matrices on regular grids, where they are going to lie.
#pragma once

#include <cstdint>

#include "cpufree/formats/layout/rows.hpp"

namespace cpufree {

inline constexpr int kMostTerms = 27;

// A matrix on a grid whose last axis runs fastest: each point is coupled to points some steps away,
// those outside being left out. Terms in the order of their columns.
struct GridTerms {
  std::int64_t shape[3] = {1, 1, 1};
  std::int32_t terms = 0;
  std::int32_t steps[kMostTerms][3] = {};
  double values[kMostTerms] = {};

  CPUFREE_FN std::int64_t rows() const { return shape[0] * shape[1] * shape[2]; }
  CPUFREE_FN std::int64_t offset(int term) const {
    const auto& step = steps[term];
    return (step[0] * shape[1] + step[1]) * shape[2] + step[2];
  }
  // The point of a row.
  CPUFREE_FN void find(std::int64_t row, std::int64_t (&point)[3]) const {
    const std::int64_t line = row / shape[2];
    point[0] = line / shape[1];
    point[1] = line % shape[1];
    point[2] = row % shape[2];
  }
  // Whether the point has this entry.
  CPUFREE_FN bool has(const std::int64_t (&point)[3], int term) const {
    for (int axis = 0; axis < 3; ++axis) {
      const std::int64_t to = point[axis] + steps[term][axis];
      if (to < 0 || to >= shape[axis]) return false;
    }
    return true;
  }
};

namespace layout {

template <class T>
struct CountTerms {
  GridTerms grid;
  std::int64_t first = 0, rows = 0;  // of a PE, in the matrix
  std::int32_t* length = nullptr;    // of each of them

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t k) {
      std::int64_t point[3];
      grid.find(first + k, point);
      std::int32_t count = 0;
      for (int term = 0; term < grid.terms; ++term) count += grid.has(point, term) ? 1 : 0;
      length[k] = count;
    });
  }
};
template <class T>
struct PutTerms {
  GridTerms grid;
  std::int64_t first = 0, rows = 0;
  const std::int64_t* ptr = nullptr;  // where each of them begins
  std::int32_t* col = nullptr;
  T* val = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t k) {
      std::int64_t point[3];
      grid.find(first + k, point);
      std::int64_t to = ptr[k];
      for (int term = 0; term < grid.terms; ++term) {
        if (!grid.has(point, term)) continue;
        col[to] = static_cast<std::int32_t>(first + k + grid.offset(term));
        val[to++] = static_cast<T>(grid.values[term]);
      }
    });
  }
};

}  // namespace layout

}  // namespace cpufree
