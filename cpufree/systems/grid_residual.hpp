// The residual of a matrix on a grid that lies nowhere: its rows are made as they are multiplied.
#pragma once

#include <span>

#include "cpufree/formats/layout/grid.hpp"

namespace cpufree {

// The Euclidean norm of b - A x on all cores, as `residual_norm` of the matrix in compressed rows
// has it: the same sums in the same order.
double residual_norm(const GridTerms& grid, std::span<const double> b, std::span<const double> x);

}  // namespace cpufree
