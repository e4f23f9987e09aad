// The host-driven baselines of stencils on a stand-in for GPUs, against the serial reference, bit
// for bit: the arithmetic and its tiles as they are compiled for GPUs, thread by thread; and that
// streams, events and flags allow no wrong order.
#include <cstdlib>

#include "stencil_baseline_rig.hpp"

#include "cpufree/base/error.hpp"

using namespace cpufree;
using namespace stencil_baseline_rig;

namespace {

const char* const kKinds[] = {"copy",       "overlap",     "p2p",    "nccl",
                              "nccl_graph", "flags_graph", "nvshmem"};

}  // namespace

TEST(every_baseline_gives_the_bits_of_the_reference_in_two_dimensions) {
  on_machine(false);
  for (const char* kind : kKinds)
    for (int pes = 1; pes <= 4; ++pes)
      for (const bool periodic : {false, true}) {
        check_grid<float>(kind, grid2d(23, 37, periodic, periodic), pes, 9);
        check_grid<double>(kind, grid2d(23, 37, periodic, periodic), pes, 9);
      }
}

TEST(every_baseline_gives_the_bits_of_the_reference_in_three_dimensions) {
  on_machine(false);
  for (const char* kind : kKinds)
    for (int pes = 1; pes <= 4; ++pes)
      for (const unsigned periodic : {0U, 7U}) {
        check_grid<float>(kind, grid3d(11, 9, 14, periodic), pes, 6);
        check_grid<double>(kind, grid3d(11, 10, 13, periodic), pes, 7);
      }
}

TEST(boundaries_may_differ_from_axis_to_axis) {
  on_machine(false);
  for (unsigned periodic = 0; periodic < 8; ++periodic)
    for (const int pes : {1, 3}) {
      check_grid<float>("p2p", grid3d(8, 7, 6, periodic), pes, 5);
      check_grid<double>("overlap", grid3d(8, 6, 5, periodic), pes, 5);
      check_grid<float>("nccl", grid2d(9, 5, (periodic & 1U) != 0, (periodic & 2U) != 0), pes, 5);
    }
}

TEST(slabs_of_one_and_two_planes_are_computed) {
  on_machine(false);
  for (const char* kind : kKinds)
    for (const bool periodic : {false, true})
      for (const std::int64_t planes : {4, 5, 8, 9}) {
        const std::int64_t n = periodic ? planes : planes + 2;
        check_grid<float>(kind, grid2d(n, 6, periodic), 4, 7);
        check_grid<double>(kind, grid3d(n, 5, 4, periodic ? 7U : 0U), 4, 6);
      }
  for (const unsigned periodic : {1U, 7U})
    check_grid<float>("copy", grid3d(1, 4, 4, periodic), 1, 3);
}

TEST(every_width_of_a_row_is_computed) {
  on_machine(false);
  for (std::int64_t columns = 1; columns <= 13; ++columns) {
    check_grid<float>("p2p", grid2d(6, columns, false, true), 2, 4);
    check_grid<double>("p2p", grid3d(5, columns, columns, 6U), 2, 4);
    if (columns < 3) continue;
    check_grid<float>("p2p", grid2d(6, columns), 2, 4);
    check_grid<float>("p2p", grid3d(5, columns, columns), 2, 4);
  }
}

// More than one block along each direction, and chunks that do not come out even.
TEST(rows_longer_than_a_block_and_chunks_of_any_depth_are_computed) {
  on_machine(false);
  for (const int depth : {0, 1, 2, 3, 7, 100}) {
    check_grid<float>("flags_graph", grid2d(21, 1100, true, true), 2, 3, depth);
    check_grid<double>("p2p", grid2d(19, 530), 2, 3, depth);
    check_grid<float>("flags_graph", grid3d(10, 37, 300, 7U), 2, 2, depth);
    check_grid<double>("nccl", grid3d(10, 21, 70), 2, 3, depth);
  }
}

TEST(one_thread_may_drive_all_gpus) {
  on_machine(false);
  for (const char* kind : {"copy", "overlap", "p2p", "nccl"}) {
    const Grid grid = grid2d(30, 11, true);
    StencilBaselineSpec spec = spec_of(kind, grid, 4);
    spec.threads = false;
    const auto expected = reference::jacobi<float>(rough<float>(grid, 1), nullptr, grid, 70);
    CHECK(same_bits(run<float>(spec, 70), expected));
  }
}

// Orders of execution

