// The port on GPUs that reach one another's memory: a PE is a GPU, a block is a thread block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "cpufree/device/warp_port.hpp"
#include "cpufree/engines/gpu_p2p/atomic.cuh"
#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/engines/gpu_p2p/threads.cuh"

namespace cpufree::gpu_p2p {

class Port : public Unstudied {
 public:
  static constexpr int width = 1;
  static constexpr int warp_width = kWarp;
  static constexpr int batch = 6;
  static constexpr bool slots_by_source = false;  // neighbouring lanes read neighbouring packets
  static constexpr int kMaxValues = 8;            // of one reduction
  static constexpr int kMostWarps = 32;           // of a block
  struct Wait {
    std::uint64_t start = 0;
    std::uint32_t looks = 0;
  };

  // `fast`: the block's dynamic shared memory. Blocks are whole warps.
  __device__ Port(const Shared& shared, std::byte* fast) : shared_(shared), fast_(fast) {
    Scratch& s = scratch();
    if (lane() == 0) s.filed = 0, s.polled = s.reported = 0, s.notes = 0;
    sync_threads();
  }

  // The compiler is not to know that these never change: it would compute all that follows from
  // them before the solver's loop, and run out of registers.
  __device__ int pe() const { return fresh(shared_.pe); }
  __device__ int pes() const { return fresh(shared_.pes); }
  __device__ int block() const { return fresh(static_cast<int>(block_of_grid())); }
  __device__ int blocks() const { return fresh(static_cast<int>(blocks_of_grid())); }
  __device__ int lane() const { return fresh(static_cast<int>(thread_of_block())); }
  __device__ int lanes() const { return fresh(static_cast<int>(threads_of_block())); }

  __device__ void sync_block() { sync_threads(); }
  __device__ bool all(bool value) { return sync_threads_and(value); }

  __device__ int warp() const { return lane() / 32; }
  __device__ int warps() const { return lanes() / 32; }
  __device__ int warp_lane() const { return lane() % 32; }
  __device__ static unsigned warp_or(unsigned bits) { return lanes_or(bits); }
  template <class T>
  __device__ static T warp_sum(T value) {
    for (int half = 16; half > 0; half /= 2) value += of_lane_across(value, half);
    return value;
  }

  __device__ static bool warp_all(bool value) { return lanes_all(value); }
  __device__ static unsigned warp_ballot(bool value) { return lanes_that(value); }
  __device__ static int lowest_bit(unsigned bits) { return lowest_of(bits); }
  template <class T>
  __device__ static T warp_broadcast(T value, int from) {
    return of_lane(value, from);
  }

  template <class T>
  __device__ static T warp_up(T value) {
    return of_lane_before(value, 1);
  }
  template <class T>
  __device__ static T warp_down(T value) {
    return of_next_lane(value);
  }
  template <class T>
  __device__ static T warp_across(T value, int bits) {
    return of_lane_across(value, bits);
  }
  __device__ static void warp_sync() { sync_lanes(); }
  __device__ static float product(float a, float b) { return rounded_product(a, b); }
  __device__ static double product(double a, double b) { return rounded_product(a, b); }
  template <class T>
  __device__ static void copy_in(T* to, const T* from, bool really) {
    copy_16_bytes(to, from, really);
  }
  __device__ static void end_copies() { end_copy_group(); }
  template <int N>
  __device__ static void await_copies() {
    await_copy_groups<N>();
  }
  __device__ static void fetch_ahead(const void* from) { fetch_to_cache(from); }
  template <class T>
  __device__ static T* in_memory(T* values) {
    return in_device_memory(values);
  }

  // Warps fold their K values, then warp k sums value k of all warps and stores it. `Scratch::sent`
  // is read before the barrier of the `combine` that follows, and written again after it.
  template <int K, class F>
  __device__ void scatter(const double (&partial)[K], int targets, unsigned note, F&& store) {
    constexpr int N = K <= 1 ? 1 : K <= 2 ? 2 : K <= 4 ? 4 : 8;
    Scratch& s = scratch();
    const int l = warp_lane();
    double padded[N];
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) padded[k] = k < K ? partial[k] : 0.0;
    int index = 0;
    const double mine = fold(padded, 16, index);
    if (l % (32 / N) == 0 && index < K) s.sent[index][warp()] = mine;
    if (lane() == 0) s.note = note;
    sync_threads();
    for (int k = warp(); k < K; k += warps()) {
      const double sum = warp_sum(l < warps() ? s.sent[k][l] : 0.0);
      for (int pe = l; pe < targets; pe += 32) store(pe, k, sum, s.note);
    }
  }

