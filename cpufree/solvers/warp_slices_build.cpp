#include "cpufree/solvers/warp_slices_build.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

// What a tail costs beyond its entries: the warp sums it on its own, row by row. In entries.
constexpr std::int64_t kTailCost = 256;

std::int64_t round_up_warp(std::int64_t entries) { return (entries + kWarp - 1) / kWarp * kWarp; }

// The width that minimises what is stored and summed: 32 entries for each column of the slice, and
// for each longer row its tail. Only lengths of rows come into question: between two of them the
// cost is linear. A row a few entries longer than the others widens the slice; a long one gets a
// tail.
std::int64_t best_width(std::array<std::int64_t, kWarp> length) {
  std::ranges::sort(length, std::greater<>());
  std::int64_t best = length[0];
  std::int64_t least = kWarp * length[0];
  std::int64_t longer = 0;  // entries of the rows before k
  for (std::size_t k = 1; k <= at(kWarp); ++k) {
    longer += length[k - 1];
    const std::int64_t width = k < at(kWarp) ? length[k] : 0;
    const auto tails = static_cast<std::int64_t>(k);
    const std::int64_t cost = kWarp * width + longer - tails * width + tails * kTailCost;
    if (cost < least) {
      least = cost;
      best = width;
    }
  }
  return best;
}

// One slice of at most 32 rows.
template <class T>
class SliceWriter {
 public:
  // `col` and `val`: the slice's first entry.
  SliceWriter(const LocalSystem<T>& local, const WarpSliceShape& shape, std::size_t slice,
              std::int32_t* col, T* val)
      : local_(local),
        slice_(shape.slice[slice]),
        rows_(shape.rows[slice]),
        tail_(slice_.tails < 0 ? nullptr : shape.tail_ptr.data() + slice_.tails),
        size_(shape.end_of(slice) - slice_.first),
        col_(col),
        val_(val) {}

  void write() const {
    for (int l = 0; l < kWarp; ++l) {
      const std::int32_t row = std::min(rows_.begin + l, rows_.end - 1);
      const std::int64_t first = local_.row_ptr[at(row)];
      const std::int64_t count =
          rows_.begin + l < rows_.end ? local_.row_ptr[at(row) + 1] - first : 0;
      write_row(l, row, first, std::min<std::int64_t>(count, slice_.width));
      if (tail_ != nullptr) write_tail(l, first + slice_.width);
    }
    if (tail_ != nullptr) pad(tail_[kWarp] - slice_.first, size_, rows_.begin);
  }

 private:
  // Padding reads a column that the row reads anyway: it has arrived when the row is summed.
  void write_row(int l, std::int32_t row, std::int64_t first, std::int64_t count) const {
    std::int64_t to = l;
    std::int32_t last = row;
    for (std::int64_t k = 0; k < count; ++k, to += kWarp) {
      last = local_.col[at(first + k)];
      col_[to] = last;
      val_[to] = local_.val[at(first + k)];
    }
    for (std::int64_t k = count; k < slice_.width; ++k, to += kWarp) {
      col_[to] = last;
      val_[to] = T{0};
    }
  }

  void write_tail(int l, std::int64_t from) const {
    const std::int64_t to = tail_[l] - slice_.first;
    const std::int64_t count = tail_[l + 1] - tail_[l];
    if (count == 0) return;
    std::copy_n(local_.col.data() + from, count, col_ + to);
    std::copy_n(local_.val.data() + from, count, val_ + to);
  }

  void pad(std::int64_t from, std::int64_t to, std::int32_t row) const {
    std::fill(col_ + from, col_ + to, row);
    std::fill(val_ + from, val_ + to, T{0});
  }

  const LocalSystem<T>& local_;
  WarpSlice slice_;
  RowRange rows_;
  const std::int64_t* tail_;
  std::int64_t size_;
  std::int32_t* col_;
  T* val_;
};

}  // namespace

void append_warp_slices(std::span<const std::int64_t> row_ptr, RowRange rows,
                        WarpSliceShape& shape) {
  for (std::int32_t begin = rows.begin; begin < rows.end; begin += kWarp) {
    const RowRange mine{begin, std::min(begin + kWarp, rows.end)};
    std::array<std::int64_t, kWarp> length{};
    for (std::int32_t i = mine.begin; i < mine.end; ++i)
      length[at(i - begin)] = row_ptr[at(i) + 1] - row_ptr[at(i)];
    const std::int64_t width = best_width(length);
    WarpSlice slice;
    slice.first = shape.entries;
    slice.width = static_cast<std::int32_t>(width);
    shape.entries += kWarp * width;
    if (std::ranges::any_of(length, [&](std::int64_t count) { return count > width; })) {
      slice.tails = static_cast<std::int32_t>(shape.tail_ptr.size());
      shape.tail_ptr.push_back(shape.entries);
      for (const std::int64_t count : length) {
        shape.entries += std::max<std::int64_t>(count - width, 0);
        shape.tail_ptr.push_back(shape.entries);
      }
      shape.entries = round_up_warp(shape.entries);
    }
    shape.slice.push_back(slice);
    shape.rows.push_back(mine);
  }
}

template <class T>
void fill_warp_slices(const LocalSystem<T>& local, const WarpSliceShape& shape, std::size_t first,
                      std::size_t end, std::int32_t* col, T* val, const BlockColumns* columns) {
  if (first == end) return;
  const std::int64_t origin = shape.slice[first].first;
  for (std::size_t k = first; k < end; ++k) {
    const std::int64_t to = shape.slice[k].first - origin;
    SliceWriter<T>(local, shape, k, col + to, val + to).write();
  }
  if (columns == nullptr) return;
  std::int32_t* const last = col + (shape.end_of(end - 1) - origin);
  std::transform(col, last, col, *columns);
}

template void fill_warp_slices(const LocalSystem<float>&, const WarpSliceShape&, std::size_t,
                               std::size_t, std::int32_t*, float*, const BlockColumns*);
template void fill_warp_slices(const LocalSystem<double>&, const WarpSliceShape&, std::size_t,
                               std::size_t, std::int32_t*, double*, const BlockColumns*);

}  // namespace cpufree
