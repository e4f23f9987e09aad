// What planners know of the machine. Made from python/cpufree/machine/h200.json, which says
// where each number comes from, by python tools/machine_header.py --write.
#pragma once

namespace cpufree::machine {

// Of a GPU, each with a block of a kernel [1]
inline constexpr double kGpuMultiprocessors = 132;

// Cycles of a multiprocessor per second, under load [1/s]
inline constexpr double kGpuClock = 1750000000;

// Read and written, of a loop over arrays in the memory of one GPU [B/s]
inline constexpr double kGpuMemoryRate = 4.2e+12;

// The same, where the arrays stay in the L2 cache [B/s]
inline constexpr double kGpuCacheRate = 5.5e+12;

// Arrays of a grid up to which passes run at the rate of the L2 cache [B]
inline constexpr double kStencilCacheBytes = 45000000;

// Of one pass over values in memory: signalling neighbours and waiting for them [s]
inline constexpr double kStencilPassExchange = 2.5e-06;

// From the end of a sweep over 3-D tiles in registers to their halos being there [s]
inline constexpr double kStencilTileExchange = 1.5e-06;

// The same for 2-D tiles in registers [s]
inline constexpr double kStencilRowExchange = 1e-06;

// Matrix and vectors of a GPU that its L2 cache holds for the most part across iterations [B]
inline constexpr double kSolverCachedBytes = 80000000;

// Of a larger matrix: bytes that are kept in the L2 cache on purpose (evict_last); more, and
// lines drive out one another [B]
inline constexpr double kSolverKeptBytes = 20000000;

// Least matrix of which some is kept on purpose, where lanes share rows [B]
inline constexpr double kSolverLeastKeptOf = 50000000;

// On-chip memory of a block for its share of matrix and vectors [B]
inline constexpr double kSolverBlockBytes = 200000;

}  // namespace cpufree::machine
