#include "cpufree/multigrid/galerkin.hpp"

#include <atomic>

#include "cpufree/multigrid/transpose.hpp"

namespace cpufree::multigrid {

namespace {

// Multiplications so far, by all threads; too many are too many in any order.
class Work {
 public:
  explicit Work(double most) : most_(most) {}
  void add(std::int64_t first, std::int64_t second) {
    if (static_cast<double>(first_ += first) > most_ ||
        static_cast<double>(second_ += second) > most_)
      too_much_ = true;
  }
  bool too_much() const { return too_much_; }

 private:
  double most_;
  std::atomic<std::int64_t> first_ = 0, second_ = 0;
  std::atomic<bool> too_much_ = false;
};

// Computes rows of P^T A P, their blocks on the diagonal and behind it: first the row of P^T A,
// then its product with P.
template <class D, class M>
class UpperRows {
 public:
  UpperRows(const BlockView& a, const BlockView& p, const TransposedPattern& turned, D d, M m,
            Work& work)
      : a_(a),
        p_(p),
        turned_(turned),
        d_(d),
        m_(m),
        work_(work),
        of_fine_(a.rows(), times(m, d)),
        of_coarse_(p.columns, times(m, m)) {}

  void append(std::int32_t row, std::vector<std::int32_t>& col, std::vector<double>& val) {
    if (work_.too_much()) return;
    const std::int64_t first = restrict_row(row);
    const std::int64_t second = prolongate(row, [&](auto&&... given) { of_coarse_.add(given...); });
    const std::int64_t each = std::int64_t{m_} * d_;
    work_.add(first * each * d_, second * each * m_);
    of_coarse_.move_to(col, val, row);
  }
  void write(std::int32_t row, std::span<const std::int32_t> columns, double* to) {
    restrict_row(row);
    of_coarse_.expect(columns);
    prolongate(row, [&](auto&&... given) { of_coarse_.add_expected(given...); });
    of_coarse_.move_to(to);
  }

 private:
  std::int64_t restrict_row(std::int32_t row) {
    std::int64_t products = 0;
    for (std::int64_t t = turned_.begin(row); t < turned_.end(row); ++t) {
      const std::int32_t i = turned_.row[at(t)];
      const double* const weight = p_.block(turned_.place[at(t)]);
      products += a_.end(i) - a_.begin(i);
      of_fine_.add(a_.col, a_.begin(i), a_.end(i),
                   [&, values = a_.val](double* sum, std::int64_t k) {
                     add_product<true>(sum, weight, values + k * d_ * d_, m_, d_, d_);
                   });
    }
    return products;
  }
  // `add`: to the row of the product.
  template <class F>
  std::int64_t prolongate(std::int32_t row, F&& add) {
    std::int64_t products = 0;
    for (std::size_t f = 0; f < of_fine_.columns().size(); ++f) {
      const std::int32_t k = of_fine_.columns()[f];
      const double* const weight = of_fine_.block(f);
      std::int64_t begin = p_.begin(k);
      products += p_.end(k) - begin;
      // Of numbers all are summed: where the upper half begins cannot be predicted.
      while (m_ > 1 && begin < p_.end(k) && p_.col[at(begin)] < row) ++begin;
      add(p_.col, begin, p_.end(k), [&, values = p_.val](double* sum, std::int64_t e) {
        add_product<false>(sum, weight, values + e * d_ * m_, m_, d_, m_);
      });
    }
    of_fine_.clear();
    return products;
  }

  const BlockView &a_, &p_;
  const TransposedPattern& turned_;
  [[no_unique_address]] D d_;
  [[no_unique_address]] M m_;
  Work& work_;
  RowSums<decltype(times(M(), D()))> of_fine_;
  RowSums<decltype(times(M(), M()))> of_coarse_;
};

// The symmetric matrix whose blocks on the diagonal and behind it are `upper`.
template <class M>
BlockMatrix mirrored(BlockMatrix upper, M m) {
  const SparseMatrix& u = upper.entries;
  const std::int32_t rows = u.rows();
  const TransposedPattern turned = transposed_pattern(upper.view());
  BlockMatrix made{upper.height, upper.width, {}};
  SparseMatrix& all = made.entries;
  all.columns = rows;
  all.row_ptr.resize(at(rows) + 1);
  all.row_ptr[0] = 0;
  for (std::int32_t row = 0; row < rows; ++row)  // each has its diagonal in both
    all.row_ptr[at(row) + 1] =
        all.row_ptr[at(row)] + turned.end(row) - turned.begin(row) + u.end(row) - u.begin(row) - 1;
  const int area = m * m;
  all.col.resize(at(all.nonzeros()));
  all.val.resize(at(all.nonzeros() * area));
  const auto fill = [&](std::int32_t row) {
    std::int64_t to = all.begin(row);
    for (std::int64_t t = turned.begin(row); turned.row[at(t)] < row; ++t, ++to) {
      all.col[at(to)] = turned.row[at(t)];
      const double* const from = u.val.data() + turned.place[at(t)] * area;
      double* const block = all.val.data() + to * area;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) block[i * m + j] = from[j * m + i];
    }
    std::copy(u.col.begin() + u.begin(row), u.col.begin() + u.end(row), all.col.begin() + to);
    std::copy(u.val.begin() + u.begin(row) * area, u.val.begin() + u.end(row) * area,
              all.val.begin() + to * area);
  };
  for_rows(rows, fill, kLongRows);
  return made;
}

}  // namespace

std::optional<BlockMatrix> galerkin_product(const BlockView& a, const BlockView& p, double most,
                                            SparsePattern& upper) {
  const TransposedPattern turned = transposed_pattern(p);
  return with_sizes(p.height, p.width, [&](auto d, auto m) -> std::optional<BlockMatrix> {
    Work work(most);
    using Rows = UpperRows<decltype(d), decltype(m)>;
    BlockMatrix made{p.width, p.width, {}};
    const auto make = [&] { return Rows(a, p, turned, d, m, work); };
    const int threads = threads_for(a.rows(), a.row_ptr.back());
    if (!upper.row_ptr.empty()) {
      made.entries = matrix_of_pattern(
          upper, p.columns, threads, make,
          [](Rows& rows, std::int32_t row, auto columns, double* to) {
            rows.write(row, columns, to);
          },
          times(m, m));
      return mirrored(std::move(made), m);
    }
    made.entries = matrix_of_rows(
        p.columns, p.columns, threads, make,
        [](Rows& rows, std::int32_t row, auto& col, auto& val) { rows.append(row, col, val); },
        times(m, m));
    if (work.too_much()) return std::nullopt;
    upper = SparsePattern::of(made.entries);
    return mirrored(std::move(made), m);
  });
}

}  // namespace cpufree::multigrid
