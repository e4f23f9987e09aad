// Patterns of messages among all PEs: exchanges by a table, and products of matrices in tiles.
//
// Rounds. A round is: barrier, preparation of what others are to get, barrier, and what is timed.
// Each barrier has an epoch, which all PEs count alike; messages of the round carry that of its
// second one.
//
// Barrier: every PE's first block puts a flag to every PE, and waits for those of all. Before its
// flags come a block barrier and `publish`, after those it waits for `acquire` and a block barrier:
// what a PE did before the barrier is visible, and what it read before has been read, for all that
// others do after it. A flag has one writer, the PE of its number.
//
// Visibility (read after write). A message's values are stored by the threads of a block; a block
// barrier, `publish` and the flag's store by one thread follow. Who sees the flag reach the epoch
// acquires after it, and a block barrier follows before any thread reads. What is prepared is
// visible by the second barrier.
//
// Reuse (write after read). Each message of a round has a place of its own, written once in it.
// It is written again in a later round, after a barrier that its reader has come to after reading
// it. With two blocks, the first one comes to the barrier, when all tiles of its PE have arrived:
// each of its second block's stores is awaited by the first block of some PE before that comes to
// the barrier, and the second block's loads come before the flag by which its own first block knows
// of the tile. So nothing that the second block does in a round outlasts the next barrier but the
// wait for the flag that begins its next round, which the first block puts after that barrier.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/probes/pattern_args.hpp"

namespace cpufree {

// Flags and barriers of a pattern.
template <Port P>
class PatternLink {
 public:
  CPUFREE_KERNEL_FN PatternLink(P& port, const PatternArgs& args) : port_(port), args_(args) {}

  // The flag that PE `from` has at whom it sends to.
  CPUFREE_KERNEL_FN Flag* of_sender(int from) const { return args_.flags + port_.pes() + from; }
  // That of tile A (which = 0) or B (1) of a step.
  CPUFREE_KERNEL_FN Flag* of_tile(int step, int which) const {
    return args_.flags + 2 * port_.pes() + 2 * step + which;
  }
  CPUFREE_KERNEL_FN Flag* of_second_block() const { return args_.flags + 4 * port_.pes(); }

