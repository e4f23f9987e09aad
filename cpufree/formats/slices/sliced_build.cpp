#include "cpufree/formats/slices/sliced_build.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

// Columns of a slice that are laid out, one after the other.
template <class T, int W>
struct SliceColumns {
  std::vector<std::int32_t> index;
  std::vector<T> value;

  void make_room(std::int64_t count) {
    if (index.size() >= at(count * W)) return;
    index.resize(at(count * W));
    value.resize(at(count * W));
  }
};

// The rows of one slice, each with a cursor into its sorted columns.
template <class T, int W>
class Slice {
 public:
  Slice(const LocalSystem<T>& local, std::int32_t first, std::int32_t end)
      : local_(local),
        columns_(local.columns()),
        values_(local.values()),
        first_(first),
        rows_(std::min<std::int32_t>(W, end - first)) {
    for (int l = 0; l < rows_; ++l) {
      start_[l] = local.row_ptr[at(first + l)];
      stop_[l] = local.row_ptr[at(first + l) + 1];
      longest_ = std::max(longest_, stop_[l] - start_[l]);
    }
  }

  // On a grid, entry k of neighbouring rows lies on one diagonal until a row lacks it. Taking the
  // columns of a slice diagonal by diagonal keeps them consecutive. Worth it if little is padded.
  // Returns how many there are, laid out in `found`; -1 where it is not worth it.
  std::int64_t take_diagonals(SliceColumns<T, W>& found) const {
    const std::int64_t most = longest_ + longest_ / 4 + 1;
    if (diagonals_of_pair(0, rows_ - 1) > most) return -1;  // most irregular rows end here
    found.make_room(most + 1);
    std::int64_t cursor[W];
    std::copy_n(start_, W, cursor);
    std::int64_t count = 0;
    while (take_diagonal(cursor, found.index.data() + count * W, found.value.data() + count * W))
      if (++count > most) return -1;
    return count;
  }

  // `scratch` holds what is found on the way; the same one serves all slices.
  void append(SlicedRows<T, W>& out, Indices indices, SliceColumns<T, W>& scratch) const {
    if (alike()) return append_alike(out, indices);
    std::int64_t count = take_diagonals(scratch);
    if (count < 0) {
      count = longest_;
      scratch.make_room(count);
      for (std::int64_t k = 0; k < count; ++k)
        take_position(k, scratch.index.data() + k * W, scratch.value.data() + k * W);
    }
    append_indices(count, scratch.index.data(), indices, *out.pattern);
    const T* const values = scratch.value.data();
    out.val.insert(out.val.end(), values, values + count * W);
  }

 private:
  static constexpr std::int32_t kPadding = -1;

  // Whether all rows have the same diagonals, as most slices of a grid have.
  bool alike() const {
    if (rows_ < W) return false;
    std::int32_t apart = 0;
    for (int l = 1; l < W; ++l) {
      if (stop_[l] - start_[l] != longest_) return false;
      const std::int32_t* const other = columns_ + start_[l];
      for (std::int64_t k = 0; k < longest_; ++k) apart |= other[k] - columns_[start_[0] + k] - l;
    }
    return apart == 0 && stop_[0] - start_[0] == longest_;
  }

  void append_alike(SlicedRows<T, W>& out, Indices indices) const {
    SlicePattern& pattern = *out.pattern;
    const std::int32_t* const first = columns_ + start_[0];
    pattern.base.insert(pattern.base.end(), first, first + longest_);
    pattern.real.resize(pattern.real.size() + at(longest_), std::uint8_t{(1U << W) - 1});
    pattern.origin.push_back(indices == Indices::narrow ? 0 : -1);
    const std::size_t before = out.val.size();
    out.val.resize(before + at(longest_ * W));
    T* const to = out.val.data() + before;
    for (int l = 0; l < W; ++l)
      for (std::int64_t k = 0; k < longest_; ++k) to[k * W + l] = values_[start_[l] + k];
    pattern.slice_ptr.push_back(pattern.slice_ptr.back() + longest_);
  }

  // Number of diagonals on which two rows together have entries.
  std::int64_t diagonals_of_pair(int a, int b) const {
    std::int64_t i = start_[a];
    std::int64_t j = start_[b];
    std::int64_t shared = 0;
    while (i < stop_[a] && j < stop_[b]) {
      const std::int64_t left = std::int64_t{columns_[i]} - a;
      const std::int64_t right = std::int64_t{columns_[j]} - b;
      shared += left == right ? 1 : 0;
      i += left <= right ? 1 : 0;
      j += right <= left ? 1 : 0;
    }
    return stop_[a] - start_[a] + stop_[b] - start_[b] - shared;
  }

  // Next diagonal: the smallest column - row among the cursors. False when all rows are spent.
  bool take_diagonal(std::int64_t* cursor, std::int32_t* index, T* value) const {
    std::int64_t offset = std::numeric_limits<std::int64_t>::max();
    for (int l = 0; l < rows_; ++l)
      if (cursor[l] < stop_[l]) offset = std::min(offset, std::int64_t{columns_[cursor[l]]} - l);
    if (offset == std::numeric_limits<std::int64_t>::max()) return false;
    for (int l = 0; l < W; ++l) {
      const bool here = l < rows_ && cursor[l] < stop_[l] && columns_[cursor[l]] - l == offset;
      index[l] = here ? columns_[cursor[l]] : kPadding;
      value[l] = here ? values_[cursor[l]] : T{0};
      if (here) ++cursor[l];
    }
    return true;
  }

