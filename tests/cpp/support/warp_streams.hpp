// The rig's ports with copies that run by themselves, as GPUs have them: see slice_ring.hpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "cpufree/formats/slices/slice_ring.hpp"
#include "warp_rig.hpp"

namespace warp_rig {

// With copies that run by themselves: each at once or, which is as likely, when it is waited for.
class StreamingPort : public LanesPort {
 public:
  using LanesPort::LanesPort;
  static constexpr bool bulk_by_warp = false;

  template <class T>
  static const T* in_fast_memory(const T* array) {
    return array;
  }
  void bulk_barrier(std::uint64_t* barrier) { *barrier = 0; }  // phases that are complete
  void bulk_ready() {}
  void bulk_announce(std::uint64_t* barrier, std::uint32_t bytes) {
    Block& block = shared_block();
    if (!block.bulks[barrier].empty()) throw std::logic_error("a phase has not been waited for");
    block.announced[barrier] = bytes;
    machine().changed();
  }
  void bulk_copy(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint64_t* barrier,
                 cpufree::CacheHint) {
    Block& block = shared_block();
    if (bytes == 0 || bytes % 16 != 0) throw std::logic_error("bytes of a bulk copy");
    block.bulks[barrier].push_back({to, from, bytes});
    if (++block.bulk_count * 0x9e3779b9U >> 31U) std::memcpy(to, from, bytes);
    machine().changed();
  }
  void bulk_end(std::uint64_t*) {}
  void bulk_wait(std::uint64_t* barrier, std::uint32_t parity) {
    Block& block = shared_block();
    while (*barrier % 2 == parity) {
      std::uint32_t bytes = 0;
      for (const Block::Bulk& copy : block.bulks[barrier]) bytes += copy.bytes;
      if (bytes > 0 && bytes == block.announced[barrier]) {
        for (const Block::Bulk& copy : block.bulks[barrier])
          std::memcpy(copy.to, copy.from, copy.bytes);
        block.bulks[barrier].clear();
        ++*barrier;
        machine().changed();
        return;
      }
      machine().look();
      if (*barrier % 2 == parity && !machine().wait()) throw cpu_fibers::Killed{};
    }
  }
};

// The same by all lanes of a warp, each its pieces of 16 bytes.
class WarpStreamingPort : public StreamingPort {
 public:
  using StreamingPort::StreamingPort;
  static constexpr bool bulk_by_warp = true;

  void bulk_announce(std::uint64_t*, std::uint32_t) {}
  void bulk_copy(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint64_t* barrier,
                 cpufree::CacheHint) {
    if (bytes == 0 || bytes % 16 != 0) throw std::logic_error("bytes of a bulk copy");
    Block& block = shared_block();
    const auto first = static_cast<std::uint32_t>(16 * (lane() % kWarp));
    for (std::uint32_t k = first; k < bytes; k += 16 * kWarp) {
      block.bulks[barrier].push_back({to + k, from + k, 16});
      if (++block.bulk_count * 0x9e3779b9U >> 31U) std::memcpy(to + k, from + k, 16);
    }
    machine().changed();
  }
  // The last lane to arrive has the phase complete when it is waited for.
  void bulk_end(std::uint64_t* barrier) {
    if (++shared_block().announced[barrier] == kWarp) machine().changed();
  }
  void bulk_wait(std::uint64_t* barrier, std::uint32_t parity) {
    Block& block = shared_block();
    while (*barrier % 2 == parity) {
      if (block.announced[barrier] == kWarp) {
        for (const Block::Bulk& copy : block.bulks[barrier])
          std::memcpy(copy.to, copy.from, copy.bytes);
        block.bulks[barrier].clear();
        block.announced[barrier] = 0;
        ++*barrier;
        machine().changed();
        return;
      }
      machine().look();
      if (*barrier % 2 == parity && !machine().wait()) throw cpu_fibers::Killed{};
    }
  }
};

static_assert(BulkPort<StreamingPort> && BulkPort<WarpStreamingPort>);

}  // namespace warp_rig
