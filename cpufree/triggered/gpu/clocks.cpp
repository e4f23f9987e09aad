#include "cpufree/triggered/gpu/clocks.hpp"

#include <atomic>
#include <chrono>

#include "cpufree/base/error.hpp"
#include "cpufree/triggered/gpu/kernels.hpp"
#include "cpufree/triggered/nics/host_port.hpp"

namespace cpufree::triggered {

namespace {

constexpr int kRounds = 400;
constexpr double kHostLimit = 5.0;  // seconds

struct Best {
  std::int64_t trip = std::int64_t{1} << 62;
  std::int64_t offset = 0;
};

std::int64_t host_now() { return static_cast<std::int64_t>(nics::HostPort::now()); }

// The host's clock minus PE 0's.
Best against_host(const GpuPes& pes, const std::function<void()>& look) {
  const gpu::MappedArray<std::uint64_t> words(64);
  auto* const shared = const_cast<volatile std::uint64_t*>(words.data());
  const HostClockArgs args{shared, kRounds};
  pes.prepare(host_clock_kernel(), {1, 32, 0});
  pes.launch(0, host_clock_kernel(), {1, 32, 0}, &args);
  const gpu::Deadline deadline(kHostLimit);
  Best best;
  for (std::uint64_t round = 1; round <= kRounds && !deadline.over(); ++round) {
    const std::int64_t start = host_now();
    shared[0] = round;
    while (shared[32] != round && !deadline.over()) gpuRelax();
    std::atomic_thread_fence(std::memory_order_acquire);
    const std::int64_t trip = host_now() - start;
    if (trip >= best.trip) continue;
    best = {trip, start + trip / 2 - static_cast<std::int64_t>(shared[16])};
  }
  pes.finish(look);
  return best;
}

// PE 1's clock minus PE 0's.
Best of_pair(const GpuPes& pes, Symmetric<Packet> packet, const std::function<void()>& look) {
  if (pes.device(0) == pes.device(1)) return {0, 0};
  const gpu::DeviceArray<std::int64_t> best(pes.device(0), std::size_t{2});
  pes.prepare(pair_clock_kernel(), {1, 32, 0});
  for (int pe = 1; pe >= 0; --pe) {
    const PairClockArgs args{packet.at(pes.heap(pe)), best.data(), kRounds};
    pes.launch(pe, pair_clock_kernel(), {1, 32, 0}, &args);
  }
  pes.finish(look);
  const auto found = best.download();
  return {found[0], found[1]};
}

}  // namespace

GpuClocks measure_clocks(const GpuPes& pes, Symmetric<Packet> packet,
                         const std::function<void()>& look) {
  require(pes.count() == 2, "clocks of two PEs are compared");
  const Best host = against_host(pes, look), pair = of_pair(pes, packet, look);
  GpuClocks clocks;
  clocks.offset[0] = host.offset;
  clocks.offset[1] = host.offset - pair.offset;
  clocks.host_error = 0.5e-9 * static_cast<double>(host.trip);
  clocks.pair_error = 0.5e-9 * static_cast<double>(pair.trip);
  return clocks;
}

}  // namespace cpufree::triggered
