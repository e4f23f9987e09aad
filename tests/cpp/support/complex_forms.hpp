// Complex Hermitian matrices in the two forms in which solvers have them (Sliced::pairs).
#pragma once

#include <cmath>
#include <cstdint>

#include "cpufree/base/index.hpp"
#include "matrices.hpp"

namespace testing_matrices {

// The real matrix of twice the size, and that of the parts of entries, stored once.
struct ComplexForms {
  Matrix<double> real, pairs;
};

// Of the sizes of a symmetric matrix, with a phase on each pair of entries.
inline ComplexForms with_phases(const Matrix<double>& sizes) {
  using cpufree::at;
  Entries real, pairs;
  for (std::int32_t i = 0; i < sizes.n(); ++i)
    for (std::int64_t k = sizes.row_ptr[at(i)]; k < sizes.row_ptr[at(i) + 1]; ++k) {
      const std::int32_t j = sizes.col[at(k)];
      const double angle = i == j ? 0.0 : i < j ? 7.0 * i + j : -(7.0 * j + i);
      const double a = sizes.val[at(k)] * std::cos(angle), b = sizes.val[at(k)] * std::sin(angle);
      real[{2 * i, 2 * j}] = real[{2 * i + 1, 2 * j + 1}] = pairs[{2 * i, 2 * j}] = a;
      real[{2 * i + 1, 2 * j}] = pairs[{2 * i + 1, 2 * j + 1}] = b;
      real[{2 * i, 2 * j + 1}] = -b;
    }
  return {from_entries<double>(2 * sizes.n(), real), from_entries<double>(2 * sizes.n(), pairs)};
}

}  // namespace testing_matrices
