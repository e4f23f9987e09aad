// What a kernel that measures NVSHMEM's messages is told. Plain data, for host and device code.
#pragma once

#include <cstdint>

#include "cpufree/probes/args.hpp"

namespace cpufree::nvshmem {

// How values go; behind each of them but the last two a quiet, and a signal.
enum class Verb : std::int32_t {
  p,           // nvshmem_double_p, a value for each thread
  iput,        // nvshmemx_double_iput_block: every second value of the source
  put_thread,  // nvshmem_putmem_nbi, by one thread
  put_warp,    // by a warp
  put_block,   // by a block
  put_signal,  // nvshmemx_putmem_signal_nbi_block
  get          // nvshmemx_getmem_block
};

// Values from one that is sent to the next one, in the source.
constexpr std::int64_t stride_of(Verb verb) { return verb == Verb::iput ? 2 : 1; }

struct ProbeArgs {
  Verb verb = Verb::put_block;
  bool window = false;        // messages one way and one value back, not round trips
  std::int64_t bytes = 8;     // of a message
  std::int32_t messages = 1;  // of a window
  std::int32_t rounds = 1;    // round trips, or gets, that are timed together
  std::int32_t warm_ups = 0;
  std::int32_t repeats = 1;
  std::int32_t pe = 0;              // of two; 0 keeps the time
  std::uint64_t epoch = 0;          // the last signal of the run before
  std::uint64_t wait_limit = 0;     // nanoseconds
  char* source = nullptr;           // symmetric, as is; of iput, twice as long
  char* target = nullptr;           // this,
  std::uint64_t* signal = nullptr;  // and this
  std::uint64_t* ticks = nullptr;   // of each repeat
  cpufree::ProbeClock* clock = nullptr;
  std::int32_t* late = nullptr;  // set where the other PE did not answer
};

// Signals that a run uses.
inline std::uint64_t epochs_of(const ProbeArgs& a) {
  const auto exchanges =
      static_cast<std::uint64_t>(a.warm_ups) + static_cast<std::uint64_t>(a.repeats);
  return exchanges * static_cast<std::uint64_t>(a.window ? a.messages : a.rounds);
}

}  // namespace cpufree::nvshmem