namespace {

// Whether a schedule gives the bits of the reference; false where the run fails.
bool right(const std::string& kind, unsigned seed, bool ignore_waits) {
  on_machine(true, seed, ignore_waits);
  const Grid grid = grid2d(13, 9, true);
  StencilBaselineSpec spec = spec_of(kind, grid, 3);
  if (ignore_waits) spec.wait_limit = 0.2, spec.threads = false;
  const auto expected = reference::jacobi<double>(rough<double>(grid, 1), nullptr, grid, 11);
  try {
    return same_bits(run<double>(spec, 11), expected);
  } catch (const EngineError&) {
    return false;
  }
}

}  // namespace

TEST(any_order_that_streams_allow_gives_the_same_bits) {
  for (const char* kind : kKinds)
    for (unsigned seed = 1; seed < 25; ++seed)
      harness::check(right(kind, seed, false), kind, static_cast<int>(seed), "the bits");
}

TEST(schedules_find_streams_that_do_not_wait) {
  for (const char* kind : {"overlap", "p2p", "nccl", "nvshmem:signal", "nvshmem:meet_beside",
                           "nvshmem:signal_beside", "nvshmem:put_beside"}) {
    int wrong = 0;
    for (unsigned seed = 1; seed < 9; ++seed) wrong += right(kind, seed, true) ? 0 : 1;
    harness::check(wrong > 0, kind, 0, "some schedule goes wrong", wrong);
  }
}

// NVSHMEM: a process for each PE

TEST(every_exchange_of_nvshmem_gives_the_bits_of_the_reference) {
  on_machine(false);
  for (const char* exchange : kExchanges)
    for (int pes = 1; pes <= 5; ++pes)
      for (const bool periodic : {false, true}) {
        const std::string kind = std::string("nvshmem:") + exchange;
        check_grid<float>(kind, grid2d(11, 7, periodic, periodic), pes, 7, 2);
        check_grid<double>(kind, grid3d(7, 4, 5, periodic ? 7U : 0U), pes, 6, 2);
      }
}

TEST(exchange_by_trial_is_the_same_on_all_processes) {
  on_machine(true);
  const Grid grid = grid2d(13, 6, true);
  StencilProcesses<double> baseline(spec_of("nvshmem:auto", grid, 3));
  for (std::size_t pe = 0; pe < 3; ++pe) {
    const StencilBaselineFacts& facts = baseline.facts_of(pe);
    CHECK_EQ(facts.exchange, baseline.facts().exchange);
    CHECK_EQ(facts.depth, baseline.facts().depth);
    CHECK_EQ(facts.exchange_seconds.size(), std::size(kExchanges));
    for (const auto& [name, seconds] : facts.exchange_seconds) CHECK(seconds > 0.0);
  }
  const auto start = rough<double>(grid, 1);
  std::vector<double> out(start.size());
  baseline.run(start, out, 9, "full");
  CHECK(same_bits(out, reference::jacobi<double>(start, nullptr, grid, 9)));
  for (const double seconds : baseline.seconds) CHECK_EQ(seconds, baseline.seconds.front());
}

TEST(process_that_does_nothing_more_ends_the_others) {
  for (const char* kind : {"nvshmem:meet", "nvshmem:signal"}) {
    on_machine(true);
    StencilBaselineSpec spec = spec_of(kind, grid2d(17, 8, true), 3);
    spec.wait_limit = 1.0;
    StencilProcesses<float> baseline(spec);
    CHECK(baseline.run({}, {}, 4, "full") > 0.0);
    baseline.dead = 1;
    CHECK_THROWS(EngineError, baseline.run({}, {}, 4, "full"));
    CHECK_THROWS(EngineError, baseline.run({}, {}, 4, "full"));
  }
}

// Of several errors the rig passes on that of the first process.
TEST(process_that_leaves_in_the_middle_ends_the_others_and_is_ended_by_them) {
  on_machine(true);
  StencilBaselineSpec spec = spec_of("nvshmem:meet", grid2d(17, 8, true), 3);
  spec.wait_limit = 1.0;
  StencilProcesses<float> baseline(spec);
  CHECK(baseline.run({}, {}, 4, "full") > 0.0);
  baseline.hasty = 1;
  std::string why = "nothing";
  try {
    baseline.run({}, {}, 4, "full");
  } catch (const EngineError& e) {
    why = e.what();
  }
  CHECK(why.find("PE 0 waited longer than 1") != std::string::npos);
}

