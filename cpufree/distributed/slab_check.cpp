#include "cpufree/distributed/slab_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

std::string text(double value) {
  std::array<char, 40> digits{};
  std::snprintf(digits.data(), digits.size(), "%.17g", value);
  return digits.data();
}

std::string place(std::int64_t row, std::int64_t column) {
  return "entry (row " + std::to_string(row) + ", column " + std::to_string(column) + ")";
}

std::string missing(std::int64_t first, std::int64_t end) {
  if (end - first == 1) return "row " + std::to_string(first) + " is missing: ";
  return "rows " + std::to_string(first) + " to " + std::to_string(end - 1) + " are missing: ";
}

struct Part {
  std::int64_t first, end, all;
};
struct Misfit {
  int rank;
  std::string what;
};

// The first of the parts, by rank, that makes them other than all rows of one matrix.
std::optional<Misfit> find_misfit(const std::vector<Part>& parts) {
  std::int64_t next = 0;
  for (int k = 0; k < static_cast<int>(parts.size()); ++k) {
    const Part& part = parts[at(k)];
    const std::string rank = "rank " + std::to_string(k);
    const std::string begins = rank + " begins at row " + std::to_string(part.first);
    if (part.all != parts[0].all)
      return Misfit{k, rank + " has rows of a matrix with " + std::to_string(part.all) +
                           " rows, rank 0 of one with " + std::to_string(parts[0].all)};
    if (part.first < 0) return Misfit{k, begins + ": rows are numbered from 0"};
    if (part.first > next) return Misfit{k, missing(next, part.first) + begins};
    if (part.first < next)
      return Misfit{k, begins + ", but the ranks before it end with row " +
                           std::to_string(next - 1) +
                           ": each row belongs to one rank, in the order of ranks"};
    next = part.end;
  }
  const int last = static_cast<int>(parts.size()) - 1;
  const std::int64_t all = parts[0].all;
  const std::string ends =
      "rank " + std::to_string(last) + " ends with row " + std::to_string(next - 1);
  if (next < all) return Misfit{last, missing(next, all) + ends};
  if (next > all)
    return Misfit{last, ends + ", but the matrix has " + std::to_string(all) + " rows"};
  if (all < 1) return Misfit{0, "the matrix has no rows"};
  return {};
}

template <class T, class I>
void check_arrays(const RowSlab<T, I>& slab) {
  require(!slab.row_ptr.empty() && slab.row_ptr.front() == 0 &&
              std::ranges::is_sorted(slab.row_ptr) &&
              slab.row_ptr.back() == static_cast<std::int64_t>(slab.col.size()) &&
              slab.col.size() == slab.val.size(),
          "indptr must rise from 0 to the number of columns and of values");
  require(slab.rows() < std::numeric_limits<std::int32_t>::max(),
          "a rank can hold at most 2^31 - 2 rows, not " + std::to_string(slab.rows()) +
              "; use more ranks");
}

// The columns of one row of the slab.
template <class T, class I>
std::span<const I> columns_of(const RowSlab<T, I>& slab, std::int64_t row) {
  return slab.col.subspan(at(slab.row_ptr[at(row)]),
                          at(slab.row_ptr[at(row) + 1] - slab.row_ptr[at(row)]));
}

// Where an entry of a row of the slab is stored; null: it is not.
template <class T, class I>
const T* find(const RowSlab<T, I>& slab, std::int64_t row, std::int64_t column) {
  const auto columns = columns_of(slab, row);
  const auto found = std::ranges::lower_bound(columns, column);
  if (found == columns.end() || *found != column) return nullptr;
  return slab.val.data() + slab.row_ptr[at(row)] + (found - columns.begin());
}

template <class T, class I>
void check_diagonal(const RowSlab<T, I>& slab, std::int64_t row) {
  const std::int64_t number = slab.first + row;
  const T* const diagonal = find(slab, row, number);
  if (diagonal != nullptr && *diagonal > 0) return;
  const std::string what = columns_of(slab, row).empty() ? " is empty"
                           : diagonal == nullptr
                               ? " has no diagonal entry"
                               : " has the diagonal entry " + text(static_cast<double>(*diagonal));
  throw BadEntry(BadEntry::Kind::diagonal, number, number,
                 "row " + std::to_string(number) + what +
                     "; a positive definite matrix has a positive diagonal");
}

// One row; returns its largest asymmetry.
template <class T, class I>
double check_row(const RowSlab<T, I>& slab, std::int64_t row, const EntryRule& rule) {
  const std::int64_t number = slab.first + row;
  double worst = 0.0;
  for (std::int64_t k = slab.row_ptr[at(row)]; k < slab.row_ptr[at(row) + 1]; ++k) {
    const std::int64_t column = slab.col[at(k)];
    const T value = slab.val[at(k)];
    if (!std::isfinite(value))
      throw BadEntry(BadEntry::Kind::not_finite, number, column,
                     place(number, column) + " is " + text(static_cast<double>(value)) +
                         "; all entries must be finite. Look for divisions by zero or overflow "
                         "where the matrix is made.");
    if (column == number || column < slab.first || column >= slab.end()) continue;
    const std::int64_t there = column - slab.first;
    const T* const mirrored = find(slab, there, number);
    if (mirrored == nullptr)
      throw BadEntry(BadEntry::Kind::not_symmetric, number, column,
                     "the pattern of the matrix is not symmetric: " + place(number, column) +
                         " has no " + place(column, number) + "; store it, were it 0");
    if (rule.wanted == Wanted::finite || *mirrored == value || !std::isfinite(*mirrored)) continue;
    const auto size = [&](std::int64_t of) {
      return size_of_row(slab, static_cast<std::int32_t>(of), rule.wanted);
    };
    worst = std::max(worst, asymmetry_of({number, column, static_cast<double>(value),
                                          static_cast<double>(*mirrored), size(row), size(there)},
                                         rule));
  }
  if (rule.wanted == Wanted::positive_diagonal) check_diagonal(slab, row);
  return worst;
}

}  // namespace

