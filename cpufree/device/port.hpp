// The port: everything a kernel may ask of an engine. Algorithms are templates over a type that
// satisfies `Port`; they include no engine, and engines include no algorithm.
//
// A kernel is run by `pes` PEs (processing elements) of `blocks` blocks each. All blocks of all PEs
// run concurrently, and may wait for one another. A block has `lanes` threads that execute the
// kernel together (on a GPU: its CUDA threads; on a CPU: one thread), and each thread runs `width`
// SIMD lanes as an innermost loop (on a GPU: 1).
//
// Memory: *symmetric* memory has the same layout on all PEs; the `put`s take the address of an
// object of mine and write that of PE `pe`. Everything else is private to a PE. `keep` holds a copy
// of a small value where all threads of the block read it fast, `hold` an object that one of them
// changes for all; `fast_memory` is room that the launch reserved for the block (null: none).
//
// Ordering: `put` and plain stores are unordered. `publish` orders all that the *calling thread*,
// and all that the threads of its block before the last `sync_block`, have written (a release
// fence) before the flags that it stores next. `acquire` orders all later reads of the calling
// thread, and those of its block after the next `sync_block`, after the flags seen. A packet is
// ordered with nothing but itself.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "cpufree/device/nodes.hpp"
#include "cpufree/device/study.hpp"
#include "cpufree/device/types.hpp"

