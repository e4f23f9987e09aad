// Block-Jacobi: the inverses of blocks on the diagonal.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/factors/factors.hpp"

namespace cpufree {

namespace {

constexpr int kBlockChunk = 1024;  // blocks that a thread takes at a time
constexpr std::int32_t kDefaultSize = 8;

// Whether b's row follows a's in the original order, with the same columns.
bool same_node(const OwnRows& own, std::int32_t a, std::int32_t b) {
  return own.name[at(b)] == own.name[at(a)] + 1 &&
         std::ranges::equal(own.columns(a), own.columns(b));
}

// Where blocks begin, and the number of rows.
std::vector<std::int32_t> nodes(const OwnRows& own) {
  std::vector<std::int32_t> begin;
  for (std::int32_t row = 0; row < own.rows(); ++row)
    if (row == 0 || row - begin.back() == kMostBlockRows || !same_node(own, row - 1, row))
      begin.push_back(row);
  begin.push_back(own.rows());
  return begin;
}

std::vector<std::int32_t> blocks_of_size(const OwnRows& own, std::int32_t size) {
  std::vector<std::int32_t> begin;
  const auto block = [&](std::int32_t row) { return (own.first + own.name[at(row)]) / size; };
  for (std::int32_t row = 0; row < own.rows(); ++row)
    if (row == 0 || block(row) != block(row - 1)) begin.push_back(row);
  begin.push_back(own.rows());
  return begin;
}

std::vector<std::int32_t> block_begins(const OwnRows& own, std::int32_t size) {
  if (size > 0) return blocks_of_size(own, size);
  auto begin = nodes(own);
  // At least half of the rows share their columns with another one of their node.
  if (3 * (begin.size() - 1) <= 2 * at(own.rows())) return begin;
  return blocks_of_size(own, kDefaultSize);
}

// A dense symmetric matrix of at most kMostBlockRows rows.
class Block {
 public:
  double& operator()(std::int32_t a, std::int32_t b) { return value_[at(a * kMostBlockRows + b)]; }
  double operator()(std::int32_t a, std::int32_t b) const {
    return value_[at(a * kMostBlockRows + b)];
  }

 private:
  std::array<double, at(kMostBlockRows* kMostBlockRows)> value_{};
};

Block block_of(const OwnRows& own, RowRange rows) {
  Block block;
  for (std::int32_t row = rows.begin; row < rows.end; ++row) {
    const auto columns = own.columns(row);
    const auto values = own.values(row);
    for (auto k = std::ranges::lower_bound(columns, rows.begin) - columns.begin();
         k < std::ssize(columns) && columns[at(k)] < rows.end; ++k)
      block(row - rows.begin, columns[at(k)] - rows.begin) = values[at(k)];
  }
  return block;
}

// L with L L^T = block, in its lower triangle. False: not positive definite.
bool factorize(Block& block, std::int32_t n) {
  for (std::int32_t a = 0; a < n; ++a)
    for (std::int32_t b = 0; b <= a; ++b) {
      double sum = block(a, b);
      for (std::int32_t k = 0; k < b; ++k) sum -= block(a, k) * block(b, k);
      if (a == b && !(sum > kLeastPivot)) return false;
      block(a, b) = a == b ? std::sqrt(sum) : sum / block(b, b);
    }
  return true;
}

// L^-1 in place of L; then B^-1 = L^-T L^-1, whose entry (a, b) is the sum over k >= a, b.
void invert_lower(Block& l, std::int32_t n) {
  for (std::int32_t b = 0; b < n; ++b) {
    l(b, b) = 1.0 / l(b, b);
    for (std::int32_t a = b + 1; a < n; ++a) {
      double sum = 0.0;
      for (std::int32_t k = b; k < a; ++k) sum += l(a, k) * l(k, b);
      l(a, b) = -sum / l(a, a);
    }
  }
}

double entry_of_inverse(const Block& l, std::int32_t n, std::int32_t a, std::int32_t b) {
  double sum = 0.0;
  for (std::int32_t k = std::max(a, b); k < n; ++k) sum += l(k, a) * l(k, b);
  return sum;
}

// Writes the rows of a block's inverse. False: it has its diagonal alone.
bool write_inverse(const OwnRows& own, RowRange rows, SparseFactor& to) {
  const std::int32_t n = rows.size();
  Block block = block_of(own, rows);
  const bool definite = factorize(block, n);
  if (definite) invert_lower(block, n);
  for (std::int32_t a = 0; a < n; ++a) {
    auto k = at(to.row_ptr[at(own.local[at(rows.begin + a)])]);
    for (std::int32_t b = 0; b < n; ++b, ++k) {
      to.col[k] = own.local[at(rows.begin + b)];
      to.val[k] =
          definite ? static_cast<float>(entry_of_inverse(block, n, a, b)) : (a == b ? 1.0F : 0.0F);
    }
  }
  return definite;
}

}  // namespace

Factors invert_blocks(const OwnRows& own, int size) {
  const auto begin = block_begins(own, size);
  const auto blocks = static_cast<int>(begin.size()) - 1;
  SparseFactor inverse;
  inverse.row_ptr.assign(at(own.rows()) + 1, 0);
  for (int block = 0; block < blocks; ++block)
    for (std::int32_t row = begin[at(block)]; row < begin[at(block) + 1]; ++row)
      inverse.row_ptr[at(own.local[at(row)]) + 1] = begin[at(block) + 1] - begin[at(block)];
  std::partial_sum(inverse.row_ptr.begin(), inverse.row_ptr.end(), inverse.row_ptr.begin());
  inverse.col.resize(at(inverse.row_ptr.back()));
  inverse.val.resize(inverse.col.size());
  std::vector<std::int64_t> replaced(at((blocks + kBlockChunk - 1) / kBlockChunk), 0);
  in_parallel(static_cast<int>(replaced.size()), [&](int chunk) {
    for (int block = chunk * kBlockChunk; block < std::min(blocks, (chunk + 1) * kBlockChunk);
         ++block)
      if (!write_inverse(own, {begin[at(block)], begin[at(block) + 1]}, inverse))
        ++replaced[at(chunk)];
  });
  Factors result;
  result.replaced = std::accumulate(replaced.begin(), replaced.end(), std::int64_t{0});
  result.scale.resize(at(own.rows()));
  for (std::size_t row = 0; row < own.scale.size(); ++row)
    result.scale[at(own.local[row])] = own.scale[row];
  result.factors.push_back(std::move(inverse));
  return result;
}

}  // namespace cpufree
