// What generated kernels are made of where a PE has many blocks of many threads: GPUs. (Where it
// has one, it goes over rows: runtime.hpp.)
//
// A PE owns the rows [lo, hi) of all distributed fields. Its arrays have ghost rows on either side,
// copies of rows of the PEs beside. A kernel is a sequence of sweeps, in each of which every point
// is computed by one thread, with barriers and reductions between.
//
// Ghosts. A PE that computes a point of a row that a neighbour keeps a ghost of stores it there,
// too
// (`store`): no rows are copied, no mailbox is read.
//   Read after write: between the sweep that writes a row and one that reads its ghost lies a
//   barrier with the neighbours, or a reduction; the owner's blocks have stored before they arrive.
//   Write after read: so does one between the sweep that reads a ghost and one that writes its row.
// The compiler places barriers so (passes/barriers.py), and checks that it has.
//
// The barrier. Blocks of a PE count themselves in: barrier e is over when the count is e times the
// blocks. The last one in tells both neighbours, whose blocks wait for that, too, where they must.
//   Visible: a block's stores -> its publish -> its arrival (read, modify, write, in one chain with
//   all others) -> the last one's acquire and publish at system scope -> its flags -> who reads
//   these acquires. Each link is a release with its acquire; so all stores of all blocks, those to
//   the PEs beside too, are visible behind the barrier. Blocks that have stored to a neighbour
//   since the last barrier publish at system scope themselves. The count does not run ahead: a
//   block arrives at e + 1 after it has left e, when all have arrived at e. Flags grow, one writer
//   each, and are compared by >=.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "cpufree/device/wait.hpp"
#include "cpufree/programs/args.hpp"
#include "cpufree/programs/grid_plan.hpp"
#include "cpufree/programs/python_numbers.hpp"

namespace cpufree::programs {

template <GridPort P, class A>
class GridRuntime {
 public:
  CPUFREE_KERNEL_FN GridRuntime(P& port, const A& args, std::byte* heap, const GridPlan& plan)
      : port_(port),
        args_(args),
        heap_(heap),
        plan_(plan),
        pe_(plan.pes == 1 ? 0 : port.pe()),
        pes_(plan.pes > 0 ? plan.pes : port.pes()) {
    lo_ = plan.rows * pe_ / pes_;
    hi_ = plan.rows * (pe_ + 1) / pes_;
  }

  template <class T>
  CPUFREE_KERNEL_FN T* at(std::int64_t offset) const {
    return reinterpret_cast<T*>(heap_ + offset);
  }
  template <class T>
  CPUFREE_KERNEL_FN T scalar(int k) const {
    T value;
    std::memcpy(&value, args_.scalars + k, sizeof value);
    return value;
  }
  // A field at an offset, of N rows in all. `strides`: along all axes but the last one.
  template <class T, class... S>
  CPUFREE_KERNEL_FN auto field(std::int64_t offset, std::int64_t rows, int id, S... strides) const {
    return Array<T, 1 + sizeof...(S)>{at<T>(offset), 0, {strides..., 1}, rows, 0, id};
  }

  CPUFREE_KERNEL_FN std::int64_t lo() const { return lo_; }
  CPUFREE_KERNEL_FN std::int64_t hi() const { return hi_; }
  // Of the rows start + step q, 0 <= q < count, those from q = first to q = end are mine.
  CPUFREE_KERNEL_FN std::int64_t first(std::int64_t start, std::int64_t step) const {
    const std::int64_t before = lo() - start;
    return before <= 0 ? 0 : (before + step - 1) / step;
  }
  CPUFREE_KERNEL_FN std::int64_t end(std::int64_t start, std::int64_t step,
                                     std::int64_t count) const {
    const std::int64_t before = hi() - start;
    const std::int64_t all = before <= 0 ? 0 : (before + step - 1) / step;
    return all < count ? all : count;
  }

  // A field of N rows, of which neighbours keep the last `below` and the first `above`.
  CPUFREE_KERNEL_FN GhostRows ghosts(std::int64_t rows, std::int64_t stride, std::int64_t below,
                                     std::int64_t above) const {
    const std::int64_t mine = rows_of(pe_, rows);
    GhostRows g;
    g.low = has_below() ? above : 0;
    g.high = has_above() ? mine - below : mine;
    g.to_below = rows_of(below_me(), rows) * stride;
    g.to_above = -mine * stride;
    return g;
  }
  // Stores the value of a point of my row i.
  template <class T>
  CPUFREE_KERNEL_FN void store(const GhostRows& g, T* to, std::int64_t i, T value) {
    *to = value;
    if (i < g.low) port_.put(to + g.to_below, below_me(), value), sent_ = true;
    if (i >= g.high) port_.put(to + g.to_above, above_me(), value), sent_ = true;
  }

