// Probes by the engine for GPUs, here on fibers of the host (host_gpu): memory, launches, times.
#include <algorithm>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/systems/probes/gpu/prober.hpp"
#include "cpufree/systems/result.hpp"
#include "harness.hpp"
#include "probe_rig.hpp"

using namespace cpufree;

TEST(gpus_time_every_probe) {
  const auto prober = make_gpu_prober({0, 1}, 1, 32, 1 << 12);
  for (const ProbeOrder& order : probe_rig::orders(1, 0, 1)) {
    const auto seconds = prober->run(order);
    CHECK_EQ(seconds.size(), std::size_t{1});
    CHECK(std::ranges::all_of(seconds, [](double t) { return t > 0.0; }));
  }
}

TEST(blocks_of_two_pairs_of_gpus_time_every_probe) {
  const auto prober = make_gpu_prober({0, 1, 2, 3}, 2, 32, 1 << 12);
  for (const ProbeWay way : {ProbeWay::store_block, ProbeWay::packets, ProbeWay::get})
    CHECK_EQ(prober->run({way, ProbeMode::single, 56, 1, 1, 1, 2, 60.0}).size(), std::size_t{2});
  const ProbeOrder sum{ProbeWay::store_block, ProbeMode::allreduce, 32, 1, 1, 0, 2, 60.0};
  CHECK_EQ(prober->run(sum).size(), std::size_t{2});
}

TEST(pes_that_share_gpus_time_every_probe) {
  const auto prober = make_gpu_prober({0, 0, 1, 1}, 1, 32, 1 << 12);
  for (const ProbeWay way : {ProbeWay::store_block, ProbeWay::packets, ProbeWay::get})
    CHECK_EQ(prober->run({way, ProbeMode::single, 56, 1, 1, 1, 2, 60.0}).size(), std::size_t{2});
  const ProbeOrder sum{ProbeWay::store_block, ProbeMode::allreduce, 32, 1, 1, 0, 2, 60.0};
  CHECK_EQ(prober->run(sum).size(), std::size_t{2});
}

TEST(pes_whose_blocks_have_no_room_together_do_not_share_a_gpu) {
  std::string why;
  try {
    static_cast<void>(make_gpu_prober({0, 0, 1, 0}, 1, 32, 64));  // two blocks are resident
  } catch (const InvalidInput& error) {
    why = error.what();
  }
  CHECK(why.find("GPU 0 runs at most 2 blocks of 32 threads together, not 1 for each of the 3 PEs "
                 "that share it") != std::string::npos);
}

TEST(pairs_need_an_even_number_of_gpus) {
  bool refused = false;
  try {
    static_cast<void>(make_gpu_prober({0, 1, 2}, 1, 32, 64)->run(ProbeOrder{}));
  } catch (const InvalidInput&) {
    refused = true;
  }
  CHECK(refused);
}
