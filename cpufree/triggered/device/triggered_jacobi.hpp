// Jacobi iterations in two dimensions whose halos are triggered puts: one kernel for the whole run.
// The arithmetic is that of all other stencils (local.hpp), and so are the bits.
//
// Each block has a strip of rows, in two arrays that it writes in turn: iteration e reads the
// values of array (e + 1) % 2 and writes array e % 2. Above and below a strip lies a ghost row. A
// block computes its first and last row, sends each to the neighbour whose ghost it is, and
// computes the others meanwhile. To a block of the same PE it stores the row and a flag; to one of
// another PE its NIC puts it, triggered by the block.
//
// Reuse. Source: a row of array e % 2 is written again in e + 2, after `done` of e. Ghost: it is
// read by the row next to it, in e + 1, before the neighbour sends that row in e + 1; a block sends
// in e + 2 after it has waited for the signals of e + 1 from both sides. So what it overwrites has
// been read. Signals: one for each side of a block, written by the block or NIC on that side.
#pragma once

#include "cpufree/device/block.hpp"
#include "cpufree/stencils/local.hpp"
#include "cpufree/triggered/device/triggered.hpp"

namespace cpufree {

// How rows are divided. The first and last row and column of the grid keep their values.
struct StripShape {
  std::int64_t rows = 0;     // of the grid
  std::int32_t columns = 0;  // of the grid
  int pes = 1;
  int blocks = 1;  // of each PE

  CPUFREE_FN int all() const { return pes * blocks; }
  // The first row of strip `number`, counted over all PEs; it has those up to the next one's.
  CPUFREE_FN std::int64_t first(int number) const { return 1 + (rows - 2) * number / all(); }
  CPUFREE_FN std::int64_t longest() const { return (rows - 2 + all() - 1) / all(); }
  // Values of one array of a strip, with its ghosts, and of all of a PE.
  CPUFREE_FN std::int64_t array() const { return (longest() + 2) * columns; }
  CPUFREE_FN std::int64_t values() const { return 2 * array() * blocks; }
  // Where, of a PE's values, row `row` of a strip lies; -1 is the ghost above.
  CPUFREE_FN std::int64_t place(int block, int parity, std::int64_t row) const {
    return (2 * block + parity) * array() + (row + 1) * columns;
  }
};

// What a strip sends to one side: its first row up, its last row down.
struct StripEdge {
  int side = 0;  // 0: up, 1: down
  int pe = 0;
  int block = 0;
  std::int64_t row = 0;    // of mine
  std::int64_t ghost = 0;  // of the neighbour

  CPUFREE_FN int signal() const { return 2 * block + 1 - side; }  // up arrives from below
};

// False: there is no strip on that side.
CPUFREE_FN bool edge_of(const StripShape& s, int pe, int block, int side, StripEdge& edge) {
  const int number = pe * s.blocks + block;
  const int other = side == 0 ? number - 1 : number + 1;
  if (other < 0 || other >= s.all()) return false;
  edge.side = side;
  edge.pe = other / s.blocks;
  edge.block = other % s.blocks;
  edge.row = side == 0 ? 0 : s.first(number + 1) - s.first(number) - 1;
  edge.ghost = side == 0 ? s.first(other + 1) - s.first(other) : -1;
  return true;
}

// The put of an edge to another PE; operation 2 * block + side. `values`: offset of a PE's values.
template <class T>
CPUFREE_FN TriggerOperation operation_of(const StripShape& s, const StripEdge& edge, int block,
                                         std::uint64_t values, std::uint32_t iterations) {
  TriggerOperation o;
  o.first = {static_cast<std::uint32_t>(2 * block + edge.side), 0};
  o.epochs = iterations;
  o.pe = edge.pe;
  o.bytes = static_cast<std::uint64_t>(s.columns) * sizeof(T);
  o.source = values + static_cast<std::uint64_t>(s.place(block, 0, edge.row)) * sizeof(T);
  o.target = values + static_cast<std::uint64_t>(s.place(edge.block, 0, edge.ghost)) * sizeof(T);
  o.source_step = o.target_step = static_cast<std::uint64_t>(s.array()) * sizeof(T);
  o.slots = 2;
  o.signal = edge.signal();
  return o;
}

template <class T>
struct TriggeredJacobiArgs {
  StripShape shape;
  T* values = nullptr;  // symmetric, shape.values(); array 1 and all kept values are filled
  std::uint32_t iterations = 0;
};

// `V`: how triggers are sent.
template <Port P, class T, class V = Triggers<P>>
class TriggeredJacobi {
 public:
  CPUFREE_KERNEL_FN TriggeredJacobi(P& port, const TriggerBoard& board, V& triggers,
                                    const TriggeredJacobiArgs<T>& args)
      : port_(port),
        board_(board),
        triggers_(triggers),
        args_(args),
        rows_(args.shape.first(number() + 1) - args.shape.first(number())) {
    for (int side = 0; side < 2; ++side)
      has_[side] = edge_of(args.shape, port.pe(), port.block(), side, edge_[side]);
  }

