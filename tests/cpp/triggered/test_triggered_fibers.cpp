// Triggered operations under random schedules and weak memory: each granularity, epochs that re-arm
// themselves, and that each fence is needed.
#include <string>

#include "harness.hpp"
#include "trigger_rig.hpp"

using namespace cpufree;
using namespace trigger_rig;

namespace {

std::uint64_t schedules() { return static_cast<std::uint64_t>(harness::schedules(60, 1000)); }
constexpr std::int64_t kItems = 6;  // of a block
constexpr std::uint32_t kEpochs = 4;
constexpr int kBlocks = 2;

double payload(int pe, std::int64_t item, std::uint32_t epoch) {
  return 1000.0 * (pe + 1) + 10.0 * static_cast<double>(item) + epoch / 16.0;
}

// Two PEs send each other kItems values a block, in each of kEpochs epochs, from and to two buffers
// in turn. Nothing but triggers tells them of one another. Reuse: a block writes its part of a
// source again after `done` of two epochs before. A NIC writes a target of epoch e + 2 when all
// contributors have triggered e + 2; each has then waited for the signals of e + 1 that cover its
// part, whose contributors, those that read the same part here, had read their targets of e.
struct Exchange {
  TriggerGrain grain;
  bool gets;
  TriggerShape shape;
  Symmetric<double> source, target;
  Rig rig;
  std::int64_t wrong = 0;

  explicit Exchange(TriggerGrain g, int depth = 8, bool with_gets = false)
      : grain(g),
        gets(with_gets),
        shape(trigger_shape(g, kBlocks, kItems)),
        rig({2, kBlocks, depth, static_cast<int>(shape.tags), static_cast<int>(shape.tags)},
            [this](SymmetricLayout& layout) {
              source = layout.reserve<double>(2 * kBlocks * kItems);
              target = layout.reserve<double>(2 * kBlocks * kItems);
            }) {}

  std::int64_t items_of_tag() const { return kBlocks * kItems / shape.tags; }

  void post_all(TriggerPosts<WeakPort>& host, int pe) const {
    for (std::int64_t t = 0; t < shape.tags; ++t) {
      TriggerOperation o;
      o.first = {static_cast<std::uint32_t>(t), 0};
      o.epochs = kEpochs;
      o.threshold = static_cast<std::uint64_t>(shape.threshold);
      o.pe = 1 - pe;
      const auto bytes = static_cast<std::uint64_t>(items_of_tag()) * sizeof(double);
      o.bytes = bytes;
      o.source = source.offset + static_cast<std::uint64_t>(t) * bytes;
      o.target = target.offset + static_cast<std::uint64_t>(t) * bytes;
      o.source_step = o.target_step = kBlocks * kItems * sizeof(double);
      o.slots = 2;
      o.signal = static_cast<std::int32_t>(t);
      if (!host.post(o)) return;
    }
  }

  // The first and last tag that cover the block's items.
  std::pair<std::int64_t, std::int64_t> tags_of(int block) const {
    return {block * kItems / items_of_tag(), ((block + 1) * kItems - 1) / items_of_tag()};
  }

  void kernel(WeakPort& port, const TriggerBoard& board) {
    Triggers<WeakPort> triggers(port, board, port.pe());
    const auto [first, last] = tags_of(port.block());
    bool good = true;
    for (std::uint32_t e = 0; good && e < kEpochs; ++e) {
      for (auto t = first; e >= 2 && good && t <= last; ++t)
        good = triggers.wait_done({static_cast<std::uint32_t>(t), e - 2});
      const std::int64_t slot = (e % 2) * kBlocks * kItems;
      for (std::int64_t i = port.block() * kItems; i < (port.block() + 1) * kItems; ++i)
        port.put(rig.mine(source, port.pe()) + slot + i, port.pe(), payload(port.pe(), i, e));
      good = good && triggers.trigger(grain, {0, e}, kItems);
      for (auto t = first; good && t <= last; ++t)
        good = triggers.wait_signal(static_cast<int>(t), e, 1 - port.pe());
      for (std::int64_t i = port.block() * kItems; good && i < (port.block() + 1) * kItems; ++i)
        if (port.read(rig.mine(target, port.pe()) + slot + i) != payload(1 - port.pe(), i, e))
          ++wrong;
    }
    if (good) end_all(port, board, triggers);
  }

