// Probes by the engine for GPUs, here on fibers of the host (host_gpu): memory, launches, times.
#include <algorithm>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/systems/probes/gpu/prober.hpp"
#include "cpufree/systems/result.hpp"
#include "harness.hpp"
#include "probe_rig.hpp"

using namespace cpufree;

TEST(gpus_time_every_probe) {
  const auto prober = make_gpu_prober({0, 1}, 1, 32, 1 << 12);
  for (const ProbeOrder& order : probe_rig::orders(1, 1, 2)) {
    const auto seconds = prober->run(order);
    CHECK_EQ(seconds.size(), std::size_t{2});
    CHECK(std::ranges::all_of(seconds, [](double t) { return t > 0.0; }));
  }
}

TEST(blocks_of_two_pairs_of_gpus_time_every_probe) {
  const auto prober = make_gpu_prober({0, 1, 2, 3}, 2, 32, 1 << 12);
  for (const ProbeOrder& order : probe_rig::orders(1, 0, 1))
    CHECK_EQ(prober->run(order).size(), std::size_t{1});
}

TEST(pairs_need_an_even_number_of_gpus) {
  bool refused = false;
  try {
    static_cast<void>(make_gpu_prober({0, 1, 2}, 1, 32, 64));
  } catch (const InvalidInput&) {
    refused = true;
  }
  CHECK(refused);
}
