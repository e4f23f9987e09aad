#include "cpufree/multigrid/nodes.hpp"

#include <cmath>
#include <numeric>

namespace cpufree::multigrid {

BlockMatrix blocks_of(const SparseMatrix& a, const std::vector<std::int32_t>& node,
                      const Groups& rows) {
  const std::int32_t nodes = rows.count();
  std::int32_t height = 1;
  std::vector<std::int32_t> place(node.size());  // of each row in its node
  for (std::int32_t n = 0; n < nodes; ++n) {
    std::int32_t next = 0;
    for (const std::int32_t row : rows.of(n)) place[at(row)] = next++;
    height = std::max(height, next);
  }
  BlockMatrix made{height, height, {}};
  made.entries = matrix_of_rows(
      nodes, nodes, threads_for(nodes, a.nonzeros()),
      [&] { return RowSums<int>(nodes, height * height); },
      [&](RowSums<int>& sums, std::int32_t n, auto& col, auto& val) {
        sums.add(std::span(&n, 1), 0, 1, [](double*, std::int64_t) {});
        for (const std::int32_t row : rows.of(n))
          for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
            const std::int32_t column = a.col[at(k)];
            sums.add(node, column, column + 1, [&](double* sum, std::int64_t) {
              sum[place[at(row)] * height + place[at(column)]] += a.val[at(k)];
            });
          }
        sums.move_to(col, val);
      },
      height * height);
  return made;
}

SparseMatrix rows_of(BlockMatrix blocks, const Groups& rows, std::span<const std::int32_t> first) {
  const BlockView a = blocks.view();
  if (a.height == 1 && a.width == 1) return std::move(blocks.entries);
  SparseMatrix made;
  made.columns = first.back();
  made.row_ptr.resize(rows.row.size() + 1);
  made.row_ptr[0] = 0;
  const auto width = [&](std::int64_t k) {
    return first[at(a.col[at(k)]) + 1] - first[at(a.col[at(k)])];
  };
  for_rows(
      a.rows(),
      [&](std::int32_t n) {
        std::int64_t length = 0;
        for (std::int64_t k = a.begin(n); k < a.end(n); ++k) length += width(k);
        for (const std::int32_t row : rows.of(n)) made.row_ptr[at(row) + 1] = length;
      },
      kLongRows);
  std::partial_sum(made.row_ptr.begin(), made.row_ptr.end(), made.row_ptr.begin());
  made.col.resize(at(made.nonzeros()));
  made.val.resize(at(made.nonzeros()));
  for_rows(
      a.rows(),
      [&](std::int32_t n) {
        std::int32_t i = 0;
        for (const std::int32_t row : rows.of(n)) {
          std::int64_t to = made.begin(row);
          for (std::int64_t k = a.begin(n); k < a.end(n); ++k)
            for (std::int32_t c = 0; c < width(k); ++c, ++to) {
              made.col[at(to)] = first[at(a.col[at(k)])] + c;
              made.val[at(to)] = a.block(k)[i * a.width + c];
            }
          ++i;
        }
      },
      kLongRows);
  return made;
}

SparseMatrix node_matrix(const BlockMatrix& blocks) {
  const BlockView a = blocks.view();
  SparseMatrix made;
  made.columns = a.columns;
  made.row_ptr = blocks.entries.row_ptr;
  made.col = blocks.entries.col;
  made.val.resize(made.col.size());
  for_rows(
      a.rows(),
      [&](std::int32_t n) {
        for (std::int64_t k = a.begin(n); k < a.end(n); ++k) {
          double sum = 0.0;
          for (std::int64_t e = 0; e < a.area(); ++e) sum += a.block(k)[e] * a.block(k)[e];
          made.val[at(k)] = std::sqrt(sum);
        }
      },
      kLongRows);
  scale_both_sides(made, inverse_roots(made));
  return made;
}

PageVector<double> blocks_of(const Tentative& t, const Groups& rows, std::int32_t height) {
  const std::size_t width = at(t.coarse.modes);
  PageVector<double> made(at(rows.count()) * at(height) * width, 0.0);
  for_rows(rows.count(), [&](std::int32_t n) {
    double* to = made.data() + at(n) * at(height) * width;
    for (const std::int32_t row : rows.of(n)) {
      const std::int32_t c = t.of_row[at(row)];
      if (c >= 0)
        std::copy_n(t.values.data() + at(row) * width, t.first[at(c) + 1] - t.first[at(c)], to);
      to += width;
    }
  });
  return made;
}

std::vector<double> inverse_roots(const BlockMatrix& blocks) {
  const BlockView a = blocks.view();
  const std::size_t height = at(a.height);
  std::vector<double> s(at(a.rows()) * height, 1.0);
  for_rows(a.rows(), [&](std::int32_t n) {
    for (std::int64_t k = a.begin(n); k < a.end(n); ++k)
      for (std::size_t i = 0; a.col[at(k)] == n && i < height; ++i)
        if (const double d = a.block(k)[i * height + i]; d > 0.0)
          s[at(n) * height + i] = 1.0 / std::sqrt(d);
  });
  return s;
}

void scale_both_sides(BlockMatrix& blocks, const std::vector<double>& s) {
  const BlockView a = blocks.view();
  for_rows(
      a.rows(),
      [&](std::int32_t n) {
        for (std::int64_t k = a.begin(n); k < a.end(n); ++k) {
          double* value = blocks.entries.val.data() + k * a.area();
          const double* const left = s.data() + std::int64_t{n} * a.height;
          const double* const right = s.data() + std::int64_t{a.col[at(k)]} * a.width;
          for (std::int32_t i = 0; i < a.height; ++i)
            for (std::int32_t j = 0; j < a.width; ++j, ++value)
              *value = i == j && a.col[at(k)] == n && *value != 0.0 ? 1.0
                                                                    : *value * (left[i] * right[j]);
        }
      },
      kLongRows);
}

void scale_columns(BlockMatrix& blocks, const std::vector<double>& s) {
  const BlockView p = blocks.view();
  for_rows(p.rows(), [&](std::int32_t n) {
    for (std::int64_t k = p.begin(n); k < p.end(n); ++k) {
      double* value = blocks.entries.val.data() + k * p.area();
      const double* const right = s.data() + std::int64_t{p.col[at(k)]} * p.width;
      for (std::int32_t i = 0; i < p.height; ++i)
        for (std::int32_t j = 0; j < p.width; ++j) *value++ *= right[j];
    }
  });
}

}  // namespace cpufree::multigrid