  // --- control ---

  // A turn of a loop begins, or several, which has a barrier or a reduction in it, or not. False:
  // leave.
  CPUFREE_KERNEL_FN bool turn(bool outermost, bool has_barrier, int turns = 1) {
    if constexpr (TracingPort<P>) port_.begin_turn(outermost ? turns : 0);
    if (outermost && port_.lane() == 0 && pe_ == 0 && port_.block() == 0)
      port_.report(turns_ += turns, 0.0);
    if (failed()) return false;
    return has_barrier || port_.all(port_.lane() != 0 || !stopped());
  }
  CPUFREE_KERNEL_FN bool failed() const { return fault_ != Fault::none; }
  // All threads have the same scalars, and fail together.
  CPUFREE_KERNEL_FN void fail(Fault fault, std::int64_t line) {
    if (failed()) return;
    fault_ = fault;
    if (!speaks()) return;
    args_.faults[0] = static_cast<std::int64_t>(fault);
    args_.faults[1] = line;
  }
  template <class V>
  CPUFREE_KERNEL_FN void result(int k, V value) {
    if (speaks()) std::memcpy(args_.results + k, &value, sizeof value);
  }
  // 0, 1, ...: fields that do not move have their own storage, at their own places.
  CPUFREE_KERNEL_FN void count_results(int first, int count) {
    CPUFREE_ONE_COPY
    for (int k = 0; k < count; ++k) result(first + k, std::int64_t{k});
  }
  // The number of the field at whose place values lie.
  template <class T, int N>
  CPUFREE_KERNEL_FN std::int64_t number_at(const T* base, const FieldPlace (&places)[N]) const {
    const std::int64_t offset = reinterpret_cast<const std::byte*>(base) - heap_;
    std::int64_t number = -1;
    CPUFREE_ONE_COPY
    for (int k = 0; k < N; ++k)
      if (places[k].offset == offset) number = places[k].number;
    return number;
  }

  // What follows is of this line of the program.
  CPUFREE_KERNEL_FN void section([[maybe_unused]] int line) {
    if constexpr (TracingPort<P>) port_.enter(line);
  }

  // --- sweeps ---

  // f(tile, lane) for every tile, by blocks, and every lane of `Lanes`; f has no barrier.
  template <int Lanes, TileOrder Order = TileOrder::strides, class F>
  CPUFREE_KERNEL_FN void sweep(int tiles, F&& f) {
    const int block = port_.block(), blocks = port_.blocks();
    if constexpr (Order == TileOrder::chunks)
      go_over<Lanes>(share(tiles, block, blocks), 1, share(tiles, block + 1, blocks), f);
    else
      go_over<Lanes>(block, blocks, tiles, f);
  }
  // The same, where a block takes the next tile when it is ready: `queue` is a counter in the heap,
  // `taken` what all blocks have counted there before. Each counts once for each of its tiles, and
  // once more to find that none is left. A barrier lies between two sweeps of one queue.
  template <int Lanes, class F>
  CPUFREE_KERNEL_FN void sweep_queue(std::int64_t queue, Epoch& taken, int tiles, F&& f) {
    Flag* const counter = at<Flag>(queue);
    const Epoch before = taken;
    taken += static_cast<Epoch>(tiles + port_.blocks());
    int next = 0;
    const auto take = [&] { next = static_cast<int>(port_.arrive(counter) - before); };
    if (port_.lane() == 0) take();
    for (;;) {
      const int tile = port_.keep(next);
      if (tile >= tiles) return;
      if (port_.lane() == 0) take();  // on its way while this one is done
      go_over<Lanes>(tile, 1, tile + 1, f);
    }
  }
  // The same by every block for itself.
  template <int Lanes, TileOrder Order = TileOrder::strides, class F>
  CPUFREE_KERNEL_FN void sweep_alone(int tiles, F&& f) {
    go_over<Lanes>(0, 1, tiles, f);
  }

  // The same by the first block alone.
  template <int Lanes, class F>
  CPUFREE_KERNEL_FN void sweep_of_one(int tiles, F&& f) {
    if (port_.block() == 0) go_over<Lanes>(0, 1, tiles, f);
  }

  // --- barriers ---

  // The threads of a block see what they have stored.
  CPUFREE_KERNEL_FN void wait_in_block() { port_.sync_block(); }

