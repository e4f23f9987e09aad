// What planners know of the machine. Made from python/cpufree/machine/h200.json, which says
// where each number comes from, by python tools/machine_header.py --write.
#pragma once

namespace cpufree {

struct Machine {
  // Of a GPU, each with a block of a kernel [1]
  double gpu_multiprocessors = 132;

  // Cycles of a multiprocessor per second, under load [1/s]
  double gpu_clock = 1750000000;

  // Read and written, of a loop over arrays in the memory of one GPU [B/s]
  double gpu_memory_rate = 4.2e+12;

  // The same, where the arrays stay in the L2 cache [B/s]
  double gpu_cache_rate = 5.5e+12;

  // Arrays of a grid or a program that stay in the L2 cache from one sweep to the next [B]
  double gpu_cache_bytes = 45000000;

  // Of one pass over values in memory: signalling neighbours and waiting for them [s]
  double stencil_pass_exchange = 2.5e-06;

  // From the end of a sweep over 3-D tiles in registers to their halos being there [s]
  double stencil_tile_exchange = 1.5e-06;

  // Matrix and vectors of a GPU that its L2 cache holds for the most part across iterations [B]
  double solver_cached_bytes = 80000000;

  // Of a larger matrix: bytes that are kept in the L2 cache on purpose (evict_last); more, and
  // lines drive out one another [B]
  double solver_kept_bytes = 20000000;

  // Least matrix of which some is kept on purpose, where lanes share rows [B]
  double solver_least_kept_of = 50000000;

  // On-chip memory of a block for its share of matrix and vectors [B]
  double solver_block_bytes = 200000;
};

// f(name in the file, number) for each of them.
template <class F>
void each_number(Machine& machine, F&& f) {
  f("gpu.multiprocessors", machine.gpu_multiprocessors);
  f("gpu.clock", machine.gpu_clock);
  f("gpu.memory_rate", machine.gpu_memory_rate);
  f("gpu.cache_rate", machine.gpu_cache_rate);
  f("gpu.cache_bytes", machine.gpu_cache_bytes);
  f("stencil.pass_exchange", machine.stencil_pass_exchange);
  f("stencil.tile_exchange", machine.stencil_tile_exchange);
  f("solver.cached_bytes", machine.solver_cached_bytes);
  f("solver.kept_bytes", machine.solver_kept_bytes);
  f("solver.least_kept_of", machine.solver_least_kept_of);
  f("solver.block_bytes", machine.solver_block_bytes);
}

}  // namespace cpufree
