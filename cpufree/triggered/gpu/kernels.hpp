// The kernels of triggered operations on GPUs, for host code. Parameters of each are a
// gpu_p2p::Shared and the arguments named, by value. `counts`: of NICs that count by words.
#pragma once

#include <cstdint>

#include "cpufree/triggered/device/trigger_counters.hpp"
#include "cpufree/triggered/device/triggered_jacobi.hpp"
#include "cpufree/triggered/device/vector_allreduce.hpp"
#include "cpufree/triggered/domain.hpp"

namespace cpufree::triggered {

struct VerbArgs {
  TriggerBoard board;
  TriggerCounters counters;
  Epoch* sent = nullptr;  // [blocks][pes], of the PE: packets of each block to each NIC
};

// Clocks. The host writes `number` to word 0, the kernel answers with its time and then the number.
struct HostClockArgs {
  volatile std::uint64_t* words = nullptr;  // host: 0 asked, 16 time, 32 answered
  int rounds = 1;
};
const void* host_clock_kernel();

// PE 1 sends its time whenever it is asked; PE 0 keeps the answer that came fastest.
struct PairClockArgs {
  Packet* packet = nullptr;      // symmetric
  std::int64_t* best = nullptr;  // of PE 0: nanoseconds of the round trip; PE 1's clock minus mine
  int rounds = 1;
};
const void* pair_clock_kernel();

// Messages. Stamps are nanoseconds of the PE's clock.
enum class MessageWay : std::uint32_t { silent, triggered, stores };
struct MessageStamps {
  unsigned long long begun = 0, ready = 0, sent = 0, ended = 0, seen = 0, wrong = 0;
};
struct MessageArgs {
  VerbArgs verbs;
  MessageWay way = MessageWay::silent;
  std::uint32_t epoch = 0;
  std::int32_t signals = 1;  // that the target waits for: the initiator's blocks where they store
  std::uint64_t bytes = 0;   // a multiple of 8
  std::uint64_t source = 0, target = 0;
  std::uint64_t before_ns = 0, after_ns = 0;
  MessageStamps* stamps = nullptr;  // of this epoch, on the PE
};
// `open`: block 0 supplies the target with its trigger; not where triggers are counted.
const void* initiator_kernel(bool counts, bool open = false);
const void* target_kernel();

// A kernel that computes on all multiprocessors and triggers copies at its beginning, block c
// copy c: tag c % tags, epochs from first_epoch on; and one that writes down when they have come.
struct BusyArgs {
  VerbArgs verbs;
  std::uint32_t first_epoch = 0;
  std::uint32_t copies = 0;  // 0: nothing is triggered
  std::uint32_t tags = 1;
  std::int64_t steps = 0;               // of arithmetic
  unsigned long long* times = nullptr;  // begun (least), ended (greatest)
  double* sink = nullptr;
};
const void* busy_kernel(bool counts);
struct WatchArgs {
  VerbArgs verbs;
  std::uint32_t first_epoch = 0;
  std::uint32_t copies = 0;
  std::uint32_t tags = 1;
  unsigned long long* seen = nullptr;  // [copies]: it and all before it have come
};
const void* watch_kernel();

// All-reduces of a vector, `repeats` in a row.
// By stores of values and a flag, by packets, or by triggers that go to rings or count in words.
enum class ReduceBy : std::uint32_t { stores, packets, rings, words };
struct GpuReduceArgs {
  VerbArgs verbs;
  VectorSchedule schedule;
  std::byte* values = nullptr;
  std::byte* inbox = nullptr;
  std::uint32_t epoch = 0;  // all-reduces before
  std::uint32_t repeats = 1;
  std::uint32_t warm_up = 0;            // of them, before the clock is read
  std::uint32_t checks = 0;             // 1: values are written before each, and compared after it
  unsigned long long* times = nullptr;  // [blocks][2]: begun, ended
  unsigned long long* wrong = nullptr;
};
const void* reduce_kernel(ReduceBy by, bool single);

// Jacobi iterations: one kernel for all, or one for iteration `args.iterations`.
struct GpuJacobiArgs {
  VerbArgs verbs;
  StripShape shape;
  std::byte* values = nullptr;
  std::uint32_t iterations = 0;
};
const void* jacobi_kernel(bool counts, bool single);
const void* jacobi_step_kernel(bool single);

// Each PE sends its right neighbour `words` words an epoch by each channel, of which the next
// `blocks` blocks trigger operation 2 c; the left one's are checked, and told by operation 2 c + 1.
// Channels have epochs of their own.
struct SoakArgs {
  VerbArgs verbs;
  std::uint64_t source = 0, target = 0;
  std::int64_t words = 1;
  std::int32_t blocks = 1;
  std::uint32_t first_epoch = 0;
  std::uint32_t epochs = 1;
  unsigned long long* sums = nullptr;  // of what came; wrong words
};
const void* soak_kernel(bool counts);

// `items` triggers of each block to tag 0 of the own NIC.
struct FloodArgs {
  VerbArgs verbs;
  std::int64_t items = 1;
};
const void* flood_kernel(bool counts);

// Programs of a domain: steps of block b from first[b] to first[b + 1].
struct StepsArgs {
  VerbArgs verbs;
  const Step* steps = nullptr;
  const std::int64_t* first = nullptr;
  const double* values = nullptr;
  Epoch* taken = nullptr;          // [pes]: entries of each queue that the PE has read
  TriggerTag* arrivals = nullptr;  // [steps], by the step that took it
};
const void* steps_kernel(bool counts);

}  // namespace cpufree::triggered
