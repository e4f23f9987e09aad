// Builds the slices of one range of rows (host code).
#pragma once

#include <cstdint>

#include "cpufree/base/pages.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// Slices in memory of their own. Offsets (`slice_ptr`, gather columns in `base`) count from 0.
template <class T, int W>
struct SlicedRows {
  PageVector<std::int64_t> slice_ptr;
  PageVector<std::int32_t> base;
  PageVector<std::int32_t> gather;
  PageVector<T> val;
};

// Appends the slices of `rows` of `local` to `out`.
template <class T, int W>
void append_slices(const LocalSystem<T>& local, RowRange rows, SlicedRows<T, W>& out);

}  // namespace cpufree
