// Factorised sparse approximate inverse.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/factors/factors.hpp"

namespace cpufree {

namespace {

constexpr std::int32_t kInverseChunk = 512;  // rows that a thread takes at a time
// A row with more entries takes no part: its column of G would be as long, and so a row of G^T.
constexpr std::size_t kMostOfRow = 1024;

struct Weighed {
  std::int32_t column;
  double weight;
};

// Which entries a row of G has: columns up to its own, increasing, itself the last one.
class Pattern {
 public:
  Pattern(const OwnRows& own, const FsaiOptions& options) : own_(own), options_(options) {}

  void of(std::int32_t row, std::vector<std::int32_t>& columns) {
    found_.clear();
    columns.clear();
    if (takes_part(row)) {
      each_strong(row, [&](std::int32_t column, double size) {
        if (column < row) found_.push_back({column, size});
        if (options_.level > 1) through(row, column, size);
      });
      join();
      keep_largest();
      for (const Weighed& entry : found_) columns.push_back(entry.column);
    }
    columns.push_back(row);
  }

 private:
  bool takes_part(std::int32_t row) const { return own_.columns(row).size() <= kMostOfRow; }

  template <class F>
  void each_strong(std::int32_t row, F&& f) const {
    const auto columns = own_.columns(row);
    const auto values = own_.values(row);
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const double size = std::abs(values[k]);
      if (columns[k] != row && size > 0.0 && size >= options_.least && takes_part(columns[k]))
        f(columns[k], size);
    }
  }

  // The neighbours of a neighbour.
  void through(std::int32_t row, std::int32_t between, double size) {
    each_strong(between, [&](std::int32_t column, double next) {
      if (column < row && size * next >= options_.least_path)
        found_.push_back({column, size * next});
    });
  }

  // One entry for each column, by increasing column: with level 2 there are several paths.
  void join() {
    if (options_.level == 1) return;
    std::ranges::stable_sort(found_, {}, &Weighed::column);
    std::size_t count = 0;
    for (const Weighed& entry : found_) {
      if (count > 0 && found_[count - 1].column == entry.column)
        found_[count - 1].weight += entry.weight;
      else
        found_[count++] = entry;
    }
    found_.resize(count);
  }

  void keep_largest() {
    const std::size_t most = at(options_.most) - 1;
    if (found_.size() <= most) return;
    const auto larger = [](const Weighed& a, const Weighed& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.column > b.column;
    };
    std::ranges::nth_element(found_, found_.begin() + static_cast<std::ptrdiff_t>(most), larger);
    found_.resize(most);
    std::ranges::sort(found_, {}, &Weighed::column);
  }

  const OwnRows& own_;
  const FsaiOptions& options_;
  std::vector<Weighed> found_;
};

// The Cholesky factor of the part of the matrix that a list of rows names. Rows of L that two lists
// in a row have in common from the beginning, as those of one node have, are computed once.
class LocalCholesky {
 public:
  LocalCholesky(const OwnRows& own, std::int32_t most) : own_(own), stride_(at(most)) {
    l_.resize(stride_ * stride_);
    rest_.resize(stride_);
  }

  // False: not positive definite.
  bool factorize(const std::vector<std::int32_t>& rows) {
    const auto differ = std::ranges::mismatch(rows, rows_);
    done_ = std::min(done_, static_cast<std::size_t>(differ.in1 - rows.begin()));
    rows_ = rows;
    while (done_ < rows_.size() && append(done_)) ++done_;
    return done_ == rows_.size();
  }

  // g = L^-T e, e the last unit vector: the row of G.
  void last_row_of_inverse(std::vector<double>& g) const {
    const std::size_t n = rows_.size();
    g.assign(n, 0.0);
    for (std::size_t a = n; a-- > 0;) {
      const double* const column = column_of(a);
      double sum = a + 1 == n ? 1.0 : 0.0;
      for (std::size_t k = a + 1; k < n; ++k) sum -= column[k] * g[k];
      g[a] = sum / column[a];
    }
  }

  // g A g^T = |L^T g|^2.
  double square_of(const std::vector<double>& g) const {
    double sum = 0.0;
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      const double* const column = column_of(b);
      double entry = 0.0;
      for (std::size_t a = b; a < rows_.size(); ++a) entry += column[a] * g[a];
      sum += entry * entry;
    }
    return sum;
  }

 private:
  const double* column_of(std::size_t number) const { return l_.data() + number * stride_; }

  // Row `a` of L from those before: L y = the matrix's row, column by column, so that the inner
  // loop is one of vectors. False: its pivot is not positive.
  bool append(std::size_t a) {
    double* const rest = rest_.data();
    gather(a, rest);
    double pivot = rest[a];
    for (std::size_t b = 0; b < a; ++b) {
      double* const column = l_.data() + b * stride_;
      const double entry = rest[b] / column[b];
      for (std::size_t k = b + 1; k < a; ++k) rest[k] -= entry * column[k];
      column[a] = entry;
      pivot -= entry * entry;
    }
    if (!(pivot > kLeastPivot)) return false;
    l_[a * stride_ + a] = std::sqrt(pivot);
    return true;
  }

  // Row rows_[a] of the matrix, in the columns rows_[0..a].
  void gather(std::size_t a, double* to) const {
    const auto columns = own_.columns(rows_[a]);
    const auto values = own_.values(rows_[a]);
    std::size_t k = 0;
    for (std::size_t b = 0; b <= a; ++b) {
      while (k < columns.size() && columns[k] < rows_[b]) ++k;
      to[b] = k < columns.size() && columns[k] == rows_[b] ? values[k] : 0.0;
    }
  }

