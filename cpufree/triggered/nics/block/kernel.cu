// A block of a GPU as the NIC of its PE. Warp 0 looks at posts and rings and keeps the table: a
// lane for each ring, and lane 0 for what has come. Short messages are copied by lane 0; the other
// warps, the crew, copy long ones.
//
// Crew. Lane 0 writes the job, then raises `job` (release at the scope of the block); each warp of
// the crew that has seen it copies its part and adds one to `copied` (release); lane 0 waits for
// all of them (acquire). It changes the job only after that, so none is read while it is written.
// Lane 0's fence at system scope before the flags that follow covers what the crew has stored:
// causality order is transitive over the two scopes.
//
// Sources are read past the L1 cache: other multiprocessors have written them.
#include <new>

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/triggered/nics/block/kernel.hpp"

namespace cpufree::nics {

namespace {

using gpu_p2p::Port;

constexpr std::uint64_t kShort = 256;  // bytes that lane 0 copies by itself
constexpr int kAtOnce = 4;             // rings that a lane looks at together
constexpr int kCrew = kNicThreads / 32 - 1;

// What the NIC looks at for each trigger, in shared memory: a load from the device's takes longer
// than all else that is done with one. More operations and rings stay in memory of the device.
constexpr int kNearOperations = 1024, kNearRings = 256;
struct Near {
  TriggerEntry entries[TriggerTable::kAssociative];
  std::uint32_t over[kNearOperations];
  TriggerRing rings[kNearRings];
};

struct Job {
  std::byte* to;
  const std::byte* from;
  std::uint64_t bytes;
  unsigned number;  // of jobs; the last one has no bytes and `over`
  unsigned over;
  unsigned copied;  // warps that are done, over all jobs
};

__device__ unsigned look(const unsigned* word) {
  unsigned value;
  asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
               : "=r"(value)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(word)))
               : "memory");
  return value;
}
__device__ void raise(unsigned* word, unsigned value) {
  asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(word))),
               "r"(value)
               : "memory");
}
__device__ void add_one(unsigned* word) {
  asm volatile("red.release.cta.shared.add.u32 [%0], 1;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(word)))
               : "memory");
}

template <class V>
__device__ void copy_as(std::byte* to, const std::byte* from, std::uint64_t bytes,
                        std::uint64_t lane, std::uint64_t lanes) {
  constexpr int kBatch = 8;
  const auto* source = reinterpret_cast<const V*>(from);
  auto* target = reinterpret_cast<V*>(to);
  const std::uint64_t count = bytes / sizeof(V);
  for (std::uint64_t k = lane; k < count; k += kBatch * lanes) {
    V values[kBatch];
    CPUFREE_UNROLL
    for (int i = 0; i < kBatch; ++i)
      if (k + i * lanes < count) values[i] = __ldcg(source + k + i * lanes);
    CPUFREE_UNROLL
    for (int i = 0; i < kBatch; ++i)
      if (k + i * lanes < count) target[k + i * lanes] = values[i];
  }
}

// In the widest words that both addresses and the number of bytes allow.
__device__ void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes,
                           std::uint64_t lane, std::uint64_t lanes) {
  const std::uint64_t low =
      reinterpret_cast<std::uint64_t>(to) | reinterpret_cast<std::uint64_t>(from) | bytes;
  if (low % sizeof(uint4) == 0)
    copy_as<uint4>(to, from, bytes, lane, lanes);
  else if (low % sizeof(unsigned) == 0)
    copy_as<unsigned>(to, from, bytes, lane, lanes);
  else
    copy_as<unsigned char>(reinterpret_cast<std::byte*>(to), from, bytes, lane, lanes);
}

struct CrewMover {
  static constexpr bool signals = false;
  Job* job;
  FiringEntry* log;
  std::uint64_t log_size;
  std::uint64_t firings;
  std::uint64_t begun;

  __device__ void put(Port& port, std::byte* to, int pe, const std::byte* from,
                      std::uint64_t bytes) {
    move(port.peer(to, pe), from, bytes);
  }
  __device__ void get(Port& port, std::byte* to, int pe, std::byte* from, std::uint64_t bytes) {
    move(to, port.peer(from, pe), bytes);
  }
  __device__ void move(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    if (log != nullptr) begun = Port::now();
    if (bytes <= kShort) return copy_bytes(to, from, bytes, 0, 1);
    job->to = to;
    job->from = from;
    job->bytes = bytes;
    const unsigned number = job->number + 1;
    raise(&job->number, number);
    // Ends, for a copy does. The crew counts no further than this, and both counters wrap around.
    while (look(&job->copied) != number * kCrew) {
    }
  }
  __device__ void fired(TriggerTag tag, const TriggerFields& fields) {
    if (firings < log_size) log[firings] = {tag, fields, begun, Port::now()};
    ++firings;
  }
};

