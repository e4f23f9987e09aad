// Flags and packets among CPU threads. Release and acquire sit on the flag itself: that is what the
// C++ memory model needs, what x86 gives for free, and what ThreadSanitizer can follow (it does not
// model fences).
#pragma once

#include <atomic>

#include "cpufree/device/types.hpp"

namespace cpufree::cpu_threads {

inline void store_flag(Flag& flag, Epoch epoch) {
  std::atomic_ref<Epoch>(flag.value).store(epoch, std::memory_order_release);
}

inline Epoch load_flag(const Flag& flag) {
  return std::atomic_ref<Epoch>(const_cast<Flag&>(flag).value).load(std::memory_order_acquire);
}

// Adds 1; returns what it was.
inline Epoch count_in(Flag& counter) {
  return std::atomic_ref<Epoch>(counter.value).fetch_add(1, std::memory_order_acq_rel);
}

// A 16-byte store is no atomic of C++. The tag is stored last, with release, and loaded first, with
// acquire, so a thread that sees the tag sees the value. The value cannot be newer than the tag:
// its slot is written again only when it is proven read (allreduce.hpp, "Reuse").
inline void store_packet(Packet& packet, double value, std::uint64_t tag) {
  std::atomic_ref<double>(packet.value).store(value, std::memory_order_relaxed);
  std::atomic_ref<std::uint64_t>(packet.tag).store(tag, std::memory_order_release);
}

inline Packet load_packet(const Packet& packet) {
  auto& p = const_cast<Packet&>(packet);
  Packet out;
  out.tag = std::atomic_ref<std::uint64_t>(p.tag).load(std::memory_order_acquire);
  out.value = std::atomic_ref<double>(p.value).load(std::memory_order_relaxed);
  return out;
}

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace cpufree::cpu_threads
