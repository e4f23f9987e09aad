// A PE's rows, split by whose columns they read, so that the product with its own columns can be
// computed while ghosts travel. Host data, in the shapes that the kernels and libraries take.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/baselines/gpu.hpp"
#include "cpufree/baselines/slices.hpp"
#include "cpufree/formats/warp_slices_build.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree::baselines {

// Rows from `first` on, with the columns below local.rows() (`own`) or the others. Columns keep
// their numbers; only row_ptr, col and val are filled, and how many columns padding may read.
template <class T>
LocalSystem<T> columns_of(const LocalSystem<T>& local, std::int32_t first, bool own) {
  LocalSystem<T> part;
  part.rows_elsewhere = local.rows();
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
    const ShareSource<T> source{part};
    const WarpSliceShape shape = shape_of(source, {{{0, rows}}});
    PageVector<std::byte> bytes(at(shape.units * kSliceUnit));
    fill_warp_slices(source, shape, 0, shape.slice.size(), bytes.data());
    std::vector<std::int32_t> tail_col(at(shape.tail_entries));
    std::vector<T> tail_val(at(shape.tail_entries));
    fill_tails(source, shape, tail_col.data(), tail_val.data());
    const std::vector<T> dictionary(shape.dictionary.begin(), shape.dictionary.end());
    bytes_ = DeviceArray<std::byte>(stream, bytes);
    slice_ = DeviceArray<WarpSlice>(stream, shape.slice);
    tail_ptr_ = DeviceArray<std::int64_t>(stream, shape.tail_ptr);
    tail_col_ = DeviceArray<std::int32_t>(stream, tail_col);
    tail_val_ = DeviceArray<T>(stream, tail_val);
    dictionary_ = DeviceArray<T>(stream, dictionary);
    view_.rows = rows;
    view_.matrix = {bytes_.data(),    slice_.data(),
                    tail_ptr_.data(), tail_col_.data(),
                    tail_val_.data(), dictionary.empty() ? nullptr : dictionary_.data(),
                    shape.size()};
  }
  const SliceView<T>& view() const { return view_; }

 private:
  DeviceArray<std::byte> bytes_;
  DeviceArray<WarpSlice> slice_;
  DeviceArray<std::int64_t> tail_ptr_;
  DeviceArray<std::int32_t> tail_col_;
  DeviceArray<T> tail_val_, dictionary_;
  SliceView<T> view_;
};

}  // namespace cpufree::baselines
