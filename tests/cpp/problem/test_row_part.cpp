// Small parts of matrices.
#include "cpufree/problem/row_part.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "cpufree/base/index.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

// Rows around one, by sets.
std::vector<std::int32_t> expected_rows(const CsrView<double>& a, std::int32_t start,
                                        std::int32_t size) {
  std::set<std::int32_t> rows, step{start};
  while (!step.empty() && rows.size() < at(size)) {
    for (const std::int32_t row : step)
      if (rows.size() < at(size)) rows.insert(row);
    std::set<std::int32_t> next;
    for (const std::int32_t row : step)
      for (auto k = a.row_ptr[at(row)]; k < a.row_ptr[at(row) + 1]; ++k)
        if (!rows.contains(a.col[at(k)])) next.insert(a.col[at(k)]);
    step = std::move(next);
  }
  return {rows.begin(), rows.end()};
}

}  // namespace

TEST(part_is_the_principal_submatrix_of_the_rows_around_one) {
  const auto whole = irregular(400, 5);
  const auto a = whole.view();
  for (const std::int32_t size : {1, 2, 17, 100, 399, 1000}) {
    const auto rows = expected_rows(a, 123, size);
    const auto part = part_around(a, 123, size);
    CHECK_EQ(part.row_ptr.size(), rows.size() + 1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<std::int32_t> columns;
      std::vector<double> values;
      for (auto k = a.row_ptr[at(rows[i])]; k < a.row_ptr[at(rows[i]) + 1]; ++k) {
        const auto place = std::ranges::lower_bound(rows, a.col[at(k)]);
        if (place == rows.end() || *place != a.col[at(k)]) continue;
        columns.push_back(static_cast<std::int32_t>(place - rows.begin()));
        values.push_back(a.val[at(k)]);
      }
      const auto first = part.row_ptr[i], last = part.row_ptr[i + 1];
      CHECK(std::ranges::equal(columns, std::span(part.col).subspan(at(first), at(last - first))));
      CHECK(std::ranges::equal(values, std::span(part.val).subspan(at(first), at(last - first))));
    }
  }
}
