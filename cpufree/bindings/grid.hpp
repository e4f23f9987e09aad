// Grids from Python.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/stencils/host/stencil.hpp"

namespace cpufree {

// The grid of an array's shape. In two dimensions, axis 1 has one point.
inline Grid grid_of(const std::vector<std::int64_t>& shape, const std::vector<bool>& periodic) {
  const std::size_t dims = shape.size();
  require((dims == 2 || dims == 3) && periodic.size() == dims,
          "values must have 2 or 3 dimensions, and each of them a boundary");
  Grid grid;
  grid.dims = static_cast<int>(dims);
  for (std::size_t k = 0; k < dims; ++k) {
    const std::size_t axis = dims == 2 ? 2 * k : k;
    grid.n[axis] = shape[k];
    grid.periodic[axis] = periodic[k];
  }
  return grid;
}

}  // namespace cpufree
