#include "cpufree/problem/factors/own_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

constexpr std::int32_t kOwnChunk = 4096;  // rows that a thread takes at a time

template <class F>
void for_own_chunks(std::int32_t rows, F&& f) {
  in_parallel((rows + kOwnChunk - 1) / kOwnChunk,
              [&](int k) { f(k * kOwnChunk, std::min(rows, (k + 1) * kOwnChunk)); });
}

// The PE's rows in the order of their original numbers.
void set_order(OwnRows& own, const std::vector<std::int32_t>& global_row) {
  own.local.resize(global_row.size());
  std::iota(own.local.begin(), own.local.end(), 0);
  if (!std::ranges::is_sorted(global_row))  // as those of a single PE are
    std::ranges::sort(own.local, {}, [&](std::int32_t i) { return global_row[at(i)]; });
  own.name.reserve(global_row.size());
  for (const std::int32_t i : own.local) own.name.push_back(global_row[at(i)]);
}

// Fills the rows. each(row, f) calls f(column, value) for all entries of a row whose column is one
// of mine, in any order.
template <class T, class Each>
void fill(OwnRows& own, Each&& each) {
  const std::int32_t rows = own.rows();
  own.row_ptr.assign(at(rows) + 1, 0);
  own.scale.assign(at(rows), 1.0);
  for_own_chunks(rows, [&](std::int32_t begin, std::int32_t end) {
    for (std::int32_t row = begin; row < end; ++row)
      each(row, [&](std::int32_t column, double value) {
        ++own.row_ptr[at(row) + 1];
        if (column == row && value != 0.0)
          own.scale[at(row)] =
              static_cast<double>(static_cast<T>(1.0 / std::sqrt(std::abs(value))));
      });
  });
  std::partial_sum(own.row_ptr.begin(), own.row_ptr.end(), own.row_ptr.begin());
  own.col.resize(at(own.row_ptr.back()));
  own.val.resize(at(own.row_ptr.back()));
  for_own_chunks(rows, [&](std::int32_t begin, std::int32_t end) {
    std::vector<std::pair<std::int32_t, double>> entries;
    for (std::int32_t row = begin; row < end; ++row) {
      entries.clear();
      each(row, [&](std::int32_t column, double value) {
        entries.emplace_back(column, value * own.scale[at(row)] * own.scale[at(column)]);
      });
      std::ranges::sort(entries, {}, [](const auto& entry) { return entry.first; });
      auto k = at(own.row_ptr[at(row)]);
      for (const auto& [column, value] : entries) own.col[k] = column, own.val[k++] = value;
    }
  });
}

}  // namespace

template <class T>
OwnRows own_rows_of(const LocalSystem<T>& local, std::int64_t first) {
  OwnRows own;
  own.first = first;
  set_order(own, local.global_row);
  std::vector<std::int32_t> number(own.local.size());
  for (std::int32_t row = 0; row < own.rows(); ++row) number[at(own.local[at(row)])] = row;
  fill<T>(own, [&](std::int32_t row, auto&& f) {
    const std::size_t i = at(own.local[at(row)]);
    for (std::int64_t k = local.row_ptr[i]; k < local.row_ptr[i + 1]; ++k)
      if (const std::int32_t column = local.columns()[k]; column < local.rows())
        f(number[at(column)], static_cast<double>(local.values()[k]));
  });
  return own;
}

template <class T>
OwnRows own_rows_of(const CsrView<T>& matrix, const std::vector<std::int32_t>& global_row) {
  OwnRows own;
  set_order(own, global_row);
  std::vector<std::int32_t> number(at(matrix.n), -1);
  for (std::int32_t row = 0; row < own.rows(); ++row) number[at(own.name[at(row)])] = row;
  fill<T>(own, [&](std::int32_t row, auto&& f) {
    const std::size_t i = at(own.name[at(row)]);
    for (std::int64_t k = matrix.row_ptr[i]; k < matrix.row_ptr[i + 1]; ++k)
      if (const std::int32_t column = number[at(matrix.col[at(k)])]; column >= 0)
        f(column, static_cast<double>(matrix.val[at(k)]));
  });
  return own;
}

template OwnRows own_rows_of(const LocalSystem<float>&, std::int64_t);
template OwnRows own_rows_of(const LocalSystem<double>&, std::int64_t);
template OwnRows own_rows_of(const CsrView<float>&, const std::vector<std::int32_t>&);
template OwnRows own_rows_of(const CsrView<double>&, const std::vector<std::int32_t>&);

}  // namespace cpufree