  // False: leave the kernel.
  CPUFREE_KERNEL_FN bool run() {
    for (std::uint32_t e = 0; e < args_.iterations; ++e) {
      if (!wait_for_sides(e)) return false;
      update(e, 0);
      if (rows_ > 1) update(e, rows_ - 1);
      port_.sync_block();  // a row is sent by other threads than those that computed it
      for (int side = 0; side < 2; ++side)
        if (!send(side, e)) return false;
      for (std::int64_t row = 1; row < rows_ - 1; ++row) update(e, row);
    }
    return leave_when_sent();
  }

 private:
  CPUFREE_KERNEL_FN int number() const { return port_.pe() * args_.shape.blocks + port_.block(); }
  CPUFREE_KERNEL_FN T* row_of(std::uint32_t parity, std::int64_t row) const {
    return args_.values + args_.shape.place(port_.block(), static_cast<int>(parity % 2), row);
  }
  CPUFREE_KERNEL_FN bool by_trigger(int side) const { return edge_[side].pe != port_.pe(); }
  CPUFREE_KERNEL_FN TriggerTag tag(int side, std::uint32_t epoch) const {
    return {static_cast<std::uint32_t>(2 * port_.block() + side), epoch};
  }

  // Ghosts of the iteration before have come, and my rows of two iterations before have gone.
  CPUFREE_KERNEL_FN bool wait_for_sides(std::uint32_t e) {
    for (int side = 0; e > 0 && side < 2; ++side) {
      if (!has_[side]) continue;
      if (!triggers_.wait_signal(2 * port_.block() + side, e - 1, edge_[side].pe)) return false;
      if (e > 1 && by_trigger(side) && !triggers_.wait_done(tag(side, e - 2))) return false;
    }
    port_.sync_block();
    return true;
  }

  CPUFREE_KERNEL_FN void update(std::uint32_t e, std::int64_t row) {
    RowsAround<T> around{};
    around.before = row_of(e + 1, row - 1);
    around.centre = row_of(e + 1, row);
    around.after = row_of(e + 1, row + 1);
    T* const to = row_of(e, row);
    for_each(port_, 1, args_.shape.columns - 1,
             [&](std::int32_t x, int) { to[x] = jacobi_point<2, false>(around, x); });
  }

  CPUFREE_KERNEL_FN bool send(int side, std::uint32_t e) {
    if (!has_[side]) return true;
    if (by_trigger(side)) return triggers_.trigger(tag(side, e));
    const StripEdge& edge = edge_[side];
    const T* const from = row_of(e, edge.row);
    T* const to = args_.values + args_.shape.place(edge.block, static_cast<int>(e % 2), edge.ghost);
    for_each(port_, 0, args_.shape.columns,
             [&](std::int32_t x, int) { port_.put(to + x, port_.pe(), from[x]); });
    port_.sync_block();
    if (port_.lane() != 0) return true;
    port_.publish(Scope::pe);
    port_.put_flag(board_.signals + edge.signal(), port_.pe(), Epoch{e} + 1);
    return true;
  }

  // Memory that puts still write when a kernel ends must not be read: the caller may then free it.
  CPUFREE_KERNEL_FN bool leave_when_sent() {
    for (int side = 0; side < 2; ++side)
      if (args_.iterations > 0 && has_[side] && by_trigger(side) &&
          !triggers_.wait_done(tag(side, args_.iterations - 1)))
        return false;
    return true;
  }

  P& port_;
  const TriggerBoard& board_;
  V& triggers_;
  const TriggeredJacobiArgs<T>& args_;
  std::int64_t rows_;
  StripEdge edge_[2];
  bool has_[2];
};

}  // namespace cpufree
