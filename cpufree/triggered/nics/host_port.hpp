// Memory of PEs as a host thread sees it that is no block of a kernel: a NIC, or one that posts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "cpufree/device/wait.hpp"
#include "cpufree/engines/cpu_threads/atomic.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"

namespace cpufree::nics {

class HostPort : public SoloBlock {
 public:
  static constexpr int width = 1;
  static constexpr int warp_width = 1;
  static constexpr int batch = 1;
  static constexpr bool slots_by_source = true;
  using Clock = std::chrono::steady_clock;
  struct Wait {
    std::uint32_t looks = 0;
    Clock::time_point start{};
  };

  struct Place {
    int pe = 0;
    int pes = 1;
    int block = 0;
    int blocks = 1;
  };
  HostPort(std::byte* const* heaps, const Place& place, std::chrono::nanoseconds limit)
      : heaps_(heaps), place_(place), limit_(limit) {}

  int pe() const { return place_.pe; }
  int pes() const { return place_.pes; }
  int block() const { return place_.block; }
  int blocks() const { return place_.blocks; }
  void sync_block() {}

  template <class T>
  T* peer(T* object, int pe) const {
    return reinterpret_cast<T*>(heaps_[pe] +
                                (reinterpret_cast<std::byte*>(object) - heaps_[place_.pe]));
  }
  template <class T>
  void put(T* object, int pe, T value) {
    *peer(object, pe) = value;
  }
  void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    cpu_threads::store_packet(*peer(packet, pe), value, tag);
  }
  Packet get_packet(const Packet* packet) { return cpu_threads::load_packet(*packet); }
  void put_flag(Flag* flag, int pe, Epoch epoch) {
    cpu_threads::store_flag(*peer(flag, pe), epoch);
  }
  Epoch get_flag(const Flag* flag) { return cpu_threads::load_flag(*flag); }
  // Atomic, on any PE's flag; what was there before.
  Epoch add_flag(Flag* flag, int pe, Epoch n) {
    return std::atomic_ref<Epoch>(peer(flag, pe)->value).fetch_add(n, std::memory_order_acq_rel);
  }
  Epoch swap_flag(Flag* flag, int pe, Epoch expected, Epoch wanted) {
    std::atomic_ref<Epoch>(peer(flag, pe)->value)
        .compare_exchange_strong(expected, wanted, std::memory_order_acq_rel);
    return expected;
  }
  void publish(Scope) {}  // every flag store is a release
  void acquire(Scope) {}  // every flag load is an acquire

  Wait start_wait() { return {}; }
  // A look at a cache line takes nanoseconds; a thread that finds nothing for long lets others run.
  bool keep_waiting(Wait& wait) {
    constexpr std::uint32_t kSpins = 200, kYields = 2000;
    if (++wait.looks < kSpins) {
      cpu_threads::pause_cpu();
      return true;
    }
    if (wait.looks < kYields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    const auto now = Clock::now();
    if (wait.start == Clock::time_point{}) wait.start = now;
    return now - wait.start <= limit_;
  }
  void give_up(const Wait&, const WaitRecord&) {}

  static unsigned host_notes() { return 0; }
  static void report(std::int64_t, double) {}
  static std::uint64_t now() {
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  }
  static std::uint64_t ticks() { return now(); }

 private:
  std::byte* const* heaps_;
  Place place_;
  std::chrono::nanoseconds limit_;
};

static_assert(Port<HostPort>);

}  // namespace cpufree::nics
