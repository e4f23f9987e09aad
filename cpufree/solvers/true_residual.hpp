// The true residual b - A x: at the start, to verify, and at the end.
#pragma once

#include "cpufree/solvers/apart.hpp"
#include "cpufree/solvers/monitors.hpp"

namespace cpufree {

// true_residual, out of line. What is computed is the residual of this very x, up to some
// roundings of its own (accurate_sum.hpp). Beside it, as `other`, the square of its norm relative
// to that of b where each row of both is divided by its entry of the diagonal: rows that outweigh
// all others, such as those of penalties for boundary values, hide these in the plain norm.
template <class Ctx>
CPUFREE_COLD_FN ColdResult<Ctx> true_residual_cold(typename Ctx::PortType port,
                                                   const typename Ctx::Args& args,
                                                   const typename Ctx::Share& share,
                                                   const typename Ctx::BlockVectors& v,
                                                   typename Ctx::State before, Keep keep,
                                                   ColumnMask columns) {
  using T = typename Ctx::T;
  Ctx c(port, args, share, v, before);
  RareSums<Ctx> all;
  auto& sums = all.partial;
  const auto& total = all.total;
  const auto copy = c.exchange_scratch([&](Row i, int) { return v.x[i]; });
  const bool multiplied =
      c.multiply_cold(copy, [&](Row i, int lane, int k, const AccurateSum<T>& ax) {
        const T b = of_column(v.b[i], k);
        const double r = ax.below(b);
        if (keep != Keep::nothing && columns.has(k))
          of_column(v.r[i], k) = keep == Keep::plain ? b - ax.plain() : static_cast<T>(r);
        of_column(sums[0][lane], k) += r * r;
        const double weight = c.inverse_diagonal(i);
        of_column(sums[1][lane], k) += weight * r * (weight * r);
        of_column(sums[2][lane], k) += weight * b * (weight * b);
      });
  const bool met = multiplied && sum_apart(c, all);
  typename Ctx::Totals weighted = {};
  for (int k = 0; k < Ctx::kColumns; ++k) {
    const double of_b = of_column(total[2], k);
    of_column(weighted, k) = of_b > 0.0 ? of_column(total[1], k) / of_b : 0.0;
  }
  return {c.state(), total[0], met, weighted};
}

// Square of the norm of b - A x over all PEs, of all columns, and of its weighted norm; what is
// kept of it, in those of `columns`. x travels in a scratch vector.
template <class Ctx>
CPUFREE_KERNEL_FN bool true_residual(Ctx& c, Keep keep, ColumnMask columns,
                                     typename Ctx::Totals& rr, typename Ctx::Totals& weighted) {
  const auto answer =
      true_residual_cold<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state(), keep, columns);
  c.go_on_from(answer.after);
  rr = answer.value;
  weighted = answer.other;
  return answer.met;
}

// r = b - A x and the monitors' start. A first guess is dropped where b = 0, as then x = 0, and
// where b is less than the rounding errors of A x0. Then ||b|| < u ||b - A x0||, u the unit
// roundoff, and x = 0 is nearer to the solution in the energy norm of every A whose condition
// number is below 1 / u^2.
template <class Ctx>
CPUFREE_KERNEL_FN bool begin_solve(Ctx& c, Monitors<Ctx>& monitors) {
  using Values = typename Ctx::Values;
  constexpr int K = Ctx::kColumns;
  const auto& v = c.vectors;
  const SolveParams& params = c.args.params;
  const bool guess = params.has_guess;
  typename Ctx::Totals rr = {}, weighted;
  if (guess && !true_residual(c, Keep::plain, ColumnMask::all(K), rr, weighted)) return false;
  RareSums<Ctx> sums;
  c.rows([&](Row i, int lane) {
    const Values b = v.b[i];
    if (!guess) v.r[i] = b;
    add_products(sums.partial[0][lane], b, b);
    if constexpr (K == 1) sums.partial[1][lane] += 1.0;  // rows, of a single column
  });
  if (!sum_apart(c, sums)) return false;
  const auto& bb = sums.total;
  const double rows = K == 1 ? of_column(bb[1], 0) : 0.0;
  const double part = params.roundoff * params.roundoff;
  const ColumnMask zero = columns_where<K>([&](int k) {
    const double mine = of_column(bb[0], k);
    return mine == 0.0 || (guess && mine < part * of_column(rr, k));
  });
  if (zero.any())
    c.rows([&](Row i, int) {
      v.x[i] = select(zero, Values{}, v.x[i]);
      v.r[i] = select(zero, v.b[i], v.r[i]);
    });
  c.each_column([&](int k) {
    const double mine = pick(bb[0], k);
    monitors.begin(c, k, mine, guess && !zero.has(k) ? pick(rr, k) : mine, rows);
  });
  return true;
}

// Computes b - A x for the columns that ask for it, and tells their monitors. r becomes b - A x
// where the recurrence's residual was not near it, as accurate as can be, and where a column wants
// it; a second product for that is cheaper than a vector that keeps the first. False: a wait gave
// up.
template <class Ctx, class Method>
CPUFREE_KERNEL_FN bool verify(Ctx& c, const Method& method, Monitors<Ctx>& monitors) {
  const ColumnMask asking = monitors.asking();
  const Keep keep = monitors.wanted();
  typename Ctx::Totals rr = {}, weighted;
  if (!true_residual(c, keep, asking, rr, weighted)) return false;
  c.each_column([&](int k) {
    if (!asking.has(k)) return;
    monitors[k].record_weighted(pick(weighted, k));
    monitors.verify(c, k, method, pick(rr, k), keep != Keep::nothing);
  });
  if constexpr (Method::kCoupled)
    if (monitors.which(Verdict::restart).any()) {
      c.port().sync_block();  // all threads have asked
      c.each_column([&](int k) { monitors.restart(k); });
    }
  const ColumnMask anew = monitors.which(Verdict::restart);
  return !anew.any() || keep == Keep::accurate ||
         true_residual(c, Keep::accurate, anew, rr, weighted);
}

// After the last iteration: the true residuals that are not known yet.
template <class Ctx>
CPUFREE_KERNEL_FN bool end_solve(Ctx& c, Monitors<Ctx>& monitors) {
  const ColumnMask unknown =
      columns_where<Ctx::kColumns>([&](int k) { return !monitors[k].verified(); });
  if (!unknown.any()) return true;
  typename Ctx::Totals rr = {}, weighted;
  if (!true_residual(c, Keep::nothing, {}, rr, weighted)) return false;
  c.each_column([&](int k) {
    if (!unknown.has(k)) return;
    monitors[k].record_true_residual(pick(rr, k));
    monitors[k].record_weighted(pick(weighted, k));
  });
  return true;
}

}  // namespace cpufree
