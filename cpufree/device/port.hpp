// The port: everything a kernel may ask of an engine. Algorithms are templates over a type that
// satisfies `Port`; they include no engine, and engines include no algorithm.
//
// A kernel is run by `pes` PEs (processing elements) of `blocks` blocks each. All blocks of all PEs
// run concurrently, and may wait for one another. A block has `lanes` threads that execute the
// kernel together (on a GPU: its CUDA threads; on a CPU: one thread), and each thread runs `width`
// SIMD lanes as an innermost loop (on a GPU: 1).
//
// Memory: *symmetric* memory has the same layout on all PEs; `peer(ptr, pe)` translates the address
// of an object of mine into that of the same object of PE `pe`. Everything else is private to a PE.
//
// Ordering: `put` and plain stores are unordered. `publish` orders all that the *calling thread*,
// and all that the threads of its block before the last `sync_block`, have written (a release
// fence) before the flags that it stores next. `acquire` orders all later reads of the calling
// thread, and those of its block after the next `sync_block`, after the flags seen. A packet is
// ordered with nothing but itself.
#pragma once

#include <concepts>
#include <cstdint>

#include "cpufree/device/types.hpp"

namespace cpufree {

// How far a `publish` or `acquire` reaches: the blocks of this PE, or all PEs.
enum class Scope : std::uint32_t { pe, system };

template <class P>
concept Port =
    requires(P& port, double* values, double value, const double* source, Flag* flag,
             const Flag* cflag, Packet* packet, const Packet* cpacket, Epoch epoch,
             std::uint64_t tag, bool flagged, const WaitRecord& record, typename P::Wait& wait) {
      // Where am I.
      { port.pe() } -> std::convertible_to<int>;
      { port.pes() } -> std::convertible_to<int>;
      { port.block() } -> std::convertible_to<int>;
      { port.blocks() } -> std::convertible_to<int>;
      { port.lane() } -> std::convertible_to<int>;
      { port.lanes() } -> std::convertible_to<int>;
      { P::width } -> std::convertible_to<int>;

      // The block: barrier; barrier with conjunction; sums over its threads of `count` values each,
      // in place, handed to all, in an order that depends on nothing but `lanes`. All three are
      // barriers.
      port.sync_block();
      { port.all(flagged) } -> std::same_as<bool>;
      port.sum(values, 1);
      { port.any_bits(0U) } -> std::same_as<unsigned>;  // bitwise or over the threads

      // Symmetric memory: translation, payload store, packet store and load, flag store and load.
      { port.peer(values, 0) } -> std::same_as<double*>;
      port.put(values, 0, value);              // *peer(values, pe) = value
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

      // Host: notes to pass on (time limit, interrupt); progress that the host may display.
      { port.host_notes() } -> std::convertible_to<unsigned>;
      port.report(std::int64_t{}, value);
    };

}  // namespace cpufree
