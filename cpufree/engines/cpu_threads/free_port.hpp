// The port of kernels whose threads wait only for their team, here one thread: where a thread
// is, and atomics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cpufree::cpu_threads {

class FreePort {
 public:
  FreePort(int block, int blocks) : block_(block), blocks_(blocks) {}
  int block() const { return block_; }
  int blocks() const { return blocks_; }
  static int lane() { return 0; }
  static int lanes() { return 1; }

  // Lanes of a team go on together, past sync_team, before which all see what each has written.
  std::int64_t team() const { return block_; }
  std::int64_t teams() const { return blocks_; }
  static int team_lane() { return 0; }
  static constexpr int team_lanes() { return 1; }
  static void sync_team() {}
  // Memory of a team.
  static constexpr std::size_t kTeamBytes = 8192;
  std::byte* team_memory() const { return memory_; }

  // The same threads in teams of `lanes` lanes: of one.
  template <int kOther>
  const FreePort& in_teams() const {
    return *this;
  }

  // What others may be writing, as it is or was.
  template <class V>
  static V get(const V* number) {
    return std::atomic_ref(*const_cast<V*>(number)).load(kAny);
  }
  static void set(std::int32_t* number, std::int32_t value) {
    std::atomic_ref(*number).store(value, kAny);
  }
  // What was there before.
  template <class V>
  static V add(V* to, V value) {
    return std::atomic_ref(*to).fetch_add(value, kAny);
  }
  // Adds what all lanes of a team have, which call it together.
  template <class V>
  static void add_together(V* to, V value) {
    if (value != 0) add(to, value);
  }
  // The sum of what all lanes of a team have.
  template <class V>
  static V sum_together(V value) {
    return value;
  }
  // How many of the lanes of a team before this one have this; `all`: of them.
  static int count_before_lane(bool mine, int& all) {
    all = mine ? 1 : 0;
    return 0;
  }
  // What the lanes of a team before this one have together, and `all` of them.
  static std::int64_t before_lane(std::int64_t mine, std::int64_t& all) {
    all = mine;
    return 0;
  }
  static std::uint32_t join(std::uint32_t* to, std::uint32_t bits) {
    return std::atomic_ref(*to).fetch_or(bits, kAny);
  }
  static void raise(std::uint64_t* to, std::uint64_t value) {
    const std::atomic_ref<std::uint64_t> number(*to);
    std::uint64_t there = number.load(kAny);
    while (there < value && !number.compare_exchange_weak(there, value, kAny)) {
    }
  }
  static void lower(std::uint64_t* to, std::uint64_t value) {
    const std::atomic_ref<std::uint64_t> number(*to);
    std::uint64_t there = number.load(kAny);
    while (there > value && !number.compare_exchange_weak(there, value, kAny)) {
    }
  }
  template <class V>
  static V swap_if(V* to, V expected, V value) {
    std::atomic_ref(*to).compare_exchange_strong(expected, value, kAny);
    return expected;
  }

 private:
  static constexpr auto kAny = std::memory_order_relaxed;
  int block_;
  int blocks_;
  alignas(16) mutable std::byte memory_[kTeamBytes];
};

}  // namespace cpufree::cpu_threads
