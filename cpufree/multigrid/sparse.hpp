// Sparse matrices while a hierarchy is set up, and loops over their rows by all cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/pages.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/csr.hpp"

namespace cpufree::multigrid {

// Compressed rows, columns increasing within each.
struct SparseMatrix {
  std::int32_t columns = 0;
  PageVector<std::int64_t> row_ptr;  // rows + 1
  PageVector<std::int32_t> col;
  PageVector<double> val;

  std::int32_t rows() const { return static_cast<std::int32_t>(row_ptr.size()) - 1; }
  std::int64_t nonzeros() const { return row_ptr.back(); }
  std::int64_t begin(std::int32_t row) const { return row_ptr[at(row)]; }
  std::int64_t end(std::int32_t row) const { return row_ptr[at(row) + 1]; }
};

// Rows of one piece of work. Where pieces begin depends on nothing but the number of rows, so that
// sums over pieces have the same bits on any number of cores.
inline constexpr std::int32_t kPieceRows = 8192;
inline std::int32_t pieces_of(std::int32_t rows) { return (rows + kPieceRows - 1) / kPieceRows; }

// f(piece, rows) for all pieces, by all cores.
template <class F>
void for_pieces(std::int32_t rows, F&& f) {
  in_parallel(pieces_of(rows), [&](int piece) {
    const std::int32_t first = piece * kPieceRows;
    f(piece, RowRange{first, std::min(rows, first + kPieceRows)});
  });
}

// f(row) for all rows, by all cores.
template <class F>
void for_rows(std::int32_t rows, F&& f) {
  for_pieces(rows, [&](int, RowRange range) {
    for (std::int32_t row = range.begin; row < range.end; ++row) f(row);
  });
}

// The sum of f(row), in one order on any number of cores.
template <class F>
double sum_over_rows(std::int32_t rows, F&& f) {
  std::vector<double> sums(at(pieces_of(rows)), 0.0);
  for_pieces(rows, [&](int piece, RowRange range) {
    double sum = 0.0;
    for (std::int32_t row = range.begin; row < range.end; ++row) sum += f(row);
    sums[at(piece)] = sum;
  });
  double sum = 0.0;
  for (const double piece : sums) sum += piece;
  return sum;
}

// The sums of one row's entries, column by column (Gustavson 1978, "Two fast algorithms for sparse
// matrices"). What is added to a column is summed in the order in which it comes.
class RowSums {
 public:
  explicit RowSums(std::int32_t columns) : place_(at(columns), -1) {}

  void add(std::int32_t column, double value) {
    std::int32_t& place = place_[at(column)];
    if (place >= 0) {
      values_[at(place)] += value;
    } else {
      place = static_cast<std::int32_t>(columns_.size());
      columns_.push_back(column);
      values_.push_back(value);
    }
  }
  // Appends them by column, and forgets them.
  void move_to(std::vector<std::int32_t>& col, std::vector<double>& val, bool sorted = true) {
    if (sorted) std::ranges::sort(columns_);
    for (const std::int32_t column : columns_) {
      col.push_back(column);
      val.push_back(values_[at(std::exchange(place_[at(column)], -1))]);
    }
    columns_.clear();
    values_.clear();
  }

 private:
  std::vector<std::int32_t> place_;  // of each column among those that have come, or -1
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
};

// Makes a matrix of rows that append(rows)(row, col, val) appends to two vectors, in order; some
// `expected` entries in all.
template <class F>
SparseMatrix matrix_of_rows(std::int32_t rows, std::int32_t columns, std::int64_t expected,
                            F&& append);

SparseMatrix transpose(const SparseMatrix& a);

// a b. Each row is summed in the order of a's columns, on any number of cores. Without `sorted`,
// columns of a row lie in the order in which they are found.
SparseMatrix multiply(const SparseMatrix& a, const SparseMatrix& b, bool sorted = true);

// Inverse square roots of a diagonal; where an entry is not positive, 1.
std::vector<double> inverse_roots(const SparseMatrix& a);

// S A S, with a diagonal of ones.
void scale_both_sides(SparseMatrix& a, const std::vector<double>& s);
// How many multiplications a b takes.
double multiplications(const SparseMatrix& a, const SparseMatrix& b);

template <class F>
SparseMatrix matrix_of_rows(std::int32_t rows, std::int32_t columns, std::int64_t expected,
                            F&& append) {
  struct Piece {
    std::vector<std::int32_t> col;
    std::vector<double> val;
  };
  std::vector<Piece> pieces(at(pieces_of(rows)));
  SparseMatrix made;
  made.columns = columns;
  made.row_ptr.resize(at(rows) + 1);
  made.row_ptr[0] = 0;
  for_pieces(rows, [&](int p, RowRange range) {
    Piece& piece = pieces[at(p)];
    auto&& of_piece = append(range);
    const auto room = at(expected * range.size() / rows * 5 / 4);
    piece.col.reserve(room), piece.val.reserve(room);
    for (std::int32_t row = range.begin; row < range.end; ++row) {
      of_piece(row, piece.col, piece.val);
      made.row_ptr[at(row) + 1] = static_cast<std::int64_t>(piece.col.size());
    }
  });
  std::int64_t before = 0;  // row_ptr counts from the piece's first entry until here
  std::vector<std::int64_t> first;
  for (const Piece& piece : pieces) {
    first.push_back(before);
    before += static_cast<std::int64_t>(piece.col.size());
  }
  made.col.resize(at(before));
  made.val.resize(at(before));
  for_pieces(rows, [&](int p, RowRange range) {
    Piece& piece = pieces[at(p)];
    std::ranges::copy(piece.col, made.col.begin() + first[at(p)]);
    std::ranges::copy(piece.val, made.val.begin() + first[at(p)]);
    for (std::int32_t row = range.begin; row < range.end; ++row)
      made.row_ptr[at(row) + 1] += first[at(p)];
    piece = {};
  });
  return made;
}

}  // namespace cpufree::multigrid
