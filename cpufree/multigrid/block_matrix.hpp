// Sparse matrices of dense blocks while a hierarchy is set up: one block for each pair of nodes.
#pragma once

#include <bit>
#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

#include "cpufree/multigrid/sparse.hpp"

namespace cpufree::multigrid {

// Not owned. Entry k of the pattern has height x width numbers, row by row.
struct BlockView {
  std::int32_t height = 1, width = 1, columns = 0;
  std::span<const std::int64_t> row_ptr;
  std::span<const std::int32_t> col;
  const double* val = nullptr;

  std::int32_t rows() const { return static_cast<std::int32_t>(row_ptr.size()) - 1; }
  std::int64_t begin(std::int32_t row) const { return row_ptr[at(row)]; }
  std::int64_t end(std::int32_t row) const { return row_ptr[at(row) + 1]; }
  std::int64_t area() const { return std::int64_t{height} * width; }
  const double* block(std::int64_t k) const { return val + k * area(); }
};

struct BlockMatrix {
  std::int32_t height = 1, width = 1;
  SparseMatrix entries;  // whose val has height x width numbers for each

  BlockView view() const {
    return {height, width, entries.columns, entries.row_ptr, entries.col, entries.val.data()};
  }
};

inline BlockView view_of(const SparseMatrix& a) {
  return {1, 1, a.columns, a.row_ptr, a.col, a.val.data()};
}

// A number that the compiler knows, so that loops over small blocks are unrolled.
template <int N>
using Known = std::integral_constant<int, N>;

template <class A, class B>
auto times(A a, B b) {
  if constexpr (std::same_as<A, int>)
    return a * b;
  else
    return Known<A::value * B::value>();
}

// c += a b, of m x n, m x k and k x n numbers; with `turned`, a is k x m and c += a^T b.
template <bool turned, class M, class K, class N>
inline void add_product(double* c, const double* a, const double* b, M m, K k, N n) {
  for (int i = 0; i < m; ++i)
    for (int e = 0; e < k; ++e) {
      const double factor = turned ? a[e * m + i] : a[i * k + e];
      for (int j = 0; j < n; ++j) c[i * n + j] += factor * b[e * n + j];
    }
}

// f(height, width): known numbers where the sizes are usual ones, plain ones otherwise.
template <class F>
auto with_sizes(std::int32_t height, std::int32_t width, F&& f) {
  if (height == 1 && width == 1) return f(Known<1>(), Known<1>());
  if (height == 2 && width == 2) return f(Known<2>(), Known<2>());
  if (height == 2 && width == 3) return f(Known<2>(), Known<3>());
  if (height == 3 && width == 3) return f(Known<3>(), Known<3>());
  if (height == 3 && width == 6) return f(Known<3>(), Known<6>());
  if (height == 6 && width == 6) return f(Known<6>(), Known<6>());
  return f(int{height}, int{width});
}

// The sums of one row's blocks of `Area` numbers, column by column (Gustavson 1978, "Two fast
// algorithms for sparse matrices"). What is added to a column is summed in the order in which it
// comes.
template <class Area>
class RowSums {
 public:
  RowSums(std::int32_t columns, Area area) : area_(area), place_(at(columns), 0) {}

  // add_to(block, k) for k from begin to end - 1, with the block of column col[k], zeros if it is
  // new. Where an entry is a number there is no branch: which column is
  // new cannot be predicted, and compilers make branches of conditions.
  template <class F>
  void add(std::span<const std::int32_t> col, std::int64_t begin, std::int64_t end, F&& add_to) {
    reserve(end - begin);
    // In registers: what is written could be these, for all the compiler knows.
    const std::int32_t base = base_;
    std::int32_t count = count_, *const place_of = place_.data(), *const columns = columns_.data();
    double* const values = values_.data();
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int32_t column = col[at(k)];
      std::int32_t place = place_of[column] - base;
      const std::int32_t fresh = place >> 31;  // all bits or none
      place = (place & ~fresh) | (count & fresh);
      place_of[column] = base + place;
      columns[count] = column;
      count -= fresh;
      double* const block = values + std::int64_t{place} * area_;
      if constexpr (std::same_as<Area, Known<1>>)
        *block = std::bit_cast<double>(std::bit_cast<std::int64_t>(*block) & ~std::int64_t{fresh});
      else if (fresh != 0)
        std::fill_n(block, at(area_), 0.0);
      add_to(block, k);
    }
    count_ = count;
  }
  std::span<std::int32_t> columns() { return std::span(columns_).first(at(count_)); }
  const double* block(std::size_t found) const { return values_.data() + found * at(area_); }
  const double* block_of(std::int32_t column) const {
    return block(at(place_[at(column)] - base_));
  }
  // The row has these columns, and what is added to others by `add_expected` is lost.
  void expect(std::span<const std::int32_t> col) {
    reserve(std::ssize(col) + 1);
    for (const std::int32_t column : col) place_[at(column)] = base_ + count_++;
    std::fill_n(values_.data(), at(count_) * at(area_), 0.0);
  }
  template <class F>
  void add_expected(std::span<const std::int32_t> col, std::int64_t begin, std::int64_t end,
                    F&& add_to) {
    const std::int32_t base = base_, count = count_, *const place_of = place_.data();
    double* const values = values_.data();
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int32_t place = place_of[col[at(k)]] - base;
      add_to(values + std::int64_t{place < 0 ? count : place} * area_, k);
    }
  }
  // Writes the blocks of the columns that were expected, in their order, and forgets all.
  void move_to(double* to) {
    std::copy_n(values_.data(), at(count_) * at(area_), to);
    clear();
  }
  // Forgets all.
  void clear() {
    base_ += count_;
    count_ = 0;
    if (base_ > (1 << 30)) {
      std::ranges::fill(place_, 0);
      base_ = 1;
    }
  }
  // Appends them by column, from column `least` on, and forgets all.
  void move_to(std::vector<std::int32_t>& col, std::vector<double>& val, std::int32_t least = 0) {
    const auto all = columns();
    const auto end =
        least == 0 ? all.end()
                   : std::partition(all.begin(), all.end(), [&](auto c) { return c >= least; });
    std::sort(all.begin(), end);
    const std::size_t before = val.size();
    col.insert(col.end(), all.begin(), end);
    val.resize(before + at(end - all.begin()) * at(area_));
    double* to = val.data() + before;
    for (auto column = all.begin(); column != end; ++column)
      to = std::copy_n(block_of(*column), at(area_), to);
    clear();
  }

 private:
  void reserve(std::int64_t more) {
    const std::size_t needed = at(count_) + at(std::min(more, std::ssize(place_) + 1)) + 1;
    if (needed <= columns_.size()) return;
    columns_.resize(2 * needed);
    values_.resize(2 * needed * at(area_));
  }

  [[no_unique_address]] Area area_;
  // Of each column base + its place among those that have come; less: it has not come.
  std::vector<std::int32_t> place_;
  std::int32_t base_ = 1, count_ = 0;
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
};

// Sums of rows take a number for each column and thread: as many threads as these are no more than
// the entries of the matrix.
inline int threads_for(std::int64_t columns, std::int64_t entries) {
  return static_cast<int>(
      std::clamp<std::int64_t>(entries / std::max<std::int64_t>(1, columns), 1, available_cores()));
}

}  // namespace cpufree::multigrid