TEST(process_that_is_none_of_its_baseline_is_refused) {
  on_machine(false);
  StencilBaselineSpec spec = spec_of("nvshmem", grid2d(8, 8), 2);
  spec.nvshmem_id = make_shmem_id("");
  const auto refuse = [](StencilBaselineSpec wrong) {
    CHECK_THROWS(InvalidInput, make_stencil_baseline<float>(wrong));
  };
  spec.rank = 2;
  refuse(spec);
  spec.rank = 0;
  spec.exchange = "magic";
  refuse(spec);
  spec.exchange = "auto";
  spec.nvshmem_id = "0123";
  refuse(spec);
  spec.nvshmem_library = "missing";
  CHECK_THROWS(Unsupported, make_stencil_baseline<float>(spec));
  spec.nvshmem_library = "";
  host_gpu::configure({5, false, false, 1, false});  // GPUs that do not reach one another
  CHECK_THROWS(Unsupported, make_stencil_baseline<float>(spec));
}

// Runs, variants, errors

TEST(one_baseline_runs_again_and_again) {
  on_machine(true);
  const Grid grid = grid2d(17, 8, true);
  const auto start = rough<float>(grid, 1);
  for (const char* kind : kKinds) {
    const auto baseline = make<float>(spec_of(kind, grid, 3));
    for (const int count : {0, 1, 5, 8, 5, 70}) {
      std::vector<float> out(start.size());
      CHECK(baseline->run({}, {}, 7, "full") > 0.0);
      CHECK(baseline->run({}, {}, 7, "no-compute") > 0.0);
      CHECK(baseline->run({}, {}, 7, "no-comm") > 0.0);
      baseline->run(start, out, count, "full");
      CHECK(same_bits(out, reference::jacobi<float>(start, nullptr, grid, count)));
    }
  }
}

TEST(depth_of_chunks_is_the_rules_unless_a_trial_finds_another_or_it_is_given) {
  on_machine(false);
  StencilBaselineSpec spec = spec_of("p2p", grid2d(200, 300), 2);
  CHECK_EQ(make_stencil_baseline<float>(spec)->facts().depth, 4);  // all take as long here
  spec.depth = 5;
  CHECK_EQ(make_stencil_baseline<float>(spec)->facts().depth, 5);
}

TEST(kinds_say_what_they_need) {
  on_machine(false);
  for (const BaselineKind& kind : stencil_baseline_kinds("missing"))
    CHECK_EQ(kind.available, kind.name.substr(0, 4) != "nccl");
}

TEST(gpu_that_stops_is_noticed) {
  for (const char* kind : kKinds) {
    on_machine(true);
    const Grid grid = grid2d(17, 8, true);
    StencilBaselineSpec spec = spec_of(kind, grid, 3);
    spec.wait_limit = 1.0;  // a machine may be busy
    const auto start = rough<float>(grid, 1);
    const auto baseline = make<float>(spec);
    CHECK(baseline->run(start, {}, 4, "full") > 0.0);
    host_gpu::stop_device(1, 20);
    CHECK_THROWS(EngineError, baseline->run({}, {}, 100, "full"));
    CHECK_THROWS(EngineError, baseline->run({}, {}, 1, "full"));
  }
}

TEST(edges_pass_through_the_host_where_nccl_avoids_peers) {
  on_machine(false);
  const Grid grid = grid2d(8, 8);
  setenv("NCCL_P2P_DISABLE", "1", 1);
  CHECK_EQ(make_stencil_baseline<float>(spec_of("nccl", grid, 2))->facts().staging,
           std::string("host"));
  CHECK_EQ(make_stencil_baseline<float>(spec_of("p2p", grid, 2))->facts().staging,
           std::string("peer"));
  unsetenv("NCCL_P2P_DISABLE");
}

TEST(what_cannot_be_is_refused) {
  on_machine(false);
  const Grid grid = grid2d(8, 8);
  const auto refuse = [](const StencilBaselineSpec& spec) {
    CHECK_THROWS(InvalidInput, make_stencil_baseline<float>(spec));
  };
  refuse(spec_of("nonsense", grid, 2));
  refuse(spec_of("p2p", grid, 6));          // 5 GPUs
  refuse(spec_of("p2p", grid2d(4, 8), 3));  // 2 planes to update
  refuse(spec_of("p2p", grid2d(2, 8), 1));  // none
  StencilBaselineSpec odd = spec_of("nccl_graph", grid, 2);
  odd.unroll = 3;
  refuse(odd);
  const auto one = make_stencil_baseline<float>(spec_of("p2p", grid, 1));
  CHECK_THROWS(Unsupported, one->run({}, {}, 1, "no-compute"));
  CHECK_THROWS(InvalidInput, one->run({}, {}, 1, "nothing"));
  CHECK_THROWS(InvalidInput, one->run({}, {}, -1, "full"));
}
