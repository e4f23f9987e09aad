// The protocols of patterns under many schedules, with one thread in a block and with several.
#include <vector>

#include "cpufree/engines/cpu_fibers/port.hpp"
#include "harness.hpp"
#include "pattern_rig.hpp"
#include "warp_rig.hpp"

using namespace cpufree;
using namespace pattern_rig;

namespace {

constexpr int kSeeds = 25;

struct Found {
  bool ended = false;
  std::int64_t wrong = 0;
  int timed = 0;
  std::vector<WaitRecord> records;
};

Found run(int pes, const PatternOrder& order, std::uint64_t seed,
          const cpu_fibers::Fault& fault = {}) {
  const int blocks = order.overlapped ? 2 : 1;
  Rig rig(pes, blocks, 1, order);
  cpu_fibers::Machine machine({pes, blocks, rig.heaps(), seed, fault}, [&](int pe, int block) {
    cpu_fibers::Port port(machine, pe, block);
    rig.run(port);
  });
  const bool ended = machine.run();
  return {ended, rig.wrong(), rig.timed(), machine.records()};
}

std::vector<PatternOrder> products() {
  std::vector<PatternOrder> all;
  for (const bool puts : {false, true})
    for (const bool overlapped : {false, true})
      all.push_back(product(3, puts, overlapped, false, 3));
  return all;
}

}  // namespace

TEST(exchanges_end_with_all_values_right_under_all_schedules) {
  for (const PatternOrder& order : {ring(4, 56, 3), many_to_one(4, 3)})
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Found found = run(4, order, seed);
      CHECK(found.ended);
      CHECK_EQ(found.wrong, std::int64_t{0});
      CHECK_EQ(found.timed, 12);
    }
}

TEST(products_are_right_under_all_schedules) {
  for (const PatternOrder& order : products())
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Found found = run(4, order, seed);
      CHECK(found.ended);
      CHECK_EQ(found.wrong, std::int64_t{0});
      CHECK_EQ(found.timed, 12);
    }
}

TEST(products_on_one_and_on_nine_pes_are_right) {
  for (const int pes : {1, 9})
    for (const PatternOrder& order : products()) {
      const Found found = run(pes, order, 5);
      CHECK(found.ended);
      CHECK_EQ(found.wrong, std::int64_t{0});
    }
}

TEST(products_of_own_tiles_move_none) {
  for (const bool overlapped : {false, true}) {
    const Found found = run(4, product(3, false, overlapped, true, 2), 1);
    CHECK(found.ended);
    CHECK_EQ(found.wrong, std::int64_t{0});
  }
}

TEST(blocks_of_many_threads_are_right_under_all_schedules) {
  std::vector<PatternOrder> all = products();
  all.push_back(ring(4, 8 * 100, 2));
  for (const PatternOrder& order : all)
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const int blocks = order.overlapped ? 2 : 1;
      Rig rig(4, blocks, 32, order);
      CHECK(warp_rig::run(4, blocks, 32, 0, rig.heaps(), seed,
                          [&](warp_rig::Port& port, int) { rig.run(port); }));
      CHECK_EQ(rig.wrong(), std::int64_t{0});
    }
}

TEST(stores_without_a_publish_arrive_wrong_under_some_schedule) {
  std::vector<PatternOrder> all = products();
  all.push_back(ring(4, 56, 4));
  for (const PatternOrder& order : all) {
    std::int64_t wrong = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed)
      for (const int block : {0, 1}) {
        if (block == 1 && !order.overlapped) continue;
        wrong += run(4, order, seed, {cpu_fibers::Fault::Kind::skip_publish, 1, block, 0}).wrong;
      }
    CHECK(wrong > 0);
  }
}

TEST(a_lost_message_ends_the_pattern_and_names_who_was_waited_for) {
  const Found found = run(2, ring(2, 56, 3), 3, {cpu_fibers::Fault::Kind::drop_signal, 1, 0, 4});
  CHECK(!found.ended);
  CHECK_EQ(found.records[0].from_pe, 1);
}
