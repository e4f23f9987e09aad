// Preconditioners M, and the verbs in which methods use them. Each is a file: these two,
// chebyshev.hpp, factored.hpp. None needs the CPU: no triangular solve, nothing but products.
//
//   - prepare(c): before the first use, by all threads, what takes exchanges. False: a wait gave
//     up.
//   - apply(c, v): z = M v of a private vector. False: a wait gave up.
//   - image(i, v): z(i) after that, where v is v(i).
//   - reads(): the vector that `image` reads.
//   - report(out): what users may know of it.
//
// Where M is `pointwise`, z(i) depends on v(i) alone: there is nothing to apply, and `image`
// computes it wherever it is needed, as entry(i) times v. Where it is not, z is the vector `out`
// until the next `apply`.
#pragma once

#include "cpufree/solvers/apart.hpp"
#include "cpufree/solvers/monitor.hpp"

namespace cpufree {

// Those that are made of products with A.
template <class M>
concept MultipliesByA = requires { requires M::multiplies_by_a; };

// Those beside which an all-reduce is short: methods leave theirs to the copy out of line, which is
// a call more, and a sum or several.
template <class M>
concept TakesLong = MultipliesByA<M> || requires { requires M::takes_long; };

struct Pointwise {
  static constexpr bool pointwise = true;
  template <class Ctx>
  CPUFREE_KERNEL_FN static bool prepare(Ctx&) {
    return true;
  }
  template <class Ctx, class V>
  CPUFREE_KERNEL_FN static bool apply(Ctx&, const V&) {
    return true;
  }
  CPUFREE_KERNEL_FN static void report(Outcome&) {}
};

// M = I.
template <class T>
struct Identity : Pointwise {
  template <class Vectors>
  CPUFREE_KERNEL_FN explicit Identity(const Vectors&) {}
  template <class V>
  CPUFREE_KERNEL_FN V image(Row, const V& value) const {
    return value;
  }
  CPUFREE_KERNEL_FN static T entry(Row) { return 1; }
  CPUFREE_KERNEL_FN Private<const T> reads() const { return {}; }
};

// M = D^-1, D the diagonal of A.
template <class T>
struct Jacobi : Pointwise {
  Private<const T> inverse_diagonal;
  template <class Vectors>
  CPUFREE_KERNEL_FN explicit Jacobi(const Vectors& v) : inverse_diagonal(v.inverse_diagonal) {}
  template <class V>
  CPUFREE_KERNEL_FN V image(Row i, const V& value) const {
    return inverse_diagonal[i] * value;
  }
  CPUFREE_KERNEL_FN T entry(Row i) const { return inverse_diagonal[i]; }
  CPUFREE_KERNEL_FN Private<const T> reads() const { return inverse_diagonal; }
};

template <class Ctx, class M, class T>
CPUFREE_COLD_FN ColdResult<Ctx> apply_cold(typename Ctx::PortType port,
                                           const typename Ctx::Args& args,
                                           const typename Ctx::Share& share,
                                           const typename Ctx::BlockVectors& vectors,
                                           typename Ctx::State before, const M& m, Private<T> v) {
  Ctx c(port, args, share, vectors, before);
  const bool met = m.apply(c, v);
  return {c.state(), {}, met};
}

// z = M v, out of line where there is something to apply: it is long, and methods do so in several
// places. False: a wait gave up.
template <class Ctx, class M, class V>
CPUFREE_KERNEL_FN bool apply_apart(Ctx& c, const M& m, const V& v) {
  if constexpr (M::pointwise) {
    return true;
  } else {
    const auto answer = apply_cold<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state(), m, v);
    c.go_on_from(answer.after);
    return answer.met;
  }
}

