// The factors of a factorised sparse approximate inverse, made by the GPU on which the rows are.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpufree/formats/layout/inverse.hpp"
#include "cpufree/problem/factors/factors.hpp"
#include "cpufree/solvers/gpu/layout/rows.hpp"

namespace cpufree {

// Teams at once for so many rows: enough for all multiprocessors. Each has a Cholesky factor in
// memory, 17 KB.
inline std::int64_t inverse_teams(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows, 1, 16384);
}
inline constexpr std::int64_t kFarInverse = layout::kMostInverse * (layout::kMostInverse + 1) / 2;

// As approximate_inverse does with options of level 1, but for rounding, of the diagonal block of
// these rows, which are in the sequence of the matrix; numbers are those of the matrix less `first`
// of the rows.
template <class T>
Factors inverse_by_gpu(const GpuRows<T>& rows, const FsaiOptions& options);

}  // namespace cpufree
