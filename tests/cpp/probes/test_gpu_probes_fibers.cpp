// Probes by the engine for GPUs, here on fibers of the host (host_gpu): memory, launches, times.
#include <algorithm>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/probes/gpu/host_product.hpp"
#include "cpufree/probes/gpu/host_ways.hpp"
#include "cpufree/probes/gpu/prober.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "harness.hpp"
#include "pattern_rig.hpp"
#include "probe_rig.hpp"

using namespace cpufree;

namespace {

bool all_positive(const std::vector<double>& seconds) {
  return std::ranges::all_of(seconds, [](double t) { return t > 0.0; });
}

// What is said where it is refused; "" where it is not.
template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<double> times(const std::string& way, const std::string& mode, int messages = 1,
                          const std::string& handle = "") {
  const auto made = make_host_way({way, {0, 1}, 1 << 12, "", handle});
  return made->times({mode, 64, messages, 2, 3, 60.0});
}

}  // namespace

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

TEST(memory_of_the_host_serves_gpus_as_well) {
  const auto prober = make_gpu_prober({0, 1}, 1, 32, 1 << 12, ProbePlace::pinned);
  CHECK(
      all_positive(prober->run({ProbeWay::store_block, ProbeMode::single, 56, 1, 1, 1, 2, 60.0})));
}

// Its values are right, or it throws; the clock of fibers need not have gone on.
TEST(pes_on_gpus_of_their_own_and_shared_ones_run_patterns) {
  for (const std::vector<int>& gpus : {std::vector<int>{0, 1, 2, 3}, {0, 0, 1, 1}}) {
    const auto prober = make_gpu_prober(gpus, 1, 32, 1 << 13);
    for (const PatternOrder& order : {pattern_rig::ring(4, 56, 2), pattern_rig::many_to_one(4, 2),
                                      pattern_rig::product(4, false, false, false, 2),
                                      pattern_rig::product(4, true, false, false, 2)}) {
      const PatternTimes seconds = prober->run(order);
      CHECK_EQ(seconds.size(), std::size_t{2 * 4 * 2});
      CHECK(std::ranges::all_of(seconds, [](double t) { return t >= 0.0; }));
    }
  }
}

TEST(the_host_copies_and_launches) {
  for (const char* way : {"copy", "copy-get", "copy-graph"}) {
    for (const char* mode : {"single", "send", "launch", "queue"})
      CHECK(all_positive(times(way, mode)));
    for (const char* mode : {"window", "launch", "queue"}) CHECK(all_positive(times(way, mode, 7)));
  }
}

TEST(the_host_copies_within_a_gpu) {
  const auto made = make_host_way({"copy", {1, 1}, 1 << 12});
  CHECK(all_positive(made->times({"window", 64, 3, 2, 3, 60.0})));
}

// Its values are right, or it throws.
TEST(the_host_drives_products) {
  for (const std::vector<int>& gpus : {std::vector<int>{0, 1, 2, 3}, {0, 0, 1, 1}}) {
    const auto product = make_host_product(gpus, 64);
    for (const bool puts : {false, true})
      for (const bool overlapped : {false, true})
        for (const int tile : {32, 64}) {
          const auto order = pattern_rig::product(tile, puts, overlapped, false, 2);
          const PatternTimes seconds = product->run(order);
          CHECK_EQ(seconds.size(), std::size_t{2 * 4 * 2});
          for (std::size_t k = 0; k < 8; ++k) {
            CHECK(seconds[k] > seconds[8 + k]);  // all of a round, and moving alone
            CHECK_EQ(seconds[8 + k] > 0.0, !overlapped);
          }
        }
  }
}

TEST(products_that_the_host_does_not_drive_are_refused) {
  const auto says = [](const std::string& words, auto&& call) {
    return refusal(call).find(words) != std::string::npos;
  };
  CHECK(says("square grid of PEs", [] { make_host_product({0, 1, 0}, 64); }));
  CHECK(says("a multiple of 32 rows, up to 64", [] {
    make_host_product({0, 1, 0, 1}, 64)->run(pattern_rig::product(96, false, false, false, 1));
  }));
  CHECK(says("a multiple of 32 rows", [] {
    make_host_product({0, 1, 0, 1}, 64)->run(pattern_rig::product(40, false, false, false, 1));
  }));
  CHECK(says("drives products alone",
             [] { make_host_product({0, 1, 0, 1}, 64)->run(pattern_rig::ring(4, 8, 1)); }));
}

TEST(kernels_read_what_the_host_has_written) { CHECK(all_positive(times("managed", "single"))); }

TEST(a_thread_and_a_kernel_exchange_messages) {
  for (const char* mode : {"single", "send", "receive"}) CHECK_EQ(times("pinned", mode).size(), 3U);
  CHECK(all_positive(times("pinned", "window", 5)));
}

TEST(a_thread_serves_what_a_kernel_asks_for) { CHECK(all_positive(times("proxy", "single"))); }

TEST(memory_of_another_process_is_copied_to) {
  const auto memory = make_ipc_memory(1, 1 << 12);
  CHECK(all_positive(times("ipc", "single", 1, memory->handle())));
  CHECK(refusal([] { times("ipc", "single"); }).find("handle of another process") !=
        std::string::npos);
}

TEST(ways_of_the_host_refuse_what_they_cannot_do) {
  const auto says = [](const std::string& words, auto&& call) {
    return refusal(call).find(words) != std::string::npos;
  };
  CHECK(says("not measured in mode 'receive'", [] { times("copy", "receive"); }));
  CHECK(says("not measured in mode 'window'", [] { times("managed", "window"); }));
  CHECK(says("mode 'single' alone", [] { times("proxy", "window"); }));
  CHECK(says("do not fit into the memory", [] { times("copy", "window", 1000); }));
  CHECK(says("way 'carrier pigeon' of the host is not known",
             [] { times("carrier pigeon", "single"); }));
  CHECK(says("from one GPU to another", [] { make_host_way({"copy", {0}, 64, "", ""}); }));
  CHECK(says("NCCL was not found", [] { make_host_way({"nccl", {0, 1}, 64, "/no/nccl.so", ""}); }));
}
