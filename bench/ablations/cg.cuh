// Conjugate gradients in one kernel, of which one thing is changed at a time: how sums are made,
// who makes them, how halos travel, how rows are multiplied. One block on each multiprocessor.
#pragma once

#include "products.cuh"
#include "sums.cuh"

namespace ablations {

struct CgArgs {
  SumArgs sums, meeting;  // `meeting`: slots of barriers beside sums that are under way
  MatrixArgs matrix;
  double* operand[2][kMostPes];  // all n entries on each PE; the second one of pipecg alone
  const double* b;               // of own rows, as all that follow
  double *x, *r, *s, *p, *z, *q;
  int iterations;
  double* norm2;  // of the residual that the recurrences have at the end
};

enum class Halo { push, gets };
enum class Product { rows, merge };

// Stores entry i of own rows into this PE's vector, and into those of the PEs that read it.
template <Halo kHalo>
__device__ void spread(const CgArgs& a, int which, int i, double value) {
  const MatrixArgs& m = a.matrix;
  store(a.operand[which][a.sums.pe] + m.begin + i, value);
  if constexpr (kHalo == Halo::push)
    if (a.sums.pes > 1)
      for (int pe = 0; pe < a.sums.pes; ++pe)
        if (pe != a.sums.pe && (m.wanted[i] >> pe & 1U) != 0)
          store(a.operand[which][pe] + m.begin + i, value);
}

template <Halo kHalo, class F>
__device__ double with_operand(const CgArgs& a, int which, F&& f) {
  if constexpr (kHalo == Halo::push)
    return f(FromOwn{a.operand[which][a.sums.pe]});
  else
    return f(ByGets{a.operand[which], a.matrix.cut, a.sums.pe, a.sums.pes});
}

// The rows of a block among `workers` of which the first one is number `first`.
struct Rows {
  int low, high;
  __device__ Rows(const CgArgs& a, int first) {
    const long long n = a.matrix.end - a.matrix.begin, workers = a.sums.blocks - first;
    const long long k = static_cast<int>(block()) - first;
    low = k < 0 ? 0 : static_cast<int>(n * k / workers);
    high = k < 0 ? 0 : static_cast<int>(n * (k + 1) / workers);
  }
};

__device__ inline double over(double a, double b) { return b == 0 ? 0 : a / b; }

// Hestenes and Stiefel 1952: two sums and a barrier in an iteration.
template <class S, Halo kHalo, Product kProduct>
__device__ void cg(const CgArgs& a) {
  S sums(a.sums);
  const Rows rows(a, 0);
  const int begin = rows.low + static_cast<int>(lane()), step = static_cast<int>(lanes());
  double rr[1] = {0};
  for (int i = begin; i < rows.high; i += step) {
    const double b = a.b[i];
    a.x[i] = 0, a.r[i] = b;
    if constexpr (kProduct == Product::merge) store(a.s + i, 0);
    spread<kHalo>(a, 0, i, b);
    rr[0] += b * b;
  }
  sums.sum(rr);
  for (int k = 0; k < a.iterations; ++k) {
    double ps[1] = {with_operand<kHalo>(a, 0, [&](const auto& x) {
      if constexpr (kProduct == Product::rows)
        return by_rows(a.matrix, rows.low, rows.high, x, a.s);
      else
        return by_merge(a.matrix, a.sums.blocks, x, a.s);
    })};
    sums.sum(ps);
    const double alpha = over(rr[0], ps[0]);
    const double* const p = a.operand[0][a.sums.pe] + a.matrix.begin;
    double next[1] = {0};
    for (int i = begin; i < rows.high; i += step) {
      a.x[i] += alpha * p[i];
      // Of merged rows others have added a part, past this multiprocessor's cache.
      const double s = kProduct == Product::merge ? get_value(a.s + i) : a.s[i];
      const double r = a.r[i] - alpha * s;
      a.r[i] = r;
      next[0] += r * r;
    }
    sums.sum(next);
    const double beta = over(next[0], rr[0]);
    rr[0] = next[0];
    for (int i = begin; i < rows.high; i += step) {
      if constexpr (kProduct == Product::merge) store(a.s + i, 0);
      spread<kHalo>(a, 0, i, a.r[i] + beta * p[i]);
    }
    double none[1] = {0};
    sums.sum(none);
  }
  if (block() == 0 && lane() == 0) *a.norm2 = rr[0];
}

// What an iteration of `cg` consists of, one thing by itself: of products, dots and updates no
// block waits for another one. Nothing is solved: updates are of length 0, which no compiler knows.
enum class Only { products, dots, updates, sums };
template <Only kWhat>
__device__ void cg_only(const CgArgs& a) {
  FlagSums sums(a.sums);
  const Rows rows(a, 0);
  const int begin = rows.low + static_cast<int>(lane()), step = static_cast<int>(lanes());
  for (int i = begin; i < rows.high; i += step) {
    a.x[i] = 0, a.r[i] = a.s[i] = a.b[i];
    spread<Halo::push>(a, 0, i, a.b[i]);
  }
  double one[1] = {0};
  sums.sum(one);
  const double alpha = get_value(a.norm2), beta = alpha;  // 0
  const double* const p = a.operand[0][a.sums.pe] + a.matrix.begin;
  double all = 0;
  for (int k = 0; k < a.iterations; ++k) {
    if constexpr (kWhat == Only::products)
      all += by_rows(a.matrix, rows.low, rows.high, FromOwn{a.operand[0][a.sums.pe]}, a.s);
    if constexpr (kWhat == Only::dots)
      for (int i = begin; i < rows.high; i += step) {
        const double r = get_value(a.r + i);
        all += get_value(a.s + i) * get_value(p + i) + r * r;
      }
    if constexpr (kWhat == Only::updates) {
      for (int i = begin; i < rows.high; i += step)
        a.x[i] += alpha * p[i], a.r[i] -= alpha * a.s[i];
      for (int i = begin; i < rows.high; i += step)
        spread<Halo::push>(a, 0, i, a.r[i] + beta * p[i]);
    }
    for (int n = 0; kWhat == Only::sums && n < 3; ++n) {  // p . A p, r . r, the barrier behind p
      one[0] = 1;
      sums.sum(one);
      all += one[0];
    }
  }
  if (all == -1) *a.norm2 = all;  // never: all of it is needed
}

// Ghysels and Vanroose 2014: the two sums travel during the product. `kFirst`: blocks that have no
// rows, 1 where one block makes the sums. `kWaits`: false leaves the sums out, for their time: what
// it computes is then no solution.
template <class S, int kFirst, bool kWaits>
__device__ void pipecg(const CgArgs& a) {
  S sums(a.sums);
  FlagSums meeting(a.meeting);
  const Rows rows(a, kFirst);
  const int begin = rows.low + static_cast<int>(lane()), step = static_cast<int>(lanes());
  double none[1] = {0};
  for (int i = begin; i < rows.high; i += step) {
    a.x[i] = a.p[i] = a.s[i] = a.z[i] = 0;
    a.r[i] = a.b[i];
    spread<Halo::push>(a, 1, i, a.b[i]);
  }
  meeting.sum(none);
  // w = A r, by way of z, which is not in use yet.
  by_rows(a.matrix, rows.low, rows.high, FromOwn{a.operand[1][a.sums.pe]}, a.z);
  sync_block();
  for (int i = begin; i < rows.high; i += step) {
    spread<Halo::push>(a, 0, i, a.z[i]);
    a.z[i] = 0;
  }
  none[0] = 0;
  meeting.sum(none);
  double before = 0, alpha = 0, gamma = 0;
  for (int k = 0; k < a.iterations; ++k) {
    const int which = k % 2;
    const double* const w = a.operand[which][a.sums.pe] + a.matrix.begin;
    double both[2] = {0, 0};
    for (int i = begin; i < rows.high; i += step) {
      both[0] += a.r[i] * a.r[i];
      both[1] += w[i] * a.r[i];
    }
    if constexpr (kWaits) sums.push(both);
    by_rows(a.matrix, rows.low, rows.high, FromOwn{a.operand[which][a.sums.pe]}, a.q);
    if constexpr (kWaits) sums.pull(both);
    sync_block();  // the product is there
    gamma = both[0];
    const double beta = k == 0 ? 0 : over(gamma, before);
    alpha = over(gamma, k == 0 ? both[1] : both[1] - beta * over(gamma, alpha));
    before = gamma;
    for (int i = begin; i < rows.high; i += step) {
      const double z = a.q[i] + beta * a.z[i], s = w[i] + beta * a.s[i], p = a.r[i] + beta * a.p[i];
      a.z[i] = z, a.s[i] = s, a.p[i] = p;
      a.x[i] += alpha * p;
      a.r[i] -= alpha * s;
      spread<Halo::push>(a, 1 - which, i, w[i] - alpha * z);
    }
    none[0] = 0;
    meeting.sum(none);
  }
  if (static_cast<int>(block()) == kFirst && lane() == 0) *a.norm2 = gamma;
}

}  // namespace ablations
