#include "cpufree/systems/grid_residual.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

// (A x)_row, in double precision.
double product_of_row(const GridTerms& grid, std::int64_t row, std::span<const double> x) {
  std::int64_t point[3];
  grid.find(row, point);
  double sum = 0.0;
  for (int term = 0; term < grid.terms; ++term)
    if (grid.has(point, term)) sum += grid.values[term] * x[at(row + grid.offset(term))];
  return sum;
}

}  // namespace

double residual_norm(const GridTerms& grid, std::span<const double> b, std::span<const double> x) {
  constexpr std::int64_t kRowsOfTask = 1 << 13;
  std::vector<double> squares(at(grid.rows() / kRowsOfTask + 1), 0.0);
  in_parallel(static_cast<int>(squares.size()), [&](int task) {
    const std::int64_t first = task * kRowsOfTask;
    double sum = 0.0;
    for (std::int64_t i = first; i < std::min(grid.rows(), first + kRowsOfTask); ++i) {
      const double rest = b[at(i)] - product_of_row(grid, i, x);
      sum += rest * rest;
    }
    squares[at(task)] = sum;
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

}  // namespace cpufree
