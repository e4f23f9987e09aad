// What a pattern of messages among all PEs is told. Plain data, for host and device code.
#pragma once

#include <cstdint>

#include "cpufree/probes/args.hpp"

namespace cpufree {

enum class PatternKind : std::int32_t {
  exchange,  // every PE sends to some others, and waits for what they send to it
  gemm       // C = A B of square tiles on a grid of PEs
};

// Patterns are held against a model that was fitted to messages between two PEs.
struct PatternArgs {
  PatternKind kind = PatternKind::exchange;
  std::int32_t warm_ups = 0;  // rounds before the first that is timed
  std::int32_t repeats = 1;   // rounds that are timed
  bool reads = true;          // whether who gets a message reads its values
  Epoch epoch = 0;            // the last one of the run before
  // Of an exchange: values from PE p to PE q, and where they are at q, at [p * PEs + q].
  const std::int64_t* values = nullptr;
  const std::int64_t* places = nullptr;
  // Of a product.
  std::int32_t side = 1;    // PEs of a row of the grid
  std::int32_t tile = 1;    // rows of a tile
  bool puts = false;        // tiles are put by who has them; else got by who needs them
  bool overlapped = false;  // the second block moves tiles while the first one multiplies
  bool local = false;       // nothing travels: every step multiplies the PE's own tiles
  // Symmetric.
  Flag* flags = nullptr;     // pattern_flags(PEs)
  double* buffer = nullptr;  // places of messages; or A, B, and the tiles of each step
  // Private to a PE.
  double* product = nullptr;            // C
  std::uint64_t* ticks = nullptr;       // of each repeat: a round
  std::uint64_t* comm_ticks = nullptr;  // of each repeat: of that, waiting and moving tiles
  ProbeClock* clock = nullptr;
  std::int64_t* wrong = nullptr;  // values that were not what was sent, of each thread
};

// Flags: of the barrier, of messages by their sender, of the tiles of each step, of the second
// block.
CPUFREE_FN std::int64_t pattern_flags(std::int64_t pes) { return 4 * pes + 1; }

// Values of a PE's buffer for a product: its tiles of A and B, and those of each step.
CPUFREE_FN std::int64_t gemm_values(std::int64_t side, std::int64_t tile) {
  return 2 * (side + 1) * tile * tile;
}

// Of a product on a grid of side x side PEs. PE (i, j) adds A(i, k) B(k, j) in `side` steps, with
// k = i + j, i + j + 1, ... modulo `side`, so that in no step two PEs of a row, or of a column,
// need the same tile (Cannon 1969, A cellular computer to implement the Kalman filter algorithm).
struct TileGrid {
  std::int32_t side;
  int row, column;  // of one PE: divided once, as kernels ask in every step

  CPUFREE_FN TileGrid(std::int32_t side_, int pe)
      : side(side_), row(pe / side_), column(pe % side_) {}

  // Which PE has tile A (which = 0) or B (1) that this one needs in a step.
  CPUFREE_FN int owner(std::int32_t step, int which) const {
    const int k = (row + column + step) % side;
    return which == 0 ? row * side + k : k * side + column;
  }
  // Who needs that of this one in a step.
  CPUFREE_FN int reader(std::int32_t step, int which) const {
    const int other = which == 0 ? row : column;
    const int mine = which == 0 ? column : row;
    const int k = (mine - other - step + 2 * side) % side;
    return which == 0 ? row * side + k : k * side + column;
  }
  // Entry i of A, or of B behind it, of a PE: a small whole number, so that products are exact.
  CPUFREE_FN static double value(int pe, std::int64_t i, Epoch epoch) {
    return static_cast<double>(
        (static_cast<std::uint64_t>(i) * 5 + static_cast<std::uint64_t>(pe) * 3 + epoch) % 8);
  }
};

// Epochs that a run uses.
CPUFREE_FN Epoch pattern_epochs(const PatternArgs& args) {
  return 2 * (static_cast<Epoch>(args.warm_ups) + static_cast<Epoch>(args.repeats));
}

}  // namespace cpufree