  // False: leave the kernel.
  CPUFREE_KERNEL_FN bool barrier(bool neighbours) {
    neighbours = neighbours && pes_ > 1;
    ++barriers_;
    if (neighbours) ++meetings_;
    const bool only_here = port_.all(!sent_) || pes_ == 1;
    sent_ = false;
    bool here = true;
    if (port_.lane() == 0) {
      GridRuntime mine = *this;  // its members must lie in memory, those of *this need not
      here = mine.meet(neighbours, only_here ? Scope::pe : Scope::system);
    }
    return port_.all(here);
  }

  // --- reductions ---

  // What all threads of the block have got, joined by f, for all of them.
  template <class V, class F>
  CPUFREE_KERNEL_FN void join_block(V& value, F&& f) {
    fold(value, port_.lanes(), f);
  }

  // The same of all blocks of all PEs, in a fixed order; a barrier of all of them. False: leave.
  //
  // Slot (parity, PE, block) is written by that block alone. Reduction e + 2 uses the slot of e: a
  // block pushes it after it has pulled e + 1 of all, and each of these was pushed after its sender
  // had pulled e. As a barrier: every thread that pushes has published what its block wrote, every
  // thread that pulls acquires.
  template <class V, class F>
  CPUFREE_KERNEL_FN bool join(V& value, F&& f) {
    static_assert(sizeof(V) <= 16);
    const Scope scope = pes_ > 1 ? Scope::system : Scope::pe;
    fold(value, port_.lanes(), f);  // ends with a barrier: what the block wrote is to be published
    sent_ = false;
    const Epoch epoch = ++reductions_;
    const int sources = pes_ * port_.blocks();
    Packet* const slots =
        at<Packet>(plan_.packets) + static_cast<std::int64_t>(epoch & 1U) * 2 * sources;
    push(value, slots + 2 * (pe_ * port_.blocks() + port_.block()), epoch, scope);
    bool here = !(port_.lane() == 0 && stopped());
    bool any = false;
    for (int k = port_.lane(); here && k < sources; k += port_.lanes()) {
      V other{};
      here = pull(other, slots + 2 * k, epoch, k);
      value = any ? f(value, other) : other;
      any = true;
    }
    if (any) port_.acquire(scope);
    if (!port_.all(here)) return false;
    if constexpr (TracingPort<P>) tell_of_partials(slots, epoch);
    fold(value, sources < port_.lanes() ? sources : port_.lanes(), f);
    return true;
  }

 protected:
  CPUFREE_KERNEL_FN bool speaks() { return pe_ == 0 && port_.block() == 0 && port_.lane() == 0; }
  // The host asks to leave. One thread of each PE asks the host: the looks of many would queue up,
  // a microsecond each. It tells all PEs, and leaves. The others look at a flag of their own memory
  // now and then: in waits, of which those for the block that has left never end else, and in loops
  // without waits. Called by any thread; in a wait, after every look.
  CPUFREE_KERNEL_FN bool stopped() {
    if (port_.block() == 0 && port_.lane() == 0) {
      if (port_.host_notes() == kNoteNone) return false;
      CPUFREE_ONE_COPY
      for (int pe = 0; pe < pes_; ++pe) port_.put_flag(at<Flag>(plan_.stop), pe, Epoch{1});
      return true;
    }
    if (++looks_ % kLooks != 0) return false;
    return reached(port_.get_flag(at<Flag>(plan_.stop)), Epoch{1});
  }

  CPUFREE_KERNEL_FN int above_me() const { return pe_ + 1 < pes_ ? pe_ + 1 : 0; }
  CPUFREE_KERNEL_FN int below_me() const { return pe_ > 0 ? pe_ - 1 : pes_ - 1; }
  CPUFREE_KERNEL_FN bool has_above() const { return plan_.ring || pe_ + 1 < pes_; }
  CPUFREE_KERNEL_FN bool has_below() const { return plan_.ring || pe_ > 0; }
  CPUFREE_KERNEL_FN std::int64_t rows_of(int pe, std::int64_t rows) const {
    const std::int64_t from = plan_.rows * pe / pes_;
    const std::int64_t to = plan_.rows * (pe + 1) / pes_;
    return (to < rows ? to : rows) - from;
  }

  // Where the k-th of `parts` equal parts begins.
  CPUFREE_KERNEL_FN static int share(int tiles, int k, int parts) {
    return static_cast<int>(std::int64_t{tiles} * k / parts);
  }
  template <int Lanes, class F>
  CPUFREE_KERNEL_FN void go_over(int first, int step, int tiles, F& f) {
    for (int tile = first; tile < tiles; tile += step) {
      if constexpr (kFastMemory) {
        f(tile, port_.lane());  // blocks are launched with `Lanes` threads
      } else {
        for (int lane = port_.lane(); lane < Lanes; lane += port_.lanes()) f(tile, lane);
      }
    }
  }

