// Steps of a small level, whose vectors are packets.
//
// One packet for each entry, which carries the number of the cycle: a row's product waits for the
// entries that it reads, and for nothing else. From one step to the next that is one store and one
// load through the L2 cache, where flags take a fence, a store, a look at the flags of all blocks
// and another fence before the first load.
//
// Reuse. Each exchange of a cycle has packets of its own. A block reads those of a cycle before it
// takes part in the next all-reduce, which conjugate gradients have after each; they are written
// again after it. This is proof (i) of channel.hpp.
//
// r, x and the own entry of the vector that was exchanged last (d) are each row's alone. The matrix
// of a level, the restriction to it and the prolongation to it have a row in the same thread
// (spread_rows), so that no barrier lies between them.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/device/warp_port.hpp"
#include "cpufree/multigrid/cycle_steps.hpp"

namespace cpufree {

// A vector of a level as one of its exchanges has it.
struct PacketVector {
  const SmallPacket* entries;
  const std::int32_t* first_rows;  // of each block
  Epoch want;
};

// The operand of a product. A wait that is given up sets `gone`, and the product goes on with what
// was there: threads of a block leave together.
template <WarpPort P>
struct PacketsOperand {
  static constexpr bool in_pieces = false;
  P& port;
  PacketVector from;
  bool& gone;

  // By one thread, without the others of its warp.
  CPUFREE_KERNEL_FN float operator()(std::int32_t column) const {
    SmallPacket packet = port.get_packet(from.entries + column);
    if (arrived(packet, from.want)) return packet.value;
    auto wait = port.start_wait();
    while (port.keep_waiting(wait)) {
      packet = port.get_packet(from.entries + column);
      if (arrived(packet, from.want)) return packet.value;
    }
    gone = true;
    file_wait(port, wait, site(column), from.want, epoch_of(packet, from.want));
    return packet.value;
  }
  // By all threads of a warp, which look at all entries together.
  template <int N>
  CPUFREE_KERNEL_FN void fetch(const std::int32_t (&columns)[N], float (&out)[N]) const {
    SmallPacket got[N];
    if (!wait_some_together(
            port, [&](int k) { return from.entries + columns[k]; }, [](int) { return true; },
            from.want, [&](int k) { return site(one_of(columns, k)); }, got))
      gone = true;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) out[k] = got[k].value;
  }

 private:
  // columns[k] without an index that is not known: that would have the array in local memory, and
  // loads of columns wait for stores there, one after the other.
  template <int N>
  CPUFREE_KERNEL_FN static std::int32_t one_of(const std::int32_t (&columns)[N], int k) {
    std::int32_t found = columns[0];
    CPUFREE_UNROLL
    for (int j = 1; j < N; ++j)
      if (j == k) found = columns[j];
    return found;
  }
  // The block whose row it is.
  CPUFREE_KERNEL_FN WaitSite site(std::int32_t row) const {
    int first = 0;
    int end = port.blocks();
    while (end - first > 1) {
      const int middle = first + (end - first) / 2;
      (from.first_rows[middle] <= row ? first : end) = middle;
    }
    return {Channel::local_arrival, port.pe(), first};
  }
};

template <class F>
CPUFREE_KERNEL_FN bool has_packets(const CycleLevel<F>& level) {
  return level.packets.all != nullptr;
}

// The steps of a level that has packets, or whose next level has: `cycle` and `exchanges` of it
// have been. `below`: the next level, of transfers.
template <WarpPort P, class F>
class PacketSteps {
  using Level = CycleLevel<F>;

  // What a product with `from` does to the rows that it has. Null: not there.
  struct Product {
    PacketVector from;
    SmallPacket* to = nullptr;  // what is exchanged, packet i of row i
    float* told = nullptr;      // the same, for the row's next step
    bool transfers = false;     // that is the product itself; else what the rule says
    StepRule rule;
    float* r = nullptr;
    float* x = nullptr;
    const float* d = nullptr;
  };

 public:
  CPUFREE_KERNEL_FN PacketSteps(P& port, const Level& level, Epoch cycle, int exchanges)
      : port_(port), level_(level), cycle_(cycle), exchanges_(exchanges) {}