  // All that the block has stored, and read, comes before the flag at PE `to`. By all threads.
  CPUFREE_KERNEL_FN void signal(Flag* flag, int to, Epoch epoch) {
    port_.sync_block();
    if (port_.lane() != 0) return;
    port_.publish(Scope::system);
    port_.put_flag(flag, to, epoch);
  }
  // By all threads. False: leave the kernel.
  CPUFREE_KERNEL_FN bool await(const Flag* flag, int from, Epoch epoch) {
    bool here = true;
    if (port_.lane() == 0) {
      here = wait_flag(port_, flag, epoch, WaitSite{Channel::halo_arrival, from, 0});
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }
  CPUFREE_KERNEL_FN bool barrier(Epoch epoch) {
    bool here = true;
    port_.sync_block();
    if (port_.lane() == 0) {
      port_.publish(Scope::system);
      for (int to = 0; to < port_.pes(); ++to) port_.put_flag(args_.flags + port_.pe(), to, epoch);
      for (int from = 0; here && from < port_.pes(); ++from)
        here =
            wait_flag(port_, args_.flags + from, epoch, WaitSite{Channel::halo_arrival, from, 0});
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }

 private:
  P& port_;
  const PatternArgs& args_;
};

// Messages by a table, each stored by all threads of the sender's block.
template <Port P>
class TableExchange {
 public:
  CPUFREE_KERNEL_FN TableExchange(P& port, const PatternArgs& args)
      : port_(port), args_(args), link_(port, args) {}

  std::int64_t wrong = 0;

  CPUFREE_KERNEL_FN bool prepare(Epoch) { return true; }
  // Each PE begins with the one behind it, so that not all begin with the same one.
  CPUFREE_KERNEL_FN bool run(Epoch epoch, std::uint64_t&) {
    const int pes = port_.pes();
    for (int step = 1; step < pes; ++step) send((port_.pe() + step) % pes, epoch);
    for (int step = 1; step < pes; ++step)
      if (!receive((port_.pe() + pes - step) % pes, epoch)) return false;
    return true;
  }
  CPUFREE_KERNEL_FN bool serve(Epoch) { return true; }  // the second block has nothing to do

 private:
  CPUFREE_KERNEL_FN void send(int to, Epoch epoch) {
    const int edge = port_.pe() * port_.pes() + to;
    const std::int64_t values = args_.values[edge];
    if (values == 0) return;
    double* const place = args_.buffer + args_.places[edge];
    for (std::int64_t i = port_.lane(); i < values; i += port_.lanes())
      port_.put(place + i, to, probe_value(epoch, i));
    link_.signal(link_.of_sender(port_.pe()), to, epoch);
  }
  CPUFREE_KERNEL_FN bool receive(int from, Epoch epoch) {
    const int edge = from * port_.pes() + port_.pe();
    const std::int64_t values = args_.values[edge];
    if (values == 0) return true;
    if (!link_.await(link_.of_sender(from), from, epoch)) return false;
    const double* const place = args_.buffer + args_.places[edge];
    for (std::int64_t i = port_.lane(); args_.reads && i < values; i += port_.lanes())
      wrong += place[i] != probe_value(epoch, i) ? 1 : 0;
    return true;
  }

  P& port_;
  const PatternArgs& args_;
  PatternLink<P> link_;
};

// C = A B on a grid of side x side PEs (TileGrid), a tile of each matrix on each.
template <Port P>
class TileProduct {
 public:
  CPUFREE_KERNEL_FN TileProduct(P& port, const PatternArgs& args)
      : port_(port),
        args_(args),
        link_(port, args),
        grid_(args.side, port.pe()),
        size_(std::int64_t{args.tile} * args.tile) {}

  std::int64_t wrong = 0;

  // New values of A and B, of which a product is exact.
  CPUFREE_KERNEL_FN bool prepare(Epoch epoch) {
    for (std::int64_t i = port_.lane(); i < 2 * size_; i += port_.lanes())
      port_.put(args_.buffer + i, port_.pe(), TileGrid::value(port_.pe(), i, epoch));
    return true;
  }

  CPUFREE_KERNEL_FN bool run(Epoch epoch, std::uint64_t& moving) {
    if (args_.overlapped) link_.signal(link_.of_second_block(), port_.pe(), epoch);
    for (std::int32_t step = 0; step < args_.side; ++step) {
      const std::uint64_t begin = port_.ticks();
      if (!fetch(step, epoch)) return false;
      moving += port_.ticks() - begin;
      multiply(tile(step, 0), tile(step, 1), step == 0);
    }
    port_.sync_block();
    return true;
  }

  // The second block: moves the tiles of all steps, one after the other.
  CPUFREE_KERNEL_FN bool serve(Epoch epoch) {
    if (!args_.overlapped) return true;
    if (!link_.await(link_.of_second_block(), port_.pe(), epoch)) return false;
    for (std::int32_t step = 0; !args_.local && step < args_.side; ++step) move(step, epoch);
    return true;
  }

  // All entries, computed once more from what the tiles were given.
  CPUFREE_KERNEL_FN void check(Epoch epoch) {
    for (std::int64_t entry = port_.lane(); entry < size_; entry += port_.lanes())
      wrong += args_.product[entry] != expected(entry, epoch) ? 1 : 0;
  }

 private:
  CPUFREE_KERNEL_FN double expected(std::int64_t entry, Epoch epoch) const {
    double sum = 0.0;
    for (std::int32_t step = 0; step < args_.side; ++step) {
      const int a = owner(step, 0), b = owner(step, 1);
      for (std::int32_t k = 0; k < args_.tile; ++k)
        sum += TileGrid::value(a, entry / args_.tile * args_.tile + k, epoch) *
               TileGrid::value(b, size_ + std::int64_t{k} * args_.tile + entry % args_.tile, epoch);
    }
    return sum;
  }
  // Which PE has tile A (which = 0) or B (1) of a step.
  CPUFREE_KERNEL_FN int owner(std::int32_t step, int which) const {
    return args_.local ? port_.pe() : grid_.owner(step, which);
  }
  CPUFREE_KERNEL_FN double* own(int which) const { return args_.buffer + which * size_; }
  CPUFREE_KERNEL_FN double* slot(std::int32_t step, int which) const {
    return args_.buffer + (2 + 2 * std::int64_t{step} + which) * size_;
  }
  CPUFREE_KERNEL_FN const double* tile(std::int32_t step, int which) const {
    return owner(step, which) == port_.pe() ? own(which) : slot(step, which);
  }

  // The tiles of a step are here when it returns true.
  CPUFREE_KERNEL_FN bool fetch(std::int32_t step, Epoch epoch) {
    if (args_.local) return true;
    if (!args_.overlapped) move(step, epoch);
    for (int which = 0; which < 2; ++which) {
      const int from = owner(step, which);
      const bool signalled = args_.puts || args_.overlapped;
      if (from != port_.pe() && signalled && !link_.await(link_.of_tile(step, which), from, epoch))
        return false;
    }
    return true;
  }
  // Gets, or puts, what is due in a step.
  CPUFREE_KERNEL_FN void move(std::int32_t step, Epoch epoch) {
    for (int which = 0; which < 2; ++which)
      args_.puts ? put(step, which, epoch) : get(step, which, epoch);
  }
  CPUFREE_KERNEL_FN void get(std::int32_t step, int which, Epoch epoch) {
    const int from = owner(step, which);
    if (from == port_.pe()) return;
    const double* const there = port_.peer(own(which), from);
    double* const here = slot(step, which);
    if (args_.overlapped) {  // for another block
      for (std::int64_t i = port_.lane(); i < size_; i += port_.lanes())
        port_.put(here + i, port_.pe(), there[i]);
      link_.signal(link_.of_tile(step, which), port_.pe(), epoch);
      return;
    }
    for (std::int64_t i = port_.lane(); i < size_; i += port_.lanes()) here[i] = there[i];
    port_.sync_block();
  }
  CPUFREE_KERNEL_FN void put(std::int32_t step, int which, Epoch epoch) {
    const int to = grid_.reader(step, which);
    if (to == port_.pe()) return;
    const double* const mine = own(which);
    double* const there = slot(step, which);
    for (std::int64_t i = port_.lane(); i < size_; i += port_.lanes())
      port_.put(there + i, to, mine[i]);
    link_.signal(link_.of_tile(step, which), to, epoch);
  }

  CPUFREE_KERNEL_FN void multiply(const double* a, const double* b, bool first) {
    const std::int32_t n = args_.tile;
    for (std::int64_t entry = port_.lane(); entry < size_; entry += port_.lanes()) {
      const double* const of_row = a + entry / n * n;
      const double* const of_column = b + entry % n;
      double sum = first ? 0.0 : args_.product[entry];
      for (std::int32_t k = 0; k < n; ++k) sum += of_row[k] * of_column[std::int64_t{k} * n];
      args_.product[entry] = sum;
    }
  }

  P& port_;
  const PatternArgs& args_;
  PatternLink<P> link_;
  TileGrid grid_;
  std::int64_t size_;
};

template <class P, class Rounds>
CPUFREE_KERNEL_FN void run_rounds(P& port, const PatternArgs& args, Rounds& rounds) {
  PatternLink<P> link(port, args);
  const bool keeps_time = port.block() == 0 && port.lane() == 0;
  if (keeps_time) args.clock->ticks[0] = port.ticks(), args.clock->now[0] = port.now();
  Epoch epoch = args.epoch;
  bool here = true;
  for (std::int32_t n = 0; here && n < args.warm_ups + args.repeats; ++n, epoch += 2) {
    if (port.block() != 0) {
      here = rounds.serve(epoch + 2);
      continue;
    }
    here = link.barrier(epoch + 1) && rounds.prepare(epoch + 2) && link.barrier(epoch + 2);
    std::uint64_t moving = 0;
    const std::uint64_t begin = port.ticks();
    here = here && rounds.run(epoch + 2, moving);
    const std::uint64_t spent = port.ticks() - begin;
    if (!keeps_time || n < args.warm_ups) continue;
    args.ticks[n - args.warm_ups] = spent;
    args.comm_ticks[n - args.warm_ups] = moving;
  }
  if (keeps_time) args.clock->ticks[1] = port.ticks(), args.clock->now[1] = port.now();
  if constexpr (requires { rounds.check(epoch); })
    if (here && port.block() == 0) rounds.check(epoch);
  args.wrong[port.block() * port.lanes() + port.lane()] = rounds.wrong;
}

template <Port P>
CPUFREE_KERNEL_FN void pattern_kernel(P& port, const PatternArgs& args) {
  if (args.kind == PatternKind::gemm) {
    TileProduct<P> rounds(port, args);
    run_rounds(port, args, rounds);
  } else {
    TableExchange<P> rounds(port, args);
    run_rounds(port, args, rounds);
  }
}

}  // namespace cpufree
