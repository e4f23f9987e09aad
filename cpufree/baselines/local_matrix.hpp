// A PE's rows, split by whose columns they read, so that the product with its own columns can be
// computed while ghosts travel. Host data, in the shapes that the kernels and libraries take.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/baselines/gpu.hpp"
#include "cpufree/baselines/slices.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/warp_slices_build.hpp"

namespace cpufree::baselines {

// Rows from `first` on, with the columns below local.rows() (`own`) or the others. Columns keep
// their numbers; only row_ptr, col and val are filled.
template <class T>
LocalSystem<T> columns_of(const LocalSystem<T>& local, std::int32_t first, bool own) {
  LocalSystem<T> part;
  part.row_ptr.assign(1, 0);
  const auto take = [&](std::int64_t k) { return (local.col[at(k)] < local.rows()) == own; };
  for (std::int32_t i = first; i < local.rows(); ++i) {
    std::int64_t count = 0;
    for (std::int64_t k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k)
      count += take(k) ? 1 : 0;
    part.row_ptr.push_back(part.row_ptr.back() + count);
  }
  part.col.resize(at(part.row_ptr.back()));
  part.val.resize(at(part.row_ptr.back()));
  std::size_t to = 0;
  for (std::int64_t k = local.row_ptr[at(first)]; k < local.row_ptr.back(); ++k)
    if (take(k)) {
      part.col[to] = local.col[at(k)];
      part.val[to++] = local.val[at(k)];
    }
  return part;
}

// WarpSlices on one GPU, from row 0 on.
template <class T>
class SliceMatrix {
 public:
  SliceMatrix() = default;
  SliceMatrix(const Stream& stream, const LocalSystem<T>& part) {
    const auto rows = static_cast<std::int32_t>(part.row_ptr.size() - 1);
    WarpSliceShape shape;
    append_warp_slices(part.row_ptr, {0, rows}, shape);
    PageVector<std::int32_t> col(at(shape.entries));
    PageVector<T> val(at(shape.entries));
    fill_warp_slices(part, shape, 0, shape.slice.size(), col.data(), val.data());
    slice_ = DeviceArray<WarpSlice>(stream, shape.slice);
    tail_ptr_ = DeviceArray<std::int64_t>(stream, shape.tail_ptr);
    col_ = DeviceArray<std::int32_t>(stream, col);
    val_ = DeviceArray<T>(stream, val);
    view_ = {slice_.data(),
             tail_ptr_.data(),
             col_.data(),
             val_.data(),
             static_cast<std::int32_t>(shape.slice.size()),
             rows};
  }
  const SliceView<T>& view() const { return view_; }

 private:
  DeviceArray<WarpSlice> slice_;
  DeviceArray<std::int64_t> tail_ptr_;
  DeviceArray<std::int32_t> col_;
  DeviceArray<T> val_;
  SliceView<T> view_;
};

}  // namespace cpufree::baselines
