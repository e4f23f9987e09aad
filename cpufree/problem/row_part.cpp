#include "cpufree/problem/row_part.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

struct Entries {
  std::int64_t begin, end;
};

// The number of each row within the part, from 1; 0 of the others. Only pages that hold some of its
// rows and their neighbours are touched.
class Numbers {
 public:
  explicit Numbers(std::int32_t rows)
      : all_(static_cast<std::int32_t*>(std::calloc(at(rows) + 1, sizeof(std::int32_t)))) {
    if (!all_) throw std::bad_alloc();
  }
  std::int32_t& operator[](std::int32_t row) { return all_.get()[row]; }

 private:
  struct Free {
    void operator()(std::int32_t* p) const { std::free(p); }
  };
  std::unique_ptr<std::int32_t, Free> all_;
};

// The entries of a row: numbers that a caller may have changed since they were looked at, and that
// are places in tables here.
template <class T>
Entries entries_of(const CsrView<T>& matrix, std::int32_t row) {
  const Entries entries{matrix.row_ptr[at(row)], matrix.row_ptr[at(row) + 1]};
  if (entries.begin < 0 || entries.begin > entries.end ||
      entries.end > static_cast<std::int64_t>(matrix.col.size()))
    throw InvalidInput("indptr must ascend to the number of entries");
  const auto columns = matrix.col.subspan(at(entries.begin), at(entries.end - entries.begin));
  if (std::ranges::any_of(columns, [&](std::int32_t c) { return c < 0 || c >= matrix.n; }))
    throw InvalidInput("indices must be rows of the matrix");
  return entries;
}

// The rows of the part in ascending order; `number` is 0 for all others.
template <class T>
std::vector<std::int32_t> rows_around(const CsrView<T>& matrix, std::int32_t start,
                                      std::int32_t size, Numbers& number) {
  std::vector<std::int32_t> rows, step{start};
  number[start] = 1;
  while (!step.empty()) {
    std::ranges::sort(step);
    while (rows.size() + step.size() > at(size)) {
      number[step.back()] = 0;
      step.pop_back();
    }
    rows.insert(rows.end(), step.begin(), step.end());
    if (rows.size() == at(size)) break;
    std::vector<std::int32_t> next;
    for (const std::int32_t row : step) {
      const auto [begin, end] = entries_of(matrix, row);
      for (auto k = begin; k < end; ++k)
        if (std::int32_t& seen = number[matrix.col[at(k)]]; seen == 0) {
          seen = 1;
          next.push_back(matrix.col[at(k)]);
        }
    }
    step = std::move(next);
  }
  std::ranges::sort(rows);
  return rows;
}

}  // namespace

template <class T>
RowPart<T> part_around(const CsrView<T>& matrix, std::int32_t start, std::int32_t size) {
  Numbers number(matrix.n);
  const auto rows = rows_around(matrix, start, size, number);
  std::int32_t next = 0;
  for (const std::int32_t row : rows) number[row] = ++next;
  RowPart<T> part;
  part.row_ptr.push_back(0);
  for (const std::int32_t row : rows) {
    const auto [begin, end] = entries_of(matrix, row);
    for (auto k = begin; k < end; ++k)
      if (const std::int32_t column = number[matrix.col[at(k)]]; column > 0) {
        part.col.push_back(column - 1);
        part.val.push_back(matrix.val[at(k)]);
      }
    part.row_ptr.push_back(static_cast<std::int64_t>(part.col.size()));
  }
  return part;
}

template RowPart<float> part_around(const CsrView<float>&, std::int32_t, std::int32_t);
template RowPart<double> part_around(const CsrView<double>&, std::int32_t, std::int32_t);

}  // namespace cpufree