  void take_position(std::int64_t k, std::int32_t* index, T* value) const {
    for (int l = 0; l < W; ++l) {
      const bool here = l < rows_ && start_[l] + k < stop_[l];
      index[l] = here ? columns_[start_[l] + k] : kPadding;
      value[l] = here ? values_[start_[l] + k] : T{0};
    }
  }

  // The first of W consecutive indices, -1 where a column has others.
  std::int64_t first_of_column(const std::int32_t* index) const {
    int real = 0;
    while (index[real] == kPadding) ++real;
    const std::int64_t first = std::int64_t{index[real]} - real;
    bool consecutive = first >= 0;
    for (int l = 0; l < W && consecutive; ++l)
      consecutive = index[l] == kPadding ? first + l < local_.rows() : index[l] == first + l;
    return consecutive ? first : -1;
  }

  // Padded lanes read some local entry and multiply it by 0: one that another lane reads, if any is
  // local. They must read no ghost: no wait ensures here that it has arrived.
  void fill_padding(std::int32_t* index) const {
    std::int32_t some = std::min(first_, local_.rows() - 1);
    for (int l = 0; l < W; ++l)
      if (index[l] != kPadding && index[l] < local_.rows()) some = index[l];
    for (int l = 0; l < W; ++l)
      if (index[l] == kPadding) index[l] = some;
  }

  void append_indices(std::int64_t count, std::int32_t* index, Indices indices,
                      SlicePattern& out) const {
    std::int32_t least = std::numeric_limits<std::int32_t>::max(), most = 0;
    std::vector<std::int64_t> first(at(count));
    for (std::int64_t k = 0; k < count; ++k) {
      std::int32_t* const here = index + k * W;
      unsigned lanes = 0;
      for (int l = 0; l < W; ++l) lanes |= here[l] != kPadding ? 1U << l : 0U;
      out.real.push_back(static_cast<std::uint8_t>(lanes));
      first[at(k)] = first_of_column(here);
      if (first[at(k)] >= 0) continue;
      fill_padding(here);
      least = std::min(least, *std::min_element(here, here + W));
      most = std::max(most, *std::max_element(here, here + W));
    }
    const bool narrow =
        indices == Indices::narrow && most - least <= std::numeric_limits<std::uint16_t>::max();
    out.origin.push_back(narrow ? std::min(least, most) : -1);
    auto next = static_cast<std::int64_t>((narrow ? out.narrow.size() : out.gather.size()) / W);
    for (std::int64_t k = 0; k < count; ++k) {
      const bool one = first[at(k)] >= 0;
      out.base.push_back(static_cast<std::int32_t>(one ? first[at(k)] : ~next++));
      for (int l = 0; l < (one ? 0 : W); ++l) {
        if (narrow)
          out.narrow.push_back(static_cast<std::uint16_t>(index[k * W + l] - least));
        else
          out.gather.push_back(index[k * W + l]);
      }
    }
    out.slice_ptr.push_back(out.slice_ptr.back() + count);
  }

  const LocalSystem<T>& local_;
  const std::int32_t* columns_;
  const T* values_;
  std::int32_t first_;
  int rows_;
  std::int64_t start_[W] = {};
  std::int64_t stop_[W] = {};
  std::int64_t longest_ = 0;
};

}  // namespace

double SlicePattern::bytes() const {
  const auto of = [](const auto& array) {
    return static_cast<double>(array.size() * sizeof(array[0]));
  };
  return of(slice_ptr) + of(origin) + of(base) + of(gather) + of(narrow) + of(real);
}

template <class T, int W>
void reserve_slices(std::int64_t entries, SlicedRows<T, W>& out) {
  SlicePattern& pattern = *out.pattern;
  const std::size_t most = out.val.size() + at(entries + entries / 4);
  out.val.reserve(most);
  pattern.gather.reserve(most);
  pattern.narrow.reserve(most);
  pattern.base.reserve(most / W);
  pattern.real.reserve(most / W);
}

template <class T, int W>
void append_slices(const LocalSystem<T>& local, RowRange rows, SlicedRows<T, W>& out,
                   Indices indices) {
  SlicePattern& pattern = *out.pattern;
  if (pattern.slice_ptr.empty()) pattern.slice_ptr.push_back(0);
  SliceColumns<T, W> scratch;
  for (std::int32_t row = rows.begin; row < rows.end; row += W)
    Slice<T, W>(local, row, rows.end).append(out, indices, scratch);
  require(pattern.real.size() < at(std::numeric_limits<std::int32_t>::max()),
          "one block's share of the matrix is too large; use more PEs or blocks");
}

#define CPUFREE_FOR(T)                                                 \
  template void reserve_slices<T, 8>(std::int64_t, SlicedRows<T, 8>&); \
  template void append_slices<T, 8>(const LocalSystem<T>&, RowRange, SlicedRows<T, 8>&, Indices);
CPUFREE_FOR(float)
CPUFREE_FOR(double)
#undef CPUFREE_FOR

}  // namespace cpufree
