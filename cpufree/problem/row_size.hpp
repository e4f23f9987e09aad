// What a row gives to the preconditioner, and to the bound of the spectrum. For host and kernels.
#pragma once

#include <cmath>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// From entries in the order of the row.
struct RowSize {
  double sum = 0.0;  // of |a_ij|
  double diagonal = 0.0;

  CPUFREE_FN void add(double value, bool on_diagonal) {
    const double size = std::fabs(value);
    sum += size;
    if (on_diagonal) diagonal = size;
  }
  // 1 / |a_ii|, so that an indefinite matrix is not taken for an indefinite preconditioner.
  CPUFREE_FN double inverse() const { return diagonal > 0.0 ? 1.0 / diagonal : 1.0; }
  CPUFREE_FN double bound() const { return diagonal > 0.0 ? sum / diagonal : sum; }
};

}  // namespace cpufree
