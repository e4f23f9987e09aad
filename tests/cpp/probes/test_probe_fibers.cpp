// The protocols of probes under many schedules, with one thread in a block and with several.
#include <algorithm>
#include <vector>

#include "cpufree/engines/cpu_fibers/port.hpp"
#include "harness.hpp"
#include "probe_rig.hpp"
#include "warp_rig.hpp"

using namespace cpufree;
using probe_rig::Rig;

namespace {

constexpr int kSeeds = 25;

struct Found {
  bool ended = false;
  std::int64_t wrong = 0;
  int timed = 0;
  std::vector<WaitRecord> records;
};

Found run(int pes, int blocks, const ProbeOrder& order, std::uint64_t seed,
          const cpu_fibers::Fault& fault = {}) {
  Rig rig(pes, blocks, 1, order);
  cpu_fibers::Machine machine({pes, blocks, rig.heaps(), seed, fault}, [&](int pe, int block) {
    cpu_fibers::Port port(machine, pe, block);
    rig.run(port);
  });
  const bool ended = machine.run();
  return {ended, rig.wrong(), rig.timed(), machine.records()};
}

ProbeOrder order_of(ProbeWay way, ProbeMode mode) { return {way, mode, 56, 1, 2, 0, 4, 60.0}; }

}  // namespace

TEST(every_probe_ends_with_all_values_right_under_all_schedules) {
  for (const ProbeOrder& order : probe_rig::orders(2, 1, 3))
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Found found = run(2, 1, order, seed);
      CHECK(found.ended);
      CHECK_EQ(found.wrong, std::int64_t{0});
      CHECK_EQ(found.timed, 3);
    }
}

TEST(pairs_and_blocks_exchange_at_the_same_time) {
  for (const ProbeOrder& order : probe_rig::orders(2, 0, 2)) {
    const Found found = run(4, 2, order, 7);
    CHECK(found.ended);
    CHECK_EQ(found.wrong, std::int64_t{0});
    CHECK_EQ(found.timed, 2);
  }
}

TEST(blocks_of_many_threads_exchange_right_under_all_schedules) {
  for (const ProbeOrder& order : probe_rig::orders(1, 0, 2))
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Rig rig(2, 1, 64, order);
      const bool ended = warp_rig::run(2, 1, 64, 0, rig.heaps(), seed,
                                       [&](warp_rig::Port& port, int) { rig.run(port); });
      CHECK(ended);
      CHECK_EQ(rig.wrong(), std::int64_t{0});
      CHECK_EQ(rig.timed(), 2);
    }
}

TEST(stores_without_a_publish_arrive_wrong_under_some_schedule) {
  for (const ProbeMode mode : {ProbeMode::single, ProbeMode::send, ProbeMode::receive}) {
    std::int64_t wrong = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed)
      for (const int pe : {0, 1})
        wrong += run(2, 1, order_of(ProbeWay::store_block, mode), seed,
                     {cpu_fibers::Fault::Kind::skip_publish, pe, 0, 0})
                     .wrong;
    CHECK(wrong > 0);
  }
}

TEST(gets_without_a_publish_are_wrong_under_some_schedule) {
  std::int64_t wrong = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    wrong += run(2, 1, order_of(ProbeWay::get, ProbeMode::single), seed,
                 {cpu_fibers::Fault::Kind::skip_publish, 1, 0, 0})
                 .wrong;
  CHECK(wrong > 0);
}

TEST(a_lost_message_ends_the_probe_and_names_who_was_waited_for) {
  for (const ProbeWay way : {ProbeWay::store_block, ProbeWay::packets, ProbeWay::get}) {
    const Found found = run(2, 1, order_of(way, ProbeMode::single), 3,
                            {cpu_fibers::Fault::Kind::drop_signal, 1, 0, 1});
    CHECK(!found.ended);
    CHECK_EQ(found.records[0].from_pe, 1);
    CHECK(found.timed < 4);
  }
}

TEST(a_repeated_message_does_no_harm) {
  for (const ProbeWay way : {ProbeWay::store_block, ProbeWay::packets, ProbeWay::get})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Found found = run(2, 1, order_of(way, ProbeMode::single), seed,
                              {cpu_fibers::Fault::Kind::repeat_signal, 0, 0, 1});
      CHECK(found.ended);
      CHECK_EQ(found.wrong, std::int64_t{0});
    }
}
