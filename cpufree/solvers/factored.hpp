// A preconditioner that is known entry by entry: two sparse factors beside A.
#pragma once

#include "cpufree/device/channel.hpp"
#include "cpufree/solvers/context.hpp"

namespace cpufree {

// M = S F_2 F_1 S (problem/factors/factors.hpp): a product for each factor, its operand exchanged
// among the blocks of a PE; nothing goes to other PEs. M is symmetric positive definite as long as
// F_2 is the transpose of F_1 and regular.
//
// Operands are two vectors of the PE, taken in turn: exchange e is of number e mod 2. They and the
// arrival board are the preconditioner's own, so that its exchanges and those of p and scratch have
// nothing to do with one another. Proof (ii) of channel.hpp holds for them: between exchanges e and
// e + 2 of an operand lies e + 1 of the other one, in which a block has waited for all blocks that
// read its rows of e, and these have arrived only after their products of e. The list of partners
// is symmetric: who reads rows of whom, by either factor, or the other way round. Other threads of
// the same block are covered by the barrier in arrive_local: it lies between the products of e and
// the stores of e + 2 as well.
//
// Rows of a factor belong to other threads than those of A. So a barrier lies between the products
// and the next loop over rows, at the end of `apply`; and one between the loops before and the
// products, in arrive_local.
//
// K columns have operands and flags of their own, which the arguments name: those of the shares are
// for one.
template <class T, int K = 1>
struct Factored {
  static constexpr bool pointwise = false;
  using V = ValuesOf<T, K>;
  Private<V> out;
  // Exchanges that have taken place. All threads read it before the first barrier of `apply`; then
  // one thread writes it, and the last barrier lies before the next reads.
  mutable Epoch exchanges = 0;

  CPUFREE_KERNEL_FN explicit Factored(const BlockVectors<T, K>& v) : out(v.out) {}

  template <class Ctx>
  CPUFREE_KERNEL_FN static bool prepare(Ctx&) {
    return true;
  }
  CPUFREE_KERNEL_FN static void report(Outcome&) {}
  CPUFREE_KERNEL_FN V image(Row i, const V&) const { return out[i]; }
  CPUFREE_KERNEL_FN Private<V> reads() const { return out; }

  template <class Ctx>
  CPUFREE_KERNEL_FN bool apply(Ctx& c, const Private<V>& v) const {
    const FactorShare<T>& share = c.args.factors[c.port().block()];
    const T* const scale = share.scale;
    ArrivalBoard of_columns;
    if constexpr (K > 1) of_columns = share.board, of_columns.flags = c.args.factor_flags;
    Arrivals<typename Ctx::PortType> arrivals(c.port(), K > 1 ? of_columns : share.board,
                                              exchanges);
    arrivals.begin();
    V* to = mine(c, share, arrivals.epoch());
    c.rows([&](Row i, int) { to[i.j] = scale[i.j] * v[i]; });
    CPUFREE_ONE_COPY
    for (int k = 0; k < share.count; ++k) {
      arrivals.arrive_local();
      if (!arrivals.wait_local()) return false;
      const V* const from = operand(c, share, arrivals.epoch());
      const bool last = k + 1 == share.count;
      if (!last) {
        arrivals.begin();
        to = mine(c, share, arrivals.epoch());
      }
      V* const result = last ? out.data : to;
      share.factor[k].multiply(c.port(), from, [&](std::int32_t row, const V& value) {
        result[row] = last ? scale[row] * value : value;
      });
    }
    if (c.port().lane() == 0) exchanges = arrivals.epoch();
    c.port().sync_block();
    return true;
  }

 private:
  // The operand of an exchange, and my part of it.
  template <class Ctx>
  CPUFREE_KERNEL_FN static V* operand(Ctx& c, const FactorShare<T>& share, Epoch exchange) {
    if constexpr (K > 1)
      return c.args.operand[exchange & 1U];
    else
      return share.operand[exchange & 1U];
  }
  template <class Ctx>
  CPUFREE_KERNEL_FN static V* mine(Ctx& c, const FactorShare<T>& share, Epoch exchange) {
    return operand(c, share, exchange) + c.share().first_private;
  }
};

}  // namespace cpufree