  CPUFREE_KERNEL_FN void begin(CycleStep step) {
    const std::int64_t shift = private_shift(level_);
    float* const r = level_.args.vectors.r + shift;
    float* const x = level_.args.vectors.x + shift;
    float* const told = own_entries();
    SmallPacket* const to = packets_of(level_, exchanges_);
    const auto number = static_cast<std::uint32_t>(cycle_ + 1);
    F::template each<LevelSlices>(port_, level_.share.interior, [&](std::int32_t i, int) {
      const float value = begin_row(level_, step, r[i], x[i]);
      told[i] = value;
      port_.send_packet(to + i, value, number);
    });
  }
  // False: a wait gave up.
  CPUFREE_KERNEL_FN bool take(CycleStep step, const Level& below) {
    const Product made = product(step, below);
    const bool own = step != CycleStep::down && step != CycleStep::up;
    const TransferShare<F>& by = step == CycleStep::down ? level_.restriction : level_.prolongation;
    const F& matrix = own ? level_.share.matrix : by.matrix;
    bool here = true;
    CPUFREE_ONE_COPY
    for (int k = 0; k < 2; ++k) {
      const auto& interior = own ? level_.share.interior : by.interior;
      const auto& boundary = own ? level_.share.boundary : by.boundary;
      if (!multiply(matrix, k == 0 ? interior : boundary, made)) here = false;
    }
    return here;
  }

 private:
  P& port_;
  const Level& level_;
  Epoch cycle_;
  int exchanges_;

  CPUFREE_KERNEL_FN static std::int64_t private_shift(const Level& level) {
    return level.share.first_private - level.share.interior_shift;
  }
  CPUFREE_KERNEL_FN static SmallPacket* packets_of(const Level& level, int exchange) {
    return level.packets.all + std::int64_t{exchange} * level.args.rows;
  }
  CPUFREE_KERNEL_FN PacketVector vector_of(const Level& level, int exchange) const {
    return {packets_of(level, exchange), level.packets.first_rows, cycle_ + 1};
  }
  CPUFREE_KERNEL_FN float* own_entries(int before = 0) const {
    return level_.args.vectors.scratch[(exchanges_ - before) & 1];
  }

  CPUFREE_KERNEL_FN Product product(CycleStep step, const Level& below) const {
    Product made;
    if (step == CycleStep::down) {
      made.from = vector_of(level_, exchanges_ - 1);
      made.told = below.args.vectors.r + private_shift(below);
      made.transfers = true;
      return made;
    }
    made.from =
        step == CycleStep::up ? vector_of(below, below.told) : vector_of(level_, exchanges_ - 1);
    if (step != CycleStep::alone) {
      made.told = own_entries();
      if (has_packets(level_)) made.to = packets_of(level_, exchanges_);
    }
    if (step == CycleStep::up) {
      made.transfers = true;
      return made;
    }
    made.rule = StepRule(level_, step);
    made.r = level_.args.vectors.r + private_shift(level_);
    made.x = level_.args.vectors.x + private_shift(level_);
    made.d = own_entries(1);
    return made;
  }

  CPUFREE_KERNEL_FN bool multiply(const F& matrix, const typename F::Rows& rows,
                                  const Product& made) {
    bool gone = false;
    const auto read = [made](std::int32_t i) {
      return made.transfers ? RowOfLevel{} : RowOfLevel{made.r[i], made.x[i], made.d[i]};
    };
    const auto use = [&port = port_, made](std::int32_t i, const RowOfLevel& row, float product) {
      float value = product;
      if (!made.transfers) value = made.rule.apply(row, product, made.r[i], made.x[i]);
      if (made.told != nullptr) made.told[i] = value;
      if (made.to != nullptr)
        port.send_packet(made.to + i, value, static_cast<std::uint32_t>(made.from.want));
    };
    matrix.template multiply_reading<LevelSlices>(
        port_, rows, PacketsOperand<P>{port_, made.from, gone}, read, use);
    return !gone;
  }
};

// The same out of line, one copy for all levels.
template <WarpPort P, class F>
CPUFREE_STEP_FN bool take_packets(P port, const CycleLevel<F>& level, const CycleLevel<F>& below,
                                  Epoch cycle, int exchanges, CycleStep step) {
  PacketSteps<P, F> steps(port, level, cycle, exchanges);
  if (step != CycleStep::first && step != CycleStep::turn) return steps.take(step, below);
  steps.begin(step);
  return true;
}

}  // namespace cpufree
