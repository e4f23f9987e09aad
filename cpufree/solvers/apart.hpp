// What is done out of line, and how its context's state comes back.
#pragma once

#include "cpufree/solvers/context.hpp"

namespace cpufree {

// What a cold (out of line) function returns: the state of its context, to be taken over; a number,
// of each column, and another one; and whether all waits were met.
template <class Ctx>
struct ColdResult {
  typename Ctx::State after;
  typename Ctx::Totals value = {};
  bool met = true;
  typename Ctx::Totals other = {};
};

// to = A v, or to -= A v (`subtracts`), after `exchange(v, ...)`: a product out of line, one copy
// of which serves all that is not the method's own product. Compilers take most of their time for
// products: with a copy for each use, a kernel with the Chebyshev preconditioner took them seven
// times as long.
template <class Ctx>
CPUFREE_COLD_FN ColdResult<Ctx> product_cold(
    typename Ctx::PortType port, const typename Ctx::Args& args, const typename Ctx::Share& share,
    const typename Ctx::BlockVectors& vectors, typename Ctx::State before,
    Ghosted<typename Ctx::Values> v, Private<typename Ctx::Values> to, bool subtracts) {
  using Values = typename Ctx::Values;
  Ctx c(port, args, share, vectors, before);
  const bool met = c.multiply(
      v, [&](Row i, int, const Values& value) { to[i] = subtracts ? to[i] - value : value; });
  return {c.state(), {}, met};
}

// False: a wait gave up.
template <class Ctx, class V>
CPUFREE_KERNEL_FN bool multiply_apart(Ctx& c, const Ghosted<V>& v, const Private<V>& to,
                                      bool subtracts = false) {
  const auto answer =
      product_cold<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state(), v, to, subtracts);
  c.go_on_from(answer.after);
  return answer.met;
}

// Sums of a rare place, out of line: an all-reduce is long, and methods have one of their own in
// their loops. All are summed wherever fewer are wanted, so that one copy serves all: those of an
// iteration of predict-and-recompute CG; of several columns, those of a true residual.
template <class Ctx>
struct RareSums {
  static constexpr int kCount = rare_sums(Ctx::kColumns);
  typename Ctx::Sums partial[kCount];
  typename Ctx::Totals total[kCount] = {};
};
template <class Ctx>
CPUFREE_COLD_FN ColdResult<Ctx> sum_cold(typename Ctx::PortType port,
                                         const typename Ctx::Args& args,
                                         const typename Ctx::Share& share,
                                         const typename Ctx::BlockVectors& vectors,
                                         typename Ctx::State before, RareSums<Ctx>& sums) {
  Ctx c(port, args, share, vectors, before);
  const bool met = c.sum(sums.partial, sums.total);
  return {c.state(), {}, met};
}

// Sums over all rows of all PEs. False: a wait gave up.
template <class Ctx>
CPUFREE_KERNEL_FN bool sum_apart(Ctx& c, RareSums<Ctx>& sums) {
  const auto answer = sum_cold<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state(), sums);
  c.go_on_from(answer.after);
  return answer.met;
}

}  // namespace cpufree