namespace cpufree {

// What a L2 cache is to do with the lines that a copy brings: drop them first, treat them as
// any others, or keep them longer than others.
enum class CacheHint : std::uint32_t { drop = 0, none = 1, keep = 2 };

// How far a `publish` or `acquire` reaches: the blocks of this PE, or all PEs.
enum class Scope : std::uint32_t { pe, system };

// What `scatter` and `combine` are called with, for the concept.
struct AnyStore {
  CPUFREE_FN void operator()(int, int, double, unsigned) const {}
};
struct AnyPart {
  CPUFREE_FN int operator()(int, int, int) const { return 0; }
};
struct AnyBody {
  CPUFREE_FN double operator()(int) const { return 0.0; }
};

template <class P>
concept Port = requires(P& port, double* values, double value, const double (&partial)[2],
                        double (&total)[2], Flag* flag, const Flag* cflag, Packet* packet,
                        const Packet* cpacket, Epoch epoch, std::uint64_t tag, unsigned bits,
                        bool flagged, const WaitRecord& record, typename P::Wait& wait) {
  // Where am I.
  { port.pe() } -> std::convertible_to<int>;
  { port.pes() } -> std::convertible_to<int>;
  { port.block() } -> std::convertible_to<int>;
  { port.blocks() } -> std::convertible_to<int>;
  { port.lane() } -> std::convertible_to<int>;
  { port.lanes() } -> std::convertible_to<int>;
  { P::width } -> std::convertible_to<int>;
  {
    P::warp_width
  } -> std::convertible_to<int>;             // threads of a block that run in lockstep; 1: none
  { P::batch } -> std::convertible_to<int>;  // packets that a thread looks at in one go
  { P::slots_by_source } -> std::convertible_to<bool>;  // layout of reduction slots

  // The block: barrier; barrier with conjunction; conjunction over the threads of a warp, those
  // that an engine runs in lockstep.
  port.sync_block();
  { port.all(flagged) } -> std::same_as<bool>;
  { port.warp_all(flagged) } -> std::same_as<bool>;

  // Sums over the block's threads, to be sent: some thread calls store(pe, k, sum, note) once
  // for every k and every pe < targets; `note` is the first thread's. Contains a barrier.
  port.scatter(partial, 1, bits, AnyStore{});
  // Sums received: total[k] = the sum of body(prepare(k, rank, size)) over rank < size, for all
  // threads, `bits` joined (bitwise or) after the bodies. Contains a barrier after all bodies.
  // `flagged`: what was scattered is still on its way; where looking too soon does harm, bodies
  // start after about the time that a packet travels. `scatter` and `combine` are called in turn,
  // or as many of each, with a `sync_block` between two calls of the same one. The order of
  // summation depends on `lanes` alone.
  port.combine(total, bits, flagged, AnyPart{}, AnyBody{});

  // What a thread has is not to be kept in registers for rare uses: `recall` brings the last
  // `combine`'s totals again, to one thread, before the next `scatter`. What a loop uses is to be
  // kept there: `in_register` is a copy that the compiler does not fetch again.
  port.recall(total);
  { port.in_register(value) } -> std::same_as<double>;

  // Whether this is the thread that keeps the block's books: one, busy with nothing else while
  // sums travel.
  { port.bookkeeper() } -> std::same_as<bool>;

  // 1 / x to the last bit or so, where x and 1 / x are ordinary numbers; else anything.
  { port.reciprocal(value) } -> std::same_as<double>;
  { port.reciprocal_root(value) } -> std::same_as<double>;  // the same of 1 / sqrt(x)

  // Room for the block.
  { port.keep(value) } -> std::convertible_to<typename P::template Kept<double>>;
  { port.hold(value) } -> std::convertible_to<typename P::template Held<double>>;
  { port.fast_memory() } -> std::same_as<std::byte*>;

  // Symmetric memory: payload store, packet store and load, flag store and load.
  port.put(values, 0, value);
  port.put_packet(packet, 0, value, tag);  // both halves become visible together
  { port.get_packet(cpacket) } -> std::same_as<Packet>;
  port.put_flag(flag, 0, epoch);
  { port.get_flag(cflag) } -> std::same_as<Epoch>;
  port.publish(Scope::system);
  port.acquire(Scope::system);

  // Waiting: `wait = port.start_wait()` once, then `keep_waiting(wait)` after every look that
  // found nothing. It pauses or yields; it turns false when the wait's bound is over or all PEs
  // have been told to leave. `give_up` files a record and tells all PEs to leave.
  { port.start_wait() } -> std::same_as<typename P::Wait>;
  { port.keep_waiting(wait) } -> std::same_as<bool>;
  port.give_up(wait, record);

  // Host: notes to pass on (time limit, interrupt); progress that the host may display: iteration
  // and square of the residual's norm. Called
  // by one thread, as often as it likes: engines look and tell as often as is cheap.
  { port.host_notes() } -> std::convertible_to<unsigned>;
  port.report(std::int64_t{}, value);

  // Studies (study.hpp): what is left out, and the time of phases. `ticks` are those of a clock of
  // the block's own; `now` is in nanoseconds, and slower to get.
  { P::computes } -> std::convertible_to<bool>;
  { P::communicates } -> std::convertible_to<bool>;
  port.mark(Phase::vector);
  { port.ticks() } -> std::same_as<std::uint64_t>;
  { port.now() } -> std::same_as<std::uint64_t>;
};

// Engines that can be told what a thread will read, wherever that is.
template <class P>
concept FetchingPort = requires(P& port, const double* from) { port.fetch_ahead(from); };

// Ports whose blocks can count themselves in: arrive(counter) adds 1 to a flag in memory of this PE
// and returns what it was before, in one step with what other blocks of the PE add. It is ordered
// as a flag store is: `publish` before it orders what was written, `acquire` after it what will be
// read. The counter has no other writers, and is read by get_flag.
template <class P>
concept GridPort = Port<P> && requires(P& port, Flag* counter) {
  { port.arrive(counter) } -> std::same_as<Epoch>;
};

// Ports of machines where loads and stores do not reach all PEs, but those of a node. `put`,
// `put_packet` and `put_flag` are for these alone. To the others there is put_signal(to, pe, from,
// count, flag, epoch), called by all threads of the block together: copies `count` values (0: none)
// from `from`, symmetric memory of mine, to `to` on `pe`, and then sets `flag` there to `epoch`. It
// returns at once: `from` may be read until the flag is seen there, and puts overtake one another.
// A flag gets 1 or 2 first and then the next epoch but one each time, so that a network which can
// only add to it knows what it rises by, and no two puts to it are on their way together. The
// values are those that the block's last `publish` has ordered, with a barrier between. Once
// threads have seen the flags, and a barrier has followed, all call see_signals(): then they see
// the values. When a kernel has ended, its puts have arrived.
template <class P>
concept RemotePort = Port<P> && requires(P& port, double* to, const double* from, Flag* flag) {
  { port.remote() } -> std::convertible_to<const Remote&>;
  port.put_signal(to, 0, from, std::int64_t{}, flag, Epoch{});
  port.see_signals();
};

// Whether loads and stores reach a PE.
template <Port P>
CPUFREE_KERNEL_FN bool reaches(const P& port, int pe) {
  if constexpr (RemotePort<P>) {
    const Nodes& nodes = port.remote().nodes;
    return nodes.of_pe[pe] == nodes.of_pe[port.pe()];
  }
  return true;
}

// Makes what all threads of the block have written fit to be sent by their next `put_signal`s.
template <Port P>
CPUFREE_KERNEL_FN void publish_block(P& port) {
  port.sync_block();
  if (port.lane() == 0) port.publish(Scope::system);
  port.sync_block();
}

}  // namespace cpufree
