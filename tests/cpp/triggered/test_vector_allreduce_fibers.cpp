// All-reduce of vectors in a kernel, by triggers and by stores, under random schedules: all PEs get
// the bits of one sum, epoch after epoch.
#include <type_traits>

#include "cpufree/triggered/device/vector_allreduce.hpp"
#include "harness.hpp"
#include "trigger_rig.hpp"

using namespace cpufree;
using namespace trigger_rig;

namespace {

constexpr std::uint32_t kEpochs = 4;

template <class T>
T value(int pe, std::int64_t k, std::uint32_t epoch) {
  return static_cast<T>(1.0 / static_cast<double>(1 + pe + 3 * k) + 0.1 * epoch + 7.0 * pe);
}

// The sum in the order of the schedule: from PE 0 on, or along the ring. Chunk c begins at PE c.
template <class T>
T expected(const VectorSchedule& s, std::int64_t k, std::uint32_t epoch) {
  int first = 0;
  if (s.way == ReduceWay::ring)
    for (int b = 0; b < s.blocks; ++b)
      for (int c = 0; c < s.pes; ++c)
        if (k >= s.chunk(b, c) && k < s.chunk(b, c + 1)) first = c;
  T total = value<T>(first, k, epoch);
  for (int j = 1; j < s.pes; ++j) {
    const T next = value<T>((first + j) % s.pes, k, epoch);
    total = total + next;
  }
  return total;
}

template <class T>
struct Case {
  VectorSchedule schedule;
  bool triggers;
  Symmetric<T> values, inbox;
  Rig rig;
  std::int64_t wrong = 0;
  std::int64_t right = 0;

  Case(ReduceWay way, int pes, int blocks, std::int64_t count, bool by_triggers)
      : schedule{way, pes, blocks, count},
        triggers(by_triggers),
        rig({pes, blocks, 8, std::max(1, schedule.operations()), schedule.signals()},
            [this](SymmetricLayout& layout) {
              values = layout.reserve<T>(static_cast<std::size_t>(schedule.count));
              inbox = layout.reserve<T>(static_cast<std::size_t>(schedule.inbox()));
            }) {}

  void post_all(TriggerPosts<WeakPort>& host, int pe) const {
    for (int b = 0; triggers && b < schedule.blocks; ++b)
      for (int k = 0; k < schedule.sends(); ++k)
        if (!host.post(
                operation_of<T>(schedule, pe, b, k, values.offset, inbox.offset, kEpochs, 0, 0)))
          return;
  }

  template <class Transport>
  bool sum_all(WeakPort& port, Transport& transport) {
    const VectorReduceArgs<T> args{schedule, rig.mine(values, port.pe()),
                                   rig.mine(inbox, port.pe())};
    VectorAllReduce<WeakPort, T, Transport> reduce(port, transport, args);
    const std::int64_t begin = schedule.part(port.block()), end = schedule.part(port.block() + 1);
    for (std::uint32_t e = 0; e < kEpochs; ++e) {
      for (std::int64_t k = begin; k < end; ++k) args.values[k] = value<T>(port.pe(), k, e);
      if (!reduce.sum()) return false;
      for (std::int64_t k = begin; k < end; ++k)
        ++(args.values[k] == expected<T>(schedule, k, e) ? right : wrong);
    }
    return true;
  }

  void kernel(WeakPort& port, const TriggerBoard& board) {
    Triggers<WeakPort> own(port, board, port.pe());
    TriggerTransport<WeakPort> by_triggers(own, 0, 0);
    StoreTransport<WeakPort> by_stores(port, board.signals);
    if (triggers ? sum_all(port, by_triggers) : sum_all(port, by_stores)) end_all(port, board, own);
  }

  void check(std::uint64_t schedules) {
    int hung = 0;
    for (std::uint64_t seed = 0; seed < schedules; ++seed)
      hung += rig.run(
                  seed, [&](auto& host, int pe) { post_all(host, pe); },
                  [&](WeakPort& port, const TriggerBoard& board) { kernel(port, board); })
                  ? 0
                  : 1;
    CHECK_EQ(hung, 0);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(right, static_cast<std::int64_t>(schedules) * kEpochs * schedule.pes * schedule.count);
  }
};

template <class T>
void check_sizes(ReduceWay way, bool triggers) {
  const auto n = static_cast<std::uint64_t>(harness::schedules(30, 1000));
  Case<T>(way, 1, 2, 5, triggers).check(n / 10);
  Case<T>(way, 2, 2, 8, triggers).check(n);
  Case<T>(way, 3, 2, 13, triggers).check(n);
  Case<T>(way, 4, 1, 3, triggers).check(n / 3);  // chunks without values
}

}  // namespace

TEST(ring_by_triggers_sums_doubles) { check_sizes<double>(ReduceWay::ring, true); }
TEST(ring_by_stores_sums_doubles) { check_sizes<double>(ReduceWay::ring, false); }
TEST(direct_by_triggers_sums_doubles) { check_sizes<double>(ReduceWay::direct, true); }
TEST(direct_by_stores_sums_doubles) { check_sizes<double>(ReduceWay::direct, false); }
TEST(ring_by_triggers_sums_floats) { check_sizes<float>(ReduceWay::ring, true); }
TEST(ring_by_stores_sums_floats) { check_sizes<float>(ReduceWay::ring, false); }
TEST(direct_by_triggers_sums_floats) { check_sizes<float>(ReduceWay::direct, true); }
TEST(direct_by_stores_sums_floats) { check_sizes<float>(ReduceWay::direct, false); }