// Context::sum of a method with the preconditioner M. All threads have met at a barrier since they
// read what meanwhile() writes.
template <class M, class Ctx, int N, class F, class... V>
CPUFREE_KERNEL_FN bool sum_beside(Ctx& c, const typename Ctx::Sums (&partial)[N],
                                  typename Ctx::Totals (&total)[N], F&& meanwhile,
                                  const V&... next) {
  if constexpr (TakesLong<M>) {
    RareSums<Ctx> all;
    static_assert(N <= RareSums<Ctx>::kCount);
    for (int n = 0; n < N; ++n) all.partial[n] = partial[n];
    if (c.port().bookkeeper()) meanwhile();
    const bool met = sum_apart(c, all);
    for (int n = 0; n < N; ++n) total[n] = all.total[n];
    return met;
  } else {
    return c.sum(partial, total, meanwhile, next...);
  }
}

// M v of a vector v that a recurrence updates: at hand on the fly where M is pointwise, else kept
// in a vector of its own, which the recurrence updates along with v. M here is a copy, for `image`:
// the block's own would be read again for every row. To apply M takes the block's.
template <class M, class T>
struct KeptImage {
  static constexpr bool kept = !M::pointwise;
  M m;
  Private<T> image;
  // (M v)(i) of v(i).
  CPUFREE_KERNEL_FN T operator()(Row i, T v) const {
    if constexpr (kept)
      return image[i];
    else
      return m.image(i, v);
  }
  // From v itself. False: a wait gave up.
  template <class Ctx>
  CPUFREE_KERNEL_FN bool begin(Ctx& c, const M& of_block, const Private<T>& v) const {
    if constexpr (kept) {
      if (!apply_apart(c, of_block, v)) return false;
      c.rows([&](Row i, int) { image[i] = m.image(i, v[i]); });
    }
    return true;
  }
  // Row i of v has changed by -alpha times that of a vector whose image is `by`().
  template <class F>
  CPUFREE_KERNEL_FN void step(Row i, T alpha, F&& by) const {
    if constexpr (kept) image[i] -= alpha * by();
  }
  CPUFREE_KERNEL_FN auto reads() const {
    if constexpr (kept)
      return image;
    else
      return m.reads();
  }
};

// v(i) = f(i) for all my rows; then M v is available; then g(i, lane, v(i), (M v)(i)). One pass
// where M is pointwise. v is private to the block's rows; f reads it, and `read`.
template <class Ctx, class M, class V, class F, class G>
CPUFREE_KERNEL_FN bool precondition(Ctx& c, const M& m, const Private<V>& v, F&& f, G&& g,
                                    const Private<V>& read) {
  if constexpr (M::pointwise) {
    const M mine = m;  // at hand: the block's copy would be read again for every row
    const Private<V> to = v;
    const auto pass = [&](Row i, int lane) {
      const V value = f(i);
      g(i, lane, value, mine.image(i, value));
      to[i] = value;
    };
    c.rows(pass, to, read, mine.reads());
    return true;
  } else {
    c.rows([&](Row i, int) { v[i] = f(i); });
    if (!apply_apart(c, m, v)) return false;
    c.rows([&](Row i, int lane) { g(i, lane, v[i], m.image(i, v[i])); });
    return true;
  }
}

// s = A p after `exchange(p, ...)`; then M s is available; then g(i, lane, s(i), (M s)(i)).
// g reads `read`.
template <class Ctx, class M, class T, class G>
CPUFREE_KERNEL_FN bool multiply_precondition(Ctx& c, const M& m, const Ghosted<T>& p,
                                             const Private<T>& s, G&& g, const Private<T>& read) {
  const Private<T> to = s;
  if constexpr (M::pointwise) {
    const M mine = m;
    const auto row = [&](Row i, int lane, T ap) {
      g(i, lane, ap, mine.image(i, ap));  // what it reads is under way before `to` is written
      to[i] = ap;
    };
    return c.multiply(p, row, read, mine.reads());
  } else {
    if (!multiply_apart(c, p, s) || !apply_apart(c, m, s)) return false;
    c.rows([&](Row i, int lane) { g(i, lane, s[i], m.image(i, s[i])); });
    return true;
  }
}

}  // namespace cpufree
