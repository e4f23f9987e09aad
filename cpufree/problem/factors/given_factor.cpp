#include <algorithm>
#include <numeric>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/problem/factors/factors.hpp"

namespace cpufree {

namespace {

// Of rows and columns of a PE's part, those that have no entries make it singular.
void require_entries(const char* what, const std::vector<std::int32_t>& counts,
                     const OwnRows& own) {
  const auto empty = std::ranges::find(counts, 0);
  if (empty == counts.end()) return;
  const auto name = own.first + own.name[at(empty - counts.begin())];
  throw InvalidInput(
      std::string(what) + " " + std::to_string(name) +
      " of the factor has entries only where PEs meet, which are left out, so that it is singular: "
      "use one PE, a partition that keeps G's blocks together, or a G with a diagonal");
}

}  // namespace

Factors given_factor(const OwnRows& own, const CsrView<double>& g) {
  Factors made;
  const std::size_t rows = at(own.rows());
  for (const std::int32_t name : own.name)
    require(name < g.n, "the factor has " + std::to_string(g.n) + " rows, fewer than the matrix");
  for (const std::int32_t column : g.col)
    require(column >= 0 && column < g.n, "the factor has no column " + std::to_string(column));
  std::vector<std::int32_t> number(at(g.n), -1);  // of the PE
  for (std::size_t row = 0; row < rows; ++row) number[at(own.name[row])] = own.local[row];
  std::vector<std::int32_t> in_row(rows, 0), in_column(rows, 0);  // in the order of own rows
  std::vector<std::int32_t> place(rows);
  for (std::size_t row = 0; row < rows; ++row)
    place[at(own.local[row])] = static_cast<std::int32_t>(row);
  SparseFactor f;
  f.row_ptr.assign(rows + 1, 0);
  made.scale.resize(rows);
  const auto each = [&](std::size_t row, auto&& entry) {
    const std::size_t of = at(own.name[row]);
    for (std::int64_t k = g.row_ptr[of]; k < g.row_ptr[of + 1]; ++k) {
      const auto value = static_cast<float>(g.val[at(k)]);
      const std::int32_t column = number[at(g.col[at(k)])];
      if (value != 0.0F) entry(column, value);
    }
  };
  for (std::size_t row = 0; row < rows; ++row) {
    made.scale[at(own.local[row])] = own.scale[row];
    each(row, [&](std::int32_t column, float) {
      if (column < 0) {
        ++made.left_out;
        return;
      }
      ++in_row[row], ++in_column[at(place[at(column)])];
    });
    f.row_ptr[at(own.local[row]) + 1] = in_row[row];
  }
  require_entries("row", in_row, own);
  require_entries("column", in_column, own);
  std::partial_sum(f.row_ptr.begin(), f.row_ptr.end(), f.row_ptr.begin());
  f.col.resize(at(f.row_ptr.back()));
  f.val.resize(f.col.size());
  for (std::size_t row = 0; row < rows; ++row) {
    auto to = at(f.row_ptr[at(own.local[row])]);
    each(row, [&](std::int32_t column, float value) {
      if (column >= 0) f.col[to] = column, f.val[to++] = value;
    });
  }
  SparseFactor t = transpose(f);
  made.factors.push_back(std::move(f));
  made.factors.push_back(std::move(t));
  return made;
}

}  // namespace cpufree
