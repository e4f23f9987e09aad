// Kernels of clocks, of messages and of a copy beside a computation.
#include "cpufree/triggered/gpu/verbs.cuh"

namespace cpufree::triggered {

namespace {

__device__ std::uint64_t now() { return gpu_p2p::nanoseconds(); }

__global__ void host_clock(const __grid_constant__ gpu_p2p::Shared shared,
                           const __grid_constant__ HostClockArgs args) {
  GpuPort port(shared, nullptr);
  if (port.lane() != 0) return;
  for (int round = 1; round <= args.rounds; ++round) {
    auto wait = port.start_wait();
    while (args.words[0] != static_cast<std::uint64_t>(round))
      if (!port.keep_waiting(wait)) return;
    args.words[16] = now();
    __threadfence_system();
    args.words[32] = static_cast<std::uint64_t>(round);
  }
}

// One packet each way a round. Neither side writes its next packet before it has seen the other's
// answer, so one slot each will do.
__global__ void pair_clock(const __grid_constant__ gpu_p2p::Shared shared,
                           const __grid_constant__ PairClockArgs args) {
  GpuPort port(shared, nullptr);
  if (port.lane() != 0) return;
  const int other = 1 - port.pe();
  std::int64_t best = std::int64_t{1} << 62, offset = 0;
  for (int round = 1; round <= args.rounds; ++round) {
    const auto number = static_cast<Epoch>(round);
    Packet got[1];
    const std::uint64_t start = now();
    if (port.pe() == 0) port.put_packet(args.packet, other, 0.0, make_tag(number, 0U));
    if (!wait_packets<1>(
            port, [&](int) { return args.packet; }, 1, number,
            [&](int) { return WaitSite{Channel::halo_arrival, other, 0}; }, got))
      return;
    const std::uint64_t end = now();
    if (port.pe() == 1) {
      port.put_packet(args.packet, other, __longlong_as_double(static_cast<long long>(end)),
                      make_tag(number, 0U));
      continue;
    }
    const auto trip = static_cast<std::int64_t>(end - start);
    if (trip >= best) continue;
    best = trip;
    offset = __double_as_longlong(got[0].value) - static_cast<std::int64_t>(start) - trip / 2;
  }
  if (port.pe() != 0) return;
  args.best[0] = best;
  args.best[1] = offset;
}

__device__ std::uint64_t word_of(std::uint32_t epoch, std::uint64_t k) {
  return (std::uint64_t{epoch} + 1) * 0x9e3779b97f4a7c15U + k;
}

// The words of a block's part of a message.
struct Part {
  std::uint64_t begin, end;
  __device__ Part(GpuPort& port, std::uint64_t words)
      : begin(words * static_cast<std::uint64_t>(port.block()) /
              static_cast<std::uint64_t>(port.blocks())),
        end(words * static_cast<std::uint64_t>(port.block() + 1) /
            static_cast<std::uint64_t>(port.blocks())) {}
};

// Stores the block's part into the target's memory, and tells by a signal of the block's own.
__device__ void store(GpuPort& port, const MessageArgs& args) {
  constexpr int kBatch = 4;
  const auto* const from =
      reinterpret_cast<const std::uint64_t*>(args.verbs.board.heap + args.source);
  auto* const to =
      port.peer(reinterpret_cast<std::uint64_t*>(args.verbs.board.heap + args.target), 1);
  const Part part(port, args.bytes / sizeof(std::uint64_t));
  const auto lanes = static_cast<std::uint64_t>(port.lanes());
  std::uint64_t k = part.begin + static_cast<std::uint64_t>(port.lane());
  for (; k + (kBatch - 1) * lanes < part.end; k += kBatch * lanes) {
    std::uint64_t values[kBatch];
    CPUFREE_UNROLL
    for (int i = 0; i < kBatch; ++i) values[i] = from[k + i * lanes];
    CPUFREE_UNROLL
    for (int i = 0; i < kBatch; ++i) to[k + i * lanes] = values[i];
  }
  for (; k < part.end; k += lanes) to[k] = from[k];
  port.sync_block();
  if (port.lane() != 0) return;
  port.publish(Scope::system);
  port.put_flag(args.verbs.board.signals + port.block(), 1, Epoch{args.epoch} + 1);
}

template <bool kOpen, class Verbs>
__device__ void trigger(Verbs& verbs, const MessageArgs& args, int block) {
  const TriggerTag tag{0, args.epoch};
  if constexpr (kOpen)
    verbs.trigger(tag, {block == 0 ? TriggerFields::target : 0U, {0, args.target}});
  else
    verbs.trigger(tag);
}

template <bool kCounts, bool kOpen = false>
__global__ void __launch_bounds__(1024, 1) initiator(const __grid_constant__ gpu_p2p::Shared shared,
                                                     const __grid_constant__ MessageArgs args) {
  GpuPort port(shared, nullptr);
  GpuVerbs<kCounts> verbs(port, args.verbs, port.pe());
  MessageStamps& stamps = *args.stamps;
  const std::uint64_t begun = now();
  const std::uint64_t words = args.bytes / sizeof(std::uint64_t);
  auto* const source = reinterpret_cast<std::uint64_t*>(args.verbs.board.heap + args.source);
  const Part part(port, words);
  for (std::uint64_t k = part.begin + static_cast<std::uint64_t>(port.lane()); k < part.end;
       k += static_cast<std::uint64_t>(port.lanes()))
    source[k] = word_of(args.epoch, k);
  spin_until(begun + args.before_ns);
  port.sync_block();
  const std::uint64_t ready = now();
  if (args.way == MessageWay::triggered)
    trigger<kOpen>(verbs.verbs(), args, port.block());
  else if (args.way == MessageWay::stores)
    store(port, args);
  const std::uint64_t sent = now();
  spin_until(sent + args.after_ns);
  port.sync_block();
  // Written down at last: a fence of the message would wait for an earlier store.
  if (port.lane() == 0) {
    atomicMax(&stamps.ready, static_cast<unsigned long long>(ready));
    atomicMax(&stamps.sent, static_cast<unsigned long long>(sent));
    atomicMax(&stamps.ended, static_cast<unsigned long long>(now()));
    if (port.block() == 0) stamps.begun = begun;
  }
  verbs.keep();
}

__global__ void __launch_bounds__(1024, 1) target(const __grid_constant__ gpu_p2p::Shared shared,
                                                  const __grid_constant__ MessageArgs args) {
  GpuPort port(shared, nullptr);
  TriggerWaits<GpuPort> waits(port, args.verbs.board);
  for (int k = 0; k < args.signals; ++k)
    if (!waits.wait_signal(k, args.epoch, 0)) return;
  if (port.lane() == 0) args.stamps->seen = now();
  const auto* const words =
      reinterpret_cast<const std::uint64_t*>(args.verbs.board.heap + args.target);
  unsigned long long wrong = 0;
  for (auto k = static_cast<std::uint64_t>(port.lane()); k < args.bytes / sizeof(std::uint64_t);
       k += static_cast<std::uint64_t>(port.lanes()))
    wrong += __ldcg(words + k) == word_of(args.epoch, k) ? 0 : 1;
  if (wrong != 0) atomicAdd(&args.stamps->wrong, wrong);
}

template <bool kCounts>
__global__ void __launch_bounds__(1024, 1)
    busy(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ BusyArgs args) {
  GpuPort port(shared, nullptr);
  GpuVerbs<kCounts> verbs(port, args.verbs, port.pe());
  if (port.lane() == 0) atomicMin(args.times, static_cast<unsigned long long>(now()));
  for (auto c = static_cast<std::uint32_t>(port.block()); c < args.copies; c += port.blocks())
    if (!verbs.verbs().trigger({c % args.tags, args.first_epoch + c / args.tags})) break;
  float a[4] = {1.0F, 2.0F, 3.0F, 4.0F};
  const float b = 1.0F + 1e-7F * static_cast<float>(port.lane());
  for (std::int64_t k = 0; k < args.steps; ++k) CPUFREE_UNROLL
  for (float& value : a) value = value * b + 0.5F;
  const float sum = a[0] + a[1] + a[2] + a[3];
  if (sum == 12345.678F) *args.sink = static_cast<double>(sum);  // keeps the arithmetic
  port.sync_block();
  if (port.lane() == 0) atomicMax(args.times + 1, static_cast<unsigned long long>(now()));
  verbs.keep();
}

__global__ void watch(const __grid_constant__ gpu_p2p::Shared shared,
                      const __grid_constant__ WatchArgs args) {
  GpuPort port(shared, nullptr);
  TriggerWaits<GpuPort> waits(port, args.verbs.board);
  for (std::uint32_t c = 0; c < args.copies; ++c) {
    const auto tag = static_cast<int>(c % args.tags);
    if (!waits.wait_signal(tag, args.first_epoch + c / args.tags, 0)) return;
    if (port.lane() == 0) args.seen[c] = now();
  }
}

template <class K>
const void* address(K* kernel) {
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace

const void* host_clock_kernel() { return address(host_clock); }
const void* pair_clock_kernel() { return address(pair_clock); }
const void* initiator_kernel(bool counts, bool open) {
  if (open && !counts) return address(initiator<false, true>);
  return counts ? address(initiator<true>) : address(initiator<false>);
}
const void* target_kernel() { return address(target); }
const void* busy_kernel(bool counts) { return counts ? address(busy<true>) : address(busy<false>); }
const void* watch_kernel() { return address(watch); }

}  // namespace cpufree::triggered