template <class T>
std::vector<std::int64_t> gather_bounds(const RowSlab<T>& slab, Team& team) {
  const auto parts = each(team, "rows of the ranks", Part{slab.first, slab.end(), slab.all_rows});
  if (const auto found = find_misfit(parts)) {
    // All find the same, and it is told once, by the rank that it is about: that one fails, and
    // does not come to the call in which the others wait for its verdict.
    if (found->rank != team.rank()) barrier(team, "rows that fit");
    throw InvalidInput(found->what);
  }
  std::vector<std::int64_t> bounds;
  for (const Part& part : parts) bounds.push_back(part.first);
  bounds.push_back(slab.all_rows);
  return bounds;
}

template <class T, class I>
std::vector<char> find_boundary(const RowSlab<T, I>& slab) {
  check_arrays(slab);
  std::vector<char> remote(at(slab.rows()), 0);
  for_chunks(slab.row_ptr, [&](RowRange chunk) {
    for (std::int32_t row = chunk.begin; row < chunk.end; ++row) {
      const auto columns = columns_of(slab, row);
      if (columns.empty()) continue;
      for (std::size_t k = 1; k < columns.size(); ++k)
        if (columns[k - 1] >= columns[k])
          throw InvalidInput("row " + std::to_string(slab.first + row) + " has column " +
                             std::to_string(columns[k]) + " after column " +
                             std::to_string(columns[k - 1]) +
                             ": the columns of each row must increase strictly");
      const std::int64_t wrong = columns.front() < 0 ? columns.front() : columns.back();
      if (wrong < 0 || wrong >= slab.all_rows)
        throw InvalidInput("row " + std::to_string(slab.first + row) + " has column " +
                           std::to_string(wrong) + "; columns run from 0 to " +
                           std::to_string(slab.all_rows - 1));
      remote[at(row)] = columns.front() < slab.first || columns.back() >= slab.end() ? 1 : 0;
    }
  });
  return remote;
}

template <class T, class I>
double check_own_entries(const RowSlab<T, I>& slab, const EntryRule& rule) {
  double worst = 0.0;
  std::mutex mutex;
  for_chunks(slab.row_ptr, [&](RowRange chunk) {
    double here = 0.0;
    for (std::int32_t row = chunk.begin; row < chunk.end; ++row)
      here = std::max(here, check_row(slab, row, rule));
    const std::lock_guard lock(mutex);
    worst = std::max(worst, here);
  });
  return worst;
}

template <class T, class I>
double size_of_row(const RowSlab<T, I>& slab, std::int32_t row, Wanted wanted) {
  if (wanted != Wanted::positive_diagonal) {
    double most = 0.0;
    for (std::int64_t k = slab.row_ptr[at(row)]; k < slab.row_ptr[at(row) + 1]; ++k)
      most = std::max(most, std::abs(static_cast<double>(slab.val[at(k)])));
    return most;
  }
  const T* const diagonal = find(slab, row, slab.first + row);
  return diagonal == nullptr ? 0.0 : std::abs(static_cast<double>(*diagonal));
}

double asymmetry_of(const Pair& pair, const EntryRule& rule) {
  // Roots first: the product of two sizes may overflow.
  const double scale = std::sqrt(pair.size_here) * std::sqrt(pair.size_there);
  const double size = std::abs(pair.here - pair.there);
  const bool definite = rule.wanted == Wanted::positive_diagonal;
  if (size > rule.tolerance * scale)
    throw BadEntry(BadEntry::Kind::not_symmetric, pair.row, pair.column,
                   "the matrix is not symmetric: " + place(pair.row, pair.column) + " is " +
                       text(pair.here) + ", but " + place(pair.column, pair.row) + " is " +
                       text(pair.there) + ", more apart than " + text(rule.tolerance) +
                       (definite ? " * sqrt(|a_ii a_jj|). Conjugate gradients need A = A.T."
                                 : " times the largest entries of both rows, in the geometric "
                                   "mean. minres needs A = A.T.") +
                       " For a matrix that is meant so there is method 'bicgstab'.");
  return size > 0.0 ? size / scale : 0.0;
}

template std::vector<std::int64_t> gather_bounds(const RowSlab<float>&, Team&);
template std::vector<std::int64_t> gather_bounds(const RowSlab<double>&, Team&);
#define CPUFREE_CHECKS(T, I)                                                 \
  template std::vector<char> find_boundary(const RowSlab<T, I>&);            \
  template double check_own_entries(const RowSlab<T, I>&, const EntryRule&); \
  template double size_of_row(const RowSlab<T, I>&, std::int32_t, Wanted);
CPUFREE_CHECKS(float, std::int64_t)
CPUFREE_CHECKS(double, std::int64_t)
CPUFREE_CHECKS(float, std::int32_t)
CPUFREE_CHECKS(double, std::int32_t)
#undef CPUFREE_CHECKS

}  // namespace cpufree