  // Schedules that end otherwise than with every payload right; `hung` of them by a wait given up.
  int bad_schedules(std::uint64_t schedules, int& hung, Dropped dropped = {}) {
    int bad = 0;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      wrong = 0;
      const bool ended = rig.run(
          seed, [&](auto& host, int pe) { post_all(host, pe); },
          [&](WeakPort& port, const TriggerBoard& board) { kernel(port, board); }, dropped);
      hung += ended ? 0 : 1;
      bad += ended && wrong == 0 ? 0 : 1;
      const auto firings = static_cast<std::size_t>(shape.tags) * kEpochs;
      if (ended && dropped.fence == Fence::none)
        for (int pe = 0; pe < 2; ++pe)
          bad += rig.movers[static_cast<std::size_t>(pe)].firings.size() == firings &&
                         rig.tables[static_cast<std::size_t>(pe)]->fault_count() == 0
                     ? 0
                     : 1;
    }
    return bad;
  }
  int bad_schedules(std::uint64_t schedules) {
    int hung = 0;
    return bad_schedules(schedules, hung);
  }
};

// Schedules in which a wrong payload was delivered, and nothing hung.
int wrong_payloads(Dropped dropped) {
  Exchange exchange(TriggerGrain::group);
  int hung = 0;
  const int bad = exchange.bad_schedules(60, hung, dropped);
  CHECK_EQ(hung, 0);
  return bad;
}

}  // namespace

TEST(each_work_item_triggers_a_put_of_its_own) {
  CHECK_EQ(Exchange(TriggerGrain::item).bad_schedules(schedules()), 0);
}

TEST(pairs_of_work_items_share_a_put) {
  CHECK_EQ(Exchange(TriggerGrain::pair).bad_schedules(schedules()), 0);
}

TEST(each_work_group_triggers_a_put_of_its_own) {
  CHECK_EQ(Exchange(TriggerGrain::group).bad_schedules(schedules()), 0);
}

TEST(work_groups_of_the_kernel_share_a_put) {
  CHECK_EQ(Exchange(TriggerGrain::kernel).bad_schedules(schedules()), 0);
}

TEST(all_items_of_a_group_trigger_without_a_branch) {
  CHECK_EQ(Exchange(TriggerGrain::uniform_group).bad_schedules(schedules()), 0);
}

TEST(all_items_of_the_kernel_trigger_without_a_branch) {
  CHECK_EQ(Exchange(TriggerGrain::uniform_kernel).bad_schedules(schedules()), 0);
}

TEST(triggers_wait_for_room_in_a_ring_of_two) {
  CHECK_EQ(Exchange(TriggerGrain::item, 2).bad_schedules(schedules()), 0);
}

TEST(triggers_wait_for_room_in_a_small_table_and_posts_pass_them) {
  Exchange exchange(TriggerGrain::item);
  exchange.rig.early = 1;
  exchange.rig.live = static_cast<int>(exchange.shape.tags);
  CHECK_EQ(exchange.bad_schedules(schedules()), 0);
}

TEST(without_release_before_a_trigger_payloads_are_wrong) {
  CHECK(wrong_payloads({Role::kernel, Fence::publish}) > 0);
}

TEST(without_acquire_by_the_nic_payloads_are_wrong) {
  CHECK(wrong_payloads({Role::nic, Fence::acquire}) > 0);
}

TEST(without_release_by_the_nic_payloads_are_wrong) {
  CHECK(wrong_payloads({Role::nic, Fence::publish}) > 0);
}

TEST(without_acquire_after_a_signal_payloads_are_wrong) {
  CHECK(wrong_payloads({Role::kernel, Fence::acquire}) > 0);
}
