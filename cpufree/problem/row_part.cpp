#include "cpufree/problem/row_part.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

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
    for (const std::int32_t row : step)
      for (auto k = matrix.row_ptr[at(row)]; k < matrix.row_ptr[at(row) + 1]; ++k)
        if (std::int32_t& seen = number[matrix.col[at(k)]]; seen == 0) {
          seen = 1;
          next.push_back(matrix.col[at(k)]);
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
    for (auto k = matrix.row_ptr[at(row)]; k < matrix.row_ptr[at(row) + 1]; ++k)
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