  const OwnRows& own_;
  std::size_t stride_;
  std::vector<std::int32_t> rows_;
  std::size_t done_ = 0;   // rows of L that are there
  std::vector<double> l_;  // by columns
  std::vector<double> rest_;
};

// Rows of G, one after the other, in the numbers of OwnRows.
struct InverseChunk {
  std::vector<std::int64_t> count;
  std::vector<std::int32_t> col;
  std::vector<float> val;
  std::int64_t replaced = 0;
};

// Appends a row of G without its smallest entries, so that g A g^T = 1 again.
void append_row(const std::vector<std::int32_t>& columns, std::vector<double>& g,
                const LocalCholesky& cholesky, double least_kept, InverseChunk& chunk) {
  bool thinned = false;
  for (double& entry : g)
    if (std::abs(entry) < least_kept * g.back() && entry != 0.0) entry = 0.0, thinned = true;
  const double factor = thinned ? 1.0 / std::sqrt(cholesky.square_of(g)) : 1.0;
  const std::size_t before = chunk.col.size();
  for (std::size_t k = 0; k < g.size(); ++k) {
    if (g[k] == 0.0) continue;
    chunk.col.push_back(columns[k]);
    chunk.val.push_back(static_cast<float>(factor * g[k]));
  }
  chunk.count.push_back(static_cast<std::int64_t>(chunk.col.size() - before));
}

InverseChunk rows_of(const OwnRows& own, const FsaiOptions& options, RowRange rows) {
  Pattern pattern(own, options);
  LocalCholesky cholesky(own, options.most);
  InverseChunk chunk;
  std::vector<std::int32_t> columns;
  std::vector<double> g;
  for (std::int32_t row = rows.begin; row < rows.end; ++row) {
    pattern.of(row, columns);
    if (cholesky.factorize(columns)) {
      cholesky.last_row_of_inverse(g);
    } else {
      columns = {row}, g = {1.0};
      ++chunk.replaced;
      chunk.count.push_back(1), chunk.col.push_back(row), chunk.val.push_back(1.0F);
      continue;
    }
    append_row(columns, g, cholesky, options.least_kept, chunk);
  }
  return chunk;
}

// G from its rows, by the PE's numbers.
SparseFactor assemble(const OwnRows& own, const std::vector<InverseChunk>& chunks) {
  SparseFactor g;
  g.row_ptr.assign(at(own.rows()) + 1, 0);
  std::int32_t row = 0;
  for (const InverseChunk& chunk : chunks)
    for (const std::int64_t count : chunk.count) g.row_ptr[at(own.local[at(row++)]) + 1] = count;
  std::partial_sum(g.row_ptr.begin(), g.row_ptr.end(), g.row_ptr.begin());
  g.col.resize(at(g.row_ptr.back()));
  g.val.resize(g.col.size());
  in_parallel(static_cast<int>(chunks.size()), [&](int number) {
    const InverseChunk& chunk = chunks[at(number)];
    std::size_t from = 0;
    for (std::size_t r = 0; r < chunk.count.size(); ++r) {
      auto to = at(g.row_ptr[at(own.local[at(number) * at(kInverseChunk) + r])]);
      for (std::int64_t k = 0; k < chunk.count[r]; ++k, ++from, ++to)
        g.col[to] = own.local[at(chunk.col[from])], g.val[to] = chunk.val[from];
    }
  });
  return g;
}

}  // namespace

SparseFactor transpose(const SparseFactor& g) {
  SparseFactor t;
  const std::size_t rows = g.row_ptr.size() - 1;
  t.row_ptr.assign(rows + 1, 0);
  for (const std::int32_t column : g.col) ++t.row_ptr[at(column) + 1];
  std::partial_sum(t.row_ptr.begin(), t.row_ptr.end(), t.row_ptr.begin());
  t.col.resize(g.col.size());
  t.val.resize(g.val.size());
  std::vector<std::int64_t> next(t.row_ptr.begin(), t.row_ptr.end() - 1);
  for (std::size_t row = 0; row < rows; ++row)
    for (auto k = at(g.row_ptr[row]); k < at(g.row_ptr[row + 1]); ++k) {
      const auto to = at(next[at(g.col[k])]++);
      t.col[to] = static_cast<std::int32_t>(row), t.val[to] = g.val[k];
    }
  return t;
}

// By experiment, iterations to 1e-8. Level 1 needs as many without its entries below 3 % of the
// diagonal as with them, and these are up to 45 % of all (bcsstk18: 587 and 582, gyro_m 205 and
// 205, a flange of 8 nodes an element 510 and 485); without those below 5 % more (563). Level 2
// gains nothing by paths through entries below 5 %, nor by longer rows (the flange: 399 with 64
// entries at most, 375 with 128, which take five times as long to compute).
FsaiOptions fsai_options(int level) {
  FsaiOptions options;
  options.level = level;
  options.least_kept = 0.03;
  if (level > 1) options.least = 0.05, options.least_path = 0.01;
  return options;
}

Factors approximate_inverse(const OwnRows& own, const FsaiOptions& options) {
  std::vector<InverseChunk> chunks(at((own.rows() + kInverseChunk - 1) / kInverseChunk));
  in_parallel(static_cast<int>(chunks.size()), [&](int k) {
    chunks[at(k)] =
        rows_of(own, options, {k * kInverseChunk, std::min(own.rows(), (k + 1) * kInverseChunk)});
  });
  Factors result;
  for (const InverseChunk& chunk : chunks) result.replaced += chunk.replaced;
  result.scale.resize(at(own.rows()));
  for (std::size_t row = 0; row < own.scale.size(); ++row)
    result.scale[at(own.local[row])] = own.scale[row];
  result.factors.push_back(assemble(own, chunks));
  result.factors.push_back(transpose(result.factors[0]));
  return result;
}

}  // namespace cpufree
