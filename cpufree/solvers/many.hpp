// Many systems in one kernel: each is solved by one block, as by a PE of a single block, by the
// same text as any other solve. Blocks wait for nothing but their own threads.
#pragma once

#include "cpufree/solvers/kernel.hpp"

namespace cpufree {

// The port of a block that is alone.
template <Port P>
class OneBlock : public P {
 public:
  CPUFREE_KERNEL_FN explicit OneBlock(const P& port) : P(port) {}
  CPUFREE_KERNEL_FN int block() const { return 0; }
  CPUFREE_KERNEL_FN int blocks() const { return 1; }
};

template <class M>
struct ManyArgs {
  const SolveArgs<M>* systems = nullptr;  // block k has systems k, k + blocks, ...
  std::int32_t count = 0;
};

template <template <class, class> class Algorithm, class M, Port P, class Matrix>
CPUFREE_KERNEL_FN void solve_each(P& port, const ManyArgs<Matrix>& args) {
  OneBlock<P> alone(port);
  CPUFREE_ONE_COPY
  for (int k = port.block(); k < args.count; k += port.blocks()) {
    solve_kernel<Algorithm, M, SlicesOf<kSingles | kPlainValues>>(alone, args.systems[k]);
    alone.sync_block();  // fast memory is no longer read
  }
}

}  // namespace cpufree
