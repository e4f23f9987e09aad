// Which entries of a sparse matrix each column has.
#pragma once

#include <numeric>
#include <vector>

#include "cpufree/multigrid/block_matrix.hpp"

namespace cpufree::multigrid {

// Where the entries of a matrix lie in its transpose. Parts of the rows are counted, and later
// written, each by a thread.
class Transposition {
 public:
  explicit Transposition(const BlockView& a)
      : a_(a), parts_(threads_for(a.columns, a.row_ptr.back())) {
    next_.assign(at(parts_), std::vector<std::int64_t>(at(a.columns), 0));
    in_parallel(parts_, [&](int part) {
      auto& count = next_[at(part)];
      for (std::int64_t k = a.begin(first_row(part)); k < a.begin(first_row(part + 1)); ++k)
        ++count[at(a.col[at(k)])];
    });
    first_.resize(at(a.columns) + 1);
    first_[0] = 0;
    for (std::int32_t c = 0; c < a.columns; ++c) {
      std::int64_t end = first_[at(c)];
      for (auto& next : next_) end += std::exchange(next[at(c)], end);
      first_[at(c) + 1] = end;
    }
  }
  PageVector<std::int64_t>&& first() { return std::move(first_); }

  // put(to, row, k): entry k of this row becomes entry `to`. Once.
  template <class F>
  void write(F&& put) {
    in_parallel(parts_, [&](int part) {
      auto& next = next_[at(part)];
      for (std::int32_t row = first_row(part); row < first_row(part + 1); ++row)
        for (std::int64_t k = a_.begin(row); k < a_.end(row); ++k)
          put(at(next[at(a_.col[at(k)])]++), row, k);
    });
  }

 private:
  std::int32_t first_row(int part) const {
    return static_cast<std::int32_t>(std::int64_t{a_.rows()} * part / parts_);
  }
  const BlockView& a_;
  int parts_;
  PageVector<std::int64_t> first_;               // of each column, and the end
  std::vector<std::vector<std::int64_t>> next_;  // [part][column]
};

// The entries of each column, by row.
struct TransposedPattern {
  PageVector<std::int64_t> first;  // of each column, and the end
  PageVector<std::int32_t> row;
  PageVector<std::int64_t> place;  // in the matrix

  std::int64_t begin(std::int32_t column) const { return first[at(column)]; }
  std::int64_t end(std::int32_t column) const { return first[at(column) + 1]; }
};

inline TransposedPattern transposed_pattern(const BlockView& a) {
  TransposedPattern t;
  t.row.resize(a.col.size());
  t.place.resize(a.col.size());
  Transposition turn(a);
  turn.write([&](std::size_t to, std::int32_t row, std::int64_t k) {
    t.row[to] = row;
    t.place[to] = k;
  });
  t.first = turn.first();
  return t;
}

}  // namespace cpufree::multigrid