// Warps 1 to kCrew. They end when the NIC's loop does, which has a bound.
__device__ void crew(Job* job) {
  const unsigned warp = threadIdx.x / 32 - 1;
  for (unsigned next = 1;; ++next) {
    while (look(&job->number) != next) __nanosleep(32);
    if (job->over != 0U) return;
    copy_bytes(job->to, job->from, job->bytes, warp * 32 + threadIdx.x % 32, kCrew * 32);
    __syncwarp();
    if (threadIdx.x % 32 == 0) add_one(&job->copied);
  }
}

using Nic = TriggerNic<Port, CrewMover>;

// One look by warp 0 at posts and rings. True for all lanes: something was taken.
__device__ bool look_around(Port& port, Nic& nic, int rings, bool at_posts) {
  const int lane = port.warp_lane();
  bool found = at_posts && lane == 0 && nic.take_posts();
  for (int base = 0; base < rings; base += kAtOnce * 32) {
    bool has[kAtOnce];
    Packet packets[kAtOnce];
    CPUFREE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int ring = base + 32 * k + lane;
      has[k] = ring < rings && nic.has_packet(ring, packets[k]);
    }
    CPUFREE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      for (unsigned here = Port::warp_ballot(has[k]); here != 0U; here &= here - 1) {
        const int from = Port::lowest_bit(here);
        const Packet packet{Port::warp_broadcast(packets[k].value, from),
                            Port::warp_broadcast(packets[k].tag, from)};
        found = (lane == 0 && nic.take(base + 32 * k + from, packet)) || found;
      }
    }
    Port::warp_sync();
  }
  return Port::warp_ballot(found) != 0U;
}

// Until the host says so and nothing is left, or a bound is over. Returns whether it was idle for
// too long.
__device__ bool run_nic(Port& port, Nic& nic, const BlockNicArgs& args) {
  constexpr unsigned kPostPeriod = 8,
                     kHostPeriod = 512;  // looks: posts are seldom, the host is far
  std::uint64_t last = Port::now();
  bool ending = false;
  for (unsigned looks = 0; Port::warp_ballot(nic.gave_up()) == 0U; ++looks) {
    const bool last_look = ending;
    const bool at_posts = last_look || looks % kPostPeriod == 0;
    const bool found = look_around(port, nic, args.board.pes * args.board.blocks, at_posts);
    if (found) {
      last = Port::now();
      continue;
    }
    if (last_look) return false;
    if (looks % kHostPeriod != 0) continue;
    ending = Port::warp_ballot(*args.ending != 0U) != 0U;
    if (Port::warp_ballot(Port::now() - last > args.idle_limit_ns) != 0U) return true;
  }
  return false;
}

__global__ void __launch_bounds__(kNicThreads, 1)
    block_nic(const __grid_constant__ gpu_p2p::Shared shared,
              const __grid_constant__ BlockNicArgs args) {
  __shared__ Job job;
  __shared__ alignas(TriggerTable) unsigned char room[sizeof(TriggerTable)];
  __shared__ alignas(16) unsigned char near_room[sizeof(Near)];
  auto& table = *reinterpret_cast<TriggerTable*>(room);
  auto& near = *reinterpret_cast<Near*>(near_room);
  for (std::size_t k = threadIdx.x; k < sizeof(Near); k += kNicThreads) near_room[k] = 0;
  const bool few_operations = args.board.operations <= kNearOperations;
  const bool few_rings = args.board.pes * args.board.blocks <= kNearRings;
  if (threadIdx.x == 0) {
    job = Job{};
    std::uint32_t* const over = few_operations ? near.over : args.memory.over;
    new (room) TriggerTable({args.memory.entries, over, near.entries}, args.limits);
  }
  Port port(shared, nullptr);  // has a barrier
  if (port.warp() > 0) return crew(&job);
  CrewMover mover{&job, args.log, args.log_size, 0, 0};
  TriggerRing* const rings = few_rings ? near.rings : args.rings;
  Nic nic(port, args.board, table, {rings, args.queued}, mover);
  const bool idle = run_nic(port, nic, args);
  if (port.warp_lane() != 0) return;
  for (int k = 0; k < min(table.size(), TriggerTable::kAssociative); ++k)
    args.memory.entries[k] = near.entries[k];
  for (int k = 0; few_operations && k < args.board.operations; ++k)
    args.memory.over[k] = near.over[k];
  for (std::size_t k = 0; k < sizeof(TriggerTable); ++k) args.end->table[k] = room[k];
  args.end->firings = mover.firings;
  args.end->gave_up = nic.gave_up() ? 1U : 0U;
  args.end->idle = idle ? 1U : 0U;
  job.over = 1;
  raise(&job.number, job.number + 1);
}

}  // namespace

const void* block_nic_kernel() { return reinterpret_cast<const void*>(block_nic); }

}  // namespace cpufree::nics
