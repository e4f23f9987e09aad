// The factors of a factorised sparse approximate inverse, made by the GPU on which the rows are.
#pragma once

#include "cpufree/problem/factors/factors.hpp"
#include "cpufree/solvers/gpu/layout/rows.hpp"
#include "cpufree/solvers/gpu/plan/host_layout.hpp"

namespace cpufree {

// As approximate_inverse does with options of level 1, but for rounding, of the diagonal block of
// these rows, which are in the sequence of the matrix; numbers are those of the matrix less `first`
// of the rows.
template <class T>
Factors inverse_by_gpu(const GpuRows<T>& rows, const FsaiOptions& options);

}  // namespace cpufree