  // By the first thread of a block. Out of line: kernels have many barriers, and compilers take
  // seconds for as many copies of this.
  CPUFREE_COLD_FN bool meet(bool neighbours, Scope scope) {
    const bool here = !stopped() && all_arrive(neighbours, scope);
    port_.acquire(neighbours ? Scope::system : Scope::pe);
    return here;
  }
  CPUFREE_KERNEL_FN bool all_arrive(bool neighbours, Scope scope) {
    const auto blocks = static_cast<Epoch>(port_.blocks());
    Flag* const counter = at<Flag>(plan_.counter);
    Flag* const flags = at<Flag>(plan_.flags);
    port_.publish(scope);
    const Epoch before = port_.arrive(counter);
    if (neighbours && before + 1 == blocks * barriers_) {
      port_.acquire(Scope::pe);
      port_.publish(Scope::system);
      if (has_above()) port_.put_flag(flags, above_me(), meetings_);
      if (has_below()) port_.put_flag(flags + 1, below_me(), meetings_);
    }
    if (!wait_for(counter, blocks * barriers_, cpufree::Channel::local_arrival, pe_)) return false;
    if (!neighbours) return true;
    const auto halo = cpufree::Channel::halo_arrival;
    return (!has_below() || wait_for(flags, meetings_, halo, below_me())) &&
           (!has_above() || wait_for(flags + 1, meetings_, halo, above_me()));
  }

  // Joins the values of the first `count` threads, in a fixed tree; all get the result.
  template <class V, class F>
  CPUFREE_KERNEL_FN void fold(V& value, int count, F& f) {
    if (port_.lanes() == 1) {
      port_.sync_block();
      return;
    }
    auto* const room = reinterpret_cast<V*>(port_.fast_memory());
    const int lane = port_.lane();
    room[lane] = value;
    port_.sync_block();
    for (int width = count; width > 1;) {
      const int half = (width + 1) / 2;
      if (lane + half < width) room[lane] = f(room[lane], room[lane + half]);
      port_.sync_block();
      width = half;
    }
    value = room[0];
    port_.sync_block();
  }

  template <class V>
  CPUFREE_KERNEL_FN void push(const V& value, Packet* mine, Epoch epoch, Scope scope) {
    double words[2] = {0.0, 0.0};
    std::memcpy(words, &value, sizeof value);
    if (port_.lane() < pes_) port_.publish(scope);
    if constexpr (TracingPort<P>) port_.sums(true);
    for (int to = port_.lane(); to < pes_; to += port_.lanes())
      for (int k = 0; k < 2; ++k) port_.put_packet(mine + k, to, words[k], make_tag(epoch, 0));
    if constexpr (TracingPort<P>) port_.sums(false);
  }
  // Of those of other PEs one each, whichever thread has waited for it: they align clocks.
  CPUFREE_KERNEL_FN void tell_of_partials(const Packet* slots, Epoch epoch) {
    if (port_.lane() != 0) return;
    for (int pe = 0; pe < pes_; ++pe)
      if (pe != pe_) port_.has_come(slots + 2 * (pe * port_.blocks() + port_.block()), pe, epoch);
  }
  template <class V>
  CPUFREE_KERNEL_FN bool pull(V& value, const Packet* slot, Epoch epoch, int source) {
    double words[2] = {0.0, 0.0};
    for (int k = 0; k < 2; ++k) {
      Epoch seen = 0;
      const auto look = [&] {
        const Packet got = port_.get_packet(slot + k);
        words[k] = got.value;
        seen = tag_epoch(got.tag);
        return arrived(got.tag, epoch);
      };
      const WaitSite site{cpufree::Channel::reduction, source / port_.blocks(),
                          source % port_.blocks()};
      if (!look() &&
          !wait_until(port_, look, slot + k, site, epoch, seen, [&] { return stopped(); }))
        return false;
    }
    std::memcpy(&value, words, sizeof value);
    return true;
  }

  CPUFREE_KERNEL_FN bool wait_for(const Flag* flag, Epoch want, cpufree::Channel channel,
                                  int from) {
    return wait_flag(port_, flag, want, {channel, from, 0}, [&] { return stopped(); });
  }

  P& port_;
  const A& args_;
  std::byte* heap_;
  GridPlan plan_;
  int pe_, pes_;
  std::int64_t lo_, hi_;  // my rows
  Epoch barriers_ = 0, meetings_ = 0, reductions_ = 0;
  std::int64_t turns_ = 0;
  Fault fault_ = Fault::none;
  std::uint32_t looks_ = 0;
  static constexpr std::uint32_t kLooks = 64;
  bool sent_ = false;
};

}  // namespace cpufree::programs
