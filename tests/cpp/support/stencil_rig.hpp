// Grids with values on which stencils are tested, and runs that are compared with the reference.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "cpufree/reference/jacobi.hpp"
#include "cpufree/stencils/host/stencil.hpp"

namespace stencil_rig {

using namespace cpufree;

inline Grid grid2d(std::int64_t ny, std::int64_t nx, bool periodic_y = false,
                   bool periodic_x = false) {
  return {2, {ny, 1, nx}, {periodic_y, false, periodic_x}};
}

inline Grid grid3d(std::int64_t nz, std::int64_t ny, std::int64_t nx, unsigned periodic = 0) {
  return {3, {nz, ny, nx}, {(periodic & 1U) != 0, (periodic & 2U) != 0, (periodic & 4U) != 0}};
}

// Values without pattern, of full precision.
template <class T>
std::vector<T> rough(const Grid& grid, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(grid.points()));
  std::uint32_t state = 2463534242U + seed;
  for (T& value : values) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    value = static_cast<T>(state) / static_cast<T>(3000000000.0) - T{0.5};
  }
  return values;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Runs a problem with values of `seed`, and gives what the reference makes of it.
template <class T>
struct Case {
  Grid grid;
  std::vector<T> start, source, out;
  StencilSpec spec;
  StencilRun run;

  Case(const Grid& g, std::int64_t iterations, bool with_source = false)
      : grid(g), start(rough<T>(g, 1)), out(start.size()) {
    if (with_source) source = rough<T>(g, 2);
    run.iterations = iterations;
  }
  StencilProblem<T> problem() { return {grid, start, source, out}; }
  StencilResult go(const Progress& progress = {}) {
    return run_stencil<T>(problem(), spec, run, progress);
  }
  std::vector<T> expected(std::int64_t iterations) const {
    return reference::jacobi<T>(start, source.empty() ? nullptr : source.data(), grid, iterations);
  }
};

}  // namespace stencil_rig
