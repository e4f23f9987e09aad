// The mathematics and nothing else: Jacobi sweeps on one thread, point after point. All engines are
// tested against this, bit for bit: it also fixes the order in which neighbours are added.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/grid.hpp"

namespace cpufree::reference {

// Each new value is (sum of the 2 dims neighbours + source) / (2 dims), as a product with the
// rounded reciprocal; `source` may be null. Points that a Dirichlet boundary keeps are not touched.
template <class T>
std::vector<T> jacobi(std::vector<T> u, const T* source, const Grid& g, std::int64_t iterations) {
  const T weight = T{1} / static_cast<T>(2 * g.dims);
  std::vector<T> next = u;
  const auto wrapped = [](std::int64_t i, std::int64_t n) { return i < 0 ? n - 1 : i < n ? i : 0; };
  const auto number = [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    return at((wrapped(z, g.n[0]) * g.n[1] + wrapped(y, g.n[1])) * g.n[2] + wrapped(x, g.n[2]));
  };
  for (std::int64_t k = 0; k < iterations; ++k) {
    for (std::int64_t z = g.first(0); z < g.end(0); ++z)
      for (std::int64_t y = g.first(1); y < g.end(1); ++y)
        for (std::int64_t x = g.first(2); x < g.end(2); ++x) {
          T sum = u[number(z - 1, y, x)] + u[number(z + 1, y, x)];
          if (g.dims == 3) sum = sum + (u[number(z, y - 1, x)] + u[number(z, y + 1, x)]);
          sum = sum + (u[number(z, y, x - 1)] + u[number(z, y, x + 1)]);
          if (source != nullptr) sum = sum + source[number(z, y, x)];
          next[number(z, y, x)] = weight * sum;
        }
    std::swap(u, next);
  }
  return u;
}

}  // namespace cpufree::reference