  // Some warps collect each value; all threads add up what these found. `Scratch::found` is read
  // before the barrier of the next `scatter`, and written again after it.
  template <int K, class F, class G>
  __device__ void combine(double (&total)[K], unsigned& bits, bool on_its_way, F&& prepare,
                          G&& body) {
    constexpr int kTeam = most_collectors(K);
    const std::int64_t start = cycles();
    Scratch& s = scratch();
    const int l = warp_lane();
    const int team = max(1, min(kTeam, warps() / K));
    for (int job = warp(); job < K * team; job += warps()) {
      const int k = job % K;
      const int member = job / K;
      const auto part = prepare(k, member * 32 + l, team * 32);
      // A packet takes longer than this; earlier polling only adds traffic.
      while (on_its_way && cycles() - start < kFlight) {
      }
      const double found = warp_sum(body(part));
      if (l == 0) s.found[k][member] = found;
    }
    const unsigned warp_bits = warp_or(bits);
    if (l == 0) s.bits[warp()] = warp_bits;
    sync_threads();
    bits = warp_or(l < warps() ? s.bits[l] : 0U);
    // Lane k adds up value k, for the others: fewer instructions than if all did it, and registers.
    const double sum = l < K ? total_of<K>(l) : 0.0;
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k) total[k] = warp_broadcast(sum, k);
  }

  template <int K>
  __device__ void recall(double (&total)[K]) {
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k) total[k] = total_of<K>(k);
  }
  __device__ static double in_register(double value) { return fresh(value); }
  __device__ static float in_register(float value) { return fresh(value); }

  // Two steps of Newton's iteration, without the subroutine for special cases that a division has:
  // a call, even if it is never taken, has everything that lives across it spilled.
  __device__ static double reciprocal(double x) {
    double r = near_reciprocal(x);
    double e = fma(-x, r, 1.0);
    e = fma(e, e, e);
    r = fma(r, e, r);
    e = fma(-x, r, 1.0);
    return fma(r, e, r);
  }

  // The same of a root: a step of third order, and one that mends what is left.
  __device__ static double reciprocal_root(double x) {
    double r = near_reciprocal_root(x);
    double e = fma(-x * r, r, 1.0);
    r = fma(r * e, fma(0.375, e, 0.5), r);
    e = fma(-x * r, r, 1.0);
    return fma(0.5 * r, e, r);
  }

  // The last warp is the one that collects nothing, where there is one.
  __device__ bool bookkeeper() const { return lane() == lanes() - 32; }

  // One value of each type is kept: asked again for another one of the same type, the first is
  // lost.
  template <class T>
  using Kept = const T&;
  template <class T>
  __device__ const T& keep(const T& value) {
    alignas(16) __shared__ unsigned char room[sizeof(T)];
    sync_threads();  // the previous one is no longer read
    if (lane() == 0) new (room) T(value);
    sync_threads();
    return *reinterpret_cast<T*>(room);
  }
  template <class T>
  using Held = T&;
  template <class T>
  __device__ T& hold(const T& value) {
    return const_cast<T&>(keep(value));
  }
  __device__ std::byte* fast_memory() const { return fast_; }
  // A pointer, of which compilers learn that it is into fast memory: loads are shorter.
  template <class T>
  __device__ static T* on_chip(T* array) {
    return in_block_memory(array);
  }

  // The same object on another PE.
  template <class T>
  __device__ T* peer(T* object, int pe) const {
    return reinterpret_cast<T*>(shared_.heaps[pe] +
                                (reinterpret_cast<std::byte*>(object) - shared_.heaps[shared_.pe]));
  }
  template <class T>
  __device__ void put(T* object, int pe, T value) {
    store_value(peer(object, pe), value);
  }
  __device__ void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    store_packet(peer(packet, pe), value, tag);
  }
  __device__ Packet get_packet(const Packet* packet) { return load_packet(packet); }
  template <class K, class V, class N>
  __device__ static void send_packet(K* there, const V& value, N number_or_tag) {
    store_packet(there, value, number_or_tag);
  }
  __device__ FloatPacket get_packet(const FloatPacket* packet) { return load_packet(packet); }
  __device__ SmallPacket get_packet(const SmallPacket* packet) { return load_packet(packet); }
  __device__ void put_flag(Flag* flag, int pe, Epoch epoch) { store_flag(peer(flag, pe), epoch); }
  __device__ Epoch get_flag(const Flag* flag) { return load_flag(flag); }
  // Atomic, on any PE's flag; what was there before.
  __device__ Epoch add_flag(Flag* flag, int pe, Epoch n) { return add_to_flag(peer(flag, pe), n); }
  __device__ Epoch swap_flag(Flag* flag, int pe, Epoch expected, Epoch wanted) {
    return swap_flag_if(peer(flag, pe), expected, wanted);
  }
  __device__ Epoch arrive(Flag* counter) { return count_in(counter); }
  __device__ void publish(Scope scope) {
    scope == Scope::system ? fence_release_system() : fence_release_gpu();
  }
  __device__ void acquire(Scope scope) {
    scope == Scope::system ? fence_acquire_system() : fence_acquire_gpu();
  }

  __device__ Wait start_wait() { return {}; }
  __device__ bool keep_waiting(Wait& wait) {
    const std::uint32_t look = ++wait.looks;
    if (look % 64 != 0) return true;
    if (look == 64) wait.start = nanoseconds();
    return think_again(shared_, look, wait.start);
  }
  __device__ void give_up(const Wait& wait, const WaitRecord& record) {
    file(shared_, wait.start, record.channel, record.from_pe, record.from_block, record.want,
         record.seen);
  }

  // Both cross PCIe, so they are done every millisecond, not every iteration: a store to the host
  // delays the next fence of its thread, a load takes longer than a reduction.
  __device__ unsigned host_notes() {
    Scratch& s = scratch();
    const std::int64_t now = cycles();
    if (now - s.polled < kHostPeriod) return s.notes;
    s.polled = now;
    return s.notes = *shared_.notes;
  }
  __device__ void report(std::int64_t iteration, double residual) {
    Scratch& s = scratch();
    const std::int64_t now = cycles();
    if (now - s.reported < kHostPeriod) return;
    s.reported = now;
    *shared_.residual = residual;
    *shared_.iteration = iteration;
  }

  __device__ static void tally(std::uint64_t* sum, std::uint64_t n) { add_on_the_way(sum, n); }
  __device__ static std::uint64_t now() { return nanoseconds(); }
  __device__ static std::uint64_t ticks() { return static_cast<std::uint64_t>(cycles()); }

 private:
  static constexpr std::int64_t kFlight = 500;  // cycles
  static constexpr int kMostCollectors = 8;     // warps that collect one value
  // Of a block of 16 warps all, or all but one, have one value to collect.
  static constexpr int most_collectors(int values) {
    return values <= 2 ? kMostCollectors : 16 / values;
  }
  static constexpr std::int64_t kHostPeriod = 2'000'000;  // cycles: a millisecond or so

  struct Scratch {
    double sent[kMaxValues][kMostWarps + 1];
    double found[kMaxValues][kMostCollectors];
    unsigned bits[kMostWarps];
    unsigned note;
    int filed;
    std::int64_t polled, reported;  // when the host was last asked, informed; what it said
    unsigned notes;
  };
  __device__ static Scratch& scratch() {
    alignas(16) __shared__ unsigned char room[sizeof(Scratch)];
    return *reinterpret_cast<Scratch*>(room);
  }

  // What the collectors of value k of K have found.
  template <int K>
  __device__ double total_of(int k) const {
    constexpr int kTeam = most_collectors(K);
    const Scratch& s = scratch();
    const int team = max(1, min(kTeam, warps() / K));
    double sum = s.found[k][0];
    CPUFREE_UNROLL
    for (int part = 1; part < kTeam; ++part)
      if (part < team) sum += s.found[k][part];
    return sum;
  }

  // Whether to go on waiting. Looks at the clock (slow) and at the PEs' word now and then, at the
  // host's word over PCIe even less: that look takes a microsecond. Out of line, as all that is
  // done once in many looks.
  __device__ __noinline__ static bool think_again(const Shared& shared, std::uint32_t look,
                                                  std::uint64_t start) {
    if (load_flag(shared.leave) != 0 || nanoseconds() - start > shared.wait_limit_ns) return false;
    return look % 8192 != 0 || *shared.host_leave == 0;
  }

  // Tells all PEs to leave. The first thread of the block to give up files the record: the others
  // may have been asked to leave. Waits are given up then, or when their bound is over.
  __device__ __noinline__ static void file(const Shared& shared, std::uint64_t start,
                                           Channel channel, int from_pe, int from_block, Epoch want,
                                           Epoch seen) {
    const bool asked = load_flag(shared.leave) != 0 || *shared.host_leave != 0;
    for (int pe = 0; pe < shared.pes; ++pe)
      store_flag(
          reinterpret_cast<Flag*>(shared.heaps[pe] + (reinterpret_cast<std::byte*>(shared.leave) -
                                                      shared.heaps[shared.pe])),
          1);
    if (atomic_swap(&scratch().filed, 1) != 0) return;
    WaitRecord record;
    record.state = asked ? BlockState::aborted : BlockState::expired;
    record.channel = channel;
    record.from_pe = from_pe;
    record.from_block = from_block;
    record.want = want;
    record.seen = seen;
    record.seconds = 1e-9 * static_cast<double>(nanoseconds() - start);
    shared.records[block_of_grid()] = record;
  }

  // Sums N values over a warp in log2(32) steps of N / 2, N / 4, ..., 1 shuffles: in each step a
  // lane keeps half of its values and hands the other half over. Afterwards `index` says whose sum
  // the lane holds.
  template <int N>
  __device__ static double fold(const double (&values)[N], int distance, int& index) {
    if constexpr (N == 1) {
      double v = values[0];
      for (; distance > 0; distance /= 2) v += of_lane_across(v, distance);
      return v;
    } else {
      const bool upper = (thread_of_block() & static_cast<unsigned>(distance)) != 0U;
      if (upper) index += N / 2;
      double half[N / 2];
      CPUFREE_UNROLL
      for (int k = 0; k < N / 2; ++k) {
        const double give = upper ? values[k] : values[k + N / 2];
        half[k] = (upper ? values[k + N / 2] : values[k]) + of_lane_across(give, distance);
      }
      return fold(half, distance / 2, index);
    }
  }

  const Shared& shared_;
  std::byte* fast_;
};

static_assert(cpufree::WarpPort<Port> && cpufree::GridPort<Port>);

}  // namespace cpufree::gpu_p2p
