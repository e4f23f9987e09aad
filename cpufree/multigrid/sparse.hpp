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

// Where a matrix has entries.
struct SparsePattern {
  PageVector<std::int64_t> row_ptr;
  PageVector<std::int32_t> col;

  static SparsePattern of(const SparseMatrix& a) { return {a.row_ptr, a.col}; }
  std::span<const std::int32_t> columns_of(std::int32_t row) const {
    return std::span(col).subspan(at(row_ptr[at(row)]),
                                  at(row_ptr[at(row) + 1] - row_ptr[at(row)]));
  }
};

// Rows of one piece of work. Where pieces begin depends on nothing but the number of rows, so that
// sums over pieces have the same bits on any number of cores.
inline constexpr std::int32_t kPieceRows = 2048;
inline std::int32_t pieces_of(std::int32_t rows) { return (rows + kPieceRows - 1) / kPieceRows; }

// f(piece, rows) for all pieces, by all cores.
template <class F>
void for_pieces(std::int32_t rows, F&& f) {
  in_parallel(pieces_of(rows), [&](int piece) {
    const std::int32_t first = piece * kPieceRows;
    f(piece, RowRange{first, std::min(rows, first + kPieceRows)});
  });
}

// f(row) for all rows, by all cores; `least` rows are worth a thread.
template <class F>
void for_rows(std::int32_t rows, F&& f, std::int32_t least = kPieceRows) {
  const int parts = std::clamp(rows / least, 1, 8 * available_cores());
  const auto first = [&](int part) {
    return static_cast<std::int32_t>(std::int64_t{rows} * part / parts);
  };
  in_parallel(parts, [&](int part) {
    for (std::int32_t row = first(part); row < first(part + 1); ++row) f(row);
  });
}
inline constexpr std::int32_t kLongRows = 64;  // as many of these

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

// Makes a matrix of rows that append(mine, row, col, val) appends to two vectors, in order; `each`:
// numbers for an entry. Each of N threads makes what it works with once, mine = make().
template <class Make, class F>
SparseMatrix matrix_of_rows(std::int32_t rows, std::int32_t columns, int threads, Make&& make,
                            F&& append, std::int64_t each = 1);

// The same where the pattern is known: write(mine, row, its columns, to) writes the row's numbers.
template <class Make, class F>
SparseMatrix matrix_of_pattern(const SparsePattern& pattern, std::int32_t columns, int threads,
                               Make&& make, F&& write, std::int64_t each = 1);

SparseMatrix transpose(const SparseMatrix& a);

// Inverse square roots of a diagonal; where an entry is not positive, 1.
std::vector<double> inverse_roots(const SparseMatrix& a);

// S A S, with a diagonal of ones.
void scale_both_sides(SparseMatrix& a, const std::vector<double>& s);
// Pieces for all threads until the end, of few rows where these are long.
inline std::int32_t rows_of_piece(std::int32_t rows, int threads) {
  return std::clamp(rows / (16 * threads), 1, kPieceRows);
}
template <class Make, class F>
SparseMatrix matrix_of_rows(std::int32_t rows, std::int32_t columns, int threads, Make&& make,
                            F&& append, std::int64_t each) {
  struct Piece {
    std::int64_t first = 0;
    std::vector<std::int32_t> col;
    std::vector<double> val;
  };
  const std::int32_t of_piece = rows_of_piece(rows, threads);
  std::vector<Piece> pieces(at((rows + of_piece - 1) / of_piece));
  const auto rows_of = [&](int p) {
    return RowRange{p * of_piece, std::min(rows, (p + 1) * of_piece)};
  };
  SparseMatrix made;
  made.columns = columns;
  made.row_ptr.resize(at(rows) + 1);
  made.row_ptr[0] = 0;
  in_parallel(static_cast<int>(pieces.size()), threads, make, [&](auto& mine, int p) {
    Piece& piece = pieces[at(p)];
    for (std::int32_t row = rows_of(p).begin; row < rows_of(p).end; ++row) {
      append(mine, row, piece.col, piece.val);
      made.row_ptr[at(row) + 1] = std::ssize(piece.col);
    }
  });
  std::int64_t before = 0;  // row_ptr counts from the piece's first entry until here
  for (Piece& piece : pieces) piece.first = std::exchange(before, before + std::ssize(piece.col));
  made.col.resize(at(before));
  made.val.resize(at(before * each));
  in_parallel(static_cast<int>(pieces.size()), [&](int p) {
    Piece& piece = pieces[at(p)];
    std::ranges::copy(piece.col, made.col.begin() + piece.first);
    std::ranges::copy(piece.val, made.val.begin() + piece.first * each);
    for (std::int32_t row = rows_of(p).begin; row < rows_of(p).end; ++row)
      made.row_ptr[at(row) + 1] += piece.first;
    piece = {};
  });
  return made;
}

template <class Make, class F>
SparseMatrix matrix_of_pattern(const SparsePattern& pattern, std::int32_t columns, int threads,
                               Make&& make, F&& write, std::int64_t each) {
  SparseMatrix made{columns, pattern.row_ptr, pattern.col, {}};
  made.val.resize(at(made.nonzeros() * each));
  const std::int32_t rows = made.rows(), of_piece = rows_of_piece(rows, threads);
  in_parallel((rows + of_piece - 1) / of_piece, threads, make, [&](auto& mine, int p) {
    const std::int32_t end = std::min(rows, (p + 1) * of_piece);
    for (std::int32_t row = p * of_piece; row < end; ++row)
      write(mine, row, pattern.columns_of(row), made.val.data() + made.begin(row) * each);
  });
  return made;
}

}  // namespace cpufree::multigrid
