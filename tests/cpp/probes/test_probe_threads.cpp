// Probes among threads, and among processes: what they measure, and how they fail.
#include <algorithm>
#include <thread>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/probes/host/cpu.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "harness.hpp"
#include "pattern_rig.hpp"
#include "probe_rig.hpp"

using namespace cpufree;

namespace {

bool all_positive(const std::vector<double>& seconds) {
  return std::ranges::all_of(seconds, [](double t) { return t > 0.0; });
}

template <class F>
bool refused(F&& f) {
  try {
    f();
  } catch (const InvalidInput&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(threads_time_every_probe) {
  CpuProber prober(2, 1, 1 << 12);
  for (const ProbeOrder& order : probe_rig::orders(3, 2, 4)) {
    const auto seconds = prober.run(order);
    CHECK_EQ(seconds.size(), std::size_t{4});
    CHECK(all_positive(seconds));
  }
}

TEST(pairs_of_several_blocks_time_every_probe) {
  CpuProber prober(4, 2, 1 << 12);
  for (const ProbeOrder& order : probe_rig::orders(2, 0, 2)) CHECK(all_positive(prober.run(order)));
}

TEST(processes_time_every_probe) {
  // Two probers, each of one PE: what each has is memory that it shares, as between processes.
  CpuProber first(2, 1, 1 << 12, 0);
  CpuProber second(2, 1, 1 << 12, 1);
  first.connect({first.address(), second.address()});
  second.connect({first.address(), second.address()});
  for (const ProbeOrder& order : probe_rig::orders(2, 1, 3)) {
    std::vector<double> nothing{1.0};
    std::vector<double> seconds;
    {
      std::jthread other([&] { nothing = second.run(order); });
      seconds = first.run(order);
    }
    CHECK_EQ(seconds.size(), std::size_t{3});
    CHECK(all_positive(seconds));
    CHECK(nothing.empty());
  }
}

TEST(a_partner_that_never_comes_is_a_timeout_that_names_it) {
  CpuProber first(2, 1, 1 << 12, 0);
  CpuProber second(2, 1, 1 << 12, 1);
  first.connect({first.address(), second.address()});
  ProbeOrder order;
  order.wait_limit = 0.05;
  bool named = false;
  try {
    static_cast<void>(first.run(order));
  } catch (const WaitTimeout& error) {
    named = error.blocks().at(0).record.from_pe == 1;
  }
  CHECK(named);
}

TEST(leave_ends_a_probe_that_waits) {
  CpuProber first(2, 1, 1 << 12, 0);
  CpuProber second(2, 1, 1 << 12, 1);
  first.connect({first.address(), second.address()});
  bool ended = false;
  {
    std::jthread other([&] { first.leave(); });
    try {
      static_cast<void>(first.run(ProbeOrder{}));
    } catch (const WaitTimeout&) {
      ended = true;
    }
  }
  CHECK(ended);
}

TEST(orders_that_cannot_be_measured_are_refused) {
  CpuProber prober(2, 1, 1 << 12);
  const auto refuses = [&](ProbeWay way, ProbeMode mode, std::int64_t bytes, int messages = 1) {
    return refused([&] { prober.run({way, mode, bytes, messages, 1, 0, 1, 60.0}); });
  };
  CHECK(refuses(ProbeWay::store_block, ProbeMode::single, 7));
  CHECK(refuses(ProbeWay::store_block, ProbeMode::single, 0));
  CHECK(refuses(ProbeWay::store_block, ProbeMode::single, 8, 2));
  CHECK(refuses(ProbeWay::store_block, ProbeMode::window, 1 << 12, 2));
  CHECK(refuses(ProbeWay::get, ProbeMode::send, 8));
  CHECK(refuses(ProbeWay::packets, ProbeMode::receive, 8));
  CHECK(refuses(ProbeWay::store_block, ProbeMode::allreduce, 24));
  CHECK(refused([] { CpuProber(3, 1, 64).run(ProbeOrder{}); }));
}

TEST(threads_time_every_pattern) {
  CpuProber prober(4, 1, 1 << 14);
  for (const PatternOrder& order : {pattern_rig::ring(4, 56, 3), pattern_rig::many_to_one(4, 3),
                                    pattern_rig::product(8, false, false, false, 3),
                                    pattern_rig::product(8, true, false, false, 3)}) {
    const PatternTimes seconds = prober.run(order);
    CHECK_EQ(seconds.size(), std::size_t{2 * 4 * 3});
    CHECK(all_positive({seconds.begin(), seconds.begin() + 12}));
  }
}

TEST(a_second_block_moves_tiles) {
  CpuProber prober(4, 2, 1 << 14);
  for (const bool puts : {false, true})
    CHECK(prober.run(pattern_rig::product(8, puts, true, false, 2)).front() > 0.0);
  // It has nothing to do where nothing is to overlap.
  CHECK(prober.run(pattern_rig::product(8, false, false, false, 2)).front() > 0.0);
}

TEST(patterns_that_cannot_be_measured_are_refused) {
  const auto refuses = [&](int pes, const PatternOrder& order) {
    return refused([&] { CpuProber(pes, 1, 1 << 12).run(order); });
  };
  CHECK(refuses(3, pattern_rig::product(4, false, false, false, 1)));   // no square
  CHECK(refuses(4, pattern_rig::product(64, false, false, false, 1)));  // no room
  CHECK(refuses(4, pattern_rig::product(4, false, true, false, 1)));    // one block
  CHECK(refuses(4, pattern_rig::product(4, false, false, false, 0)));   // no repeat
  CHECK(refuses(4, pattern_rig::ring(3, 8, 1)));                        // another table
  CHECK(refuses(3, pattern_rig::ring(3, 9, 1)));                        // no whole value
  CHECK(refuses(3, pattern_rig::ring(3, 1 << 14, 1)));                  // no room
  CHECK(refuses(1, pattern_rig::ring(1, 8, 1)));                        // to itself
}
