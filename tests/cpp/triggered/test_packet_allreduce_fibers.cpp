// All-reduces of vectors by packets, under random schedules and with packets that come in any
// order: all PEs get the bits of one sum, all-reduce after all-reduce.
#include <vector>

#include "cpufree/triggered/device/packet_allreduce.hpp"
#include "harness.hpp"
#include "warp_rig.hpp"

using namespace cpufree;

namespace {

constexpr std::uint32_t kEpochs = 4;
constexpr int kThreads = 64;

template <class T>
T value(int pe, std::int64_t k, std::uint32_t epoch) {
  return static_cast<T>(1.0 / static_cast<double>(1 + pe + 3 * k) + 0.1 * epoch + 7.0 * pe);
}
template <class T>
T expected(int pes, std::int64_t k, std::uint32_t epoch) {
  T total = value<T>(0, k, epoch);
  for (int pe = 1; pe < pes; ++pe) total = total + value<T>(pe, k, epoch);
  return total;
}

// Sums that differ from those expected; -1: a wait was given up. Threads write and read values that
// they do not sum.
template <class T>
std::int64_t wrong_sums(const VectorSchedule& schedule, std::uint64_t seed,
                        warp_rig::Mishap* mishap = nullptr) {
  SymmetricLayout layout;
  const auto values = layout.reserve<T>(static_cast<std::size_t>(schedule.count));
  const auto inbox = layout.reserve<typename ValuePacket<T>::Type>(
      static_cast<std::size_t>(packet_inbox<T>(schedule)));
  struct alignas(16) Chunk {
    std::byte bytes[16];
  };
  std::vector<std::vector<Chunk>> memory;
  std::vector<std::byte*> heaps;
  for (int pe = 0; pe < schedule.pes; ++pe) {
    memory.emplace_back(layout.bytes() / sizeof(Chunk) + 1);
    heaps.push_back(memory.back().data()->bytes);
  }
  std::int64_t wrong = 0;
  const bool ended = warp_rig::run(
      schedule.pes, schedule.blocks, kThreads, 16, heaps.data(), seed,
      [&](warp_rig::Port& port, int pe) {
        std::byte* const heap = heaps[static_cast<std::size_t>(pe)];
        const PacketReduceArgs<T> args{schedule, values.at(heap), inbox.at(heap)};
        PacketAllReduce<warp_rig::Port, T> reduce(port, args);
        const std::int64_t begin = schedule.part(port.block());
        const std::int64_t end = schedule.part(port.block() + 1);
        for (std::uint32_t e = 0; e < kEpochs; ++e) {
          for (std::int64_t k = begin + port.lane(); k < end; k += kThreads)
            args.values[k] = value<T>(pe, k, e);
          if (!reduce.sum()) return;
          for (std::int64_t k = end - 1 - port.lane(); k >= begin; k -= kThreads)
            wrong += args.values[k] == expected<T>(schedule.pes, k, e) ? 0 : 1;
          port.sync_block();
        }
      },
      mishap);
  return ended ? wrong : -1;
}

template <class T>
void check_sizes() {
  const auto n = static_cast<std::uint64_t>(harness::schedules(6, 200));
  for (std::uint64_t seed = 0; seed < n; ++seed) {
    CHECK_EQ(wrong_sums<T>({ReduceWay::packets, 1, 2, 50}, seed), 0);
    CHECK_EQ(wrong_sums<T>({ReduceWay::packets, 2, 2, 101}, seed), 0);
    CHECK_EQ(wrong_sums<T>({ReduceWay::packets, 3, 1, 1000}, seed), 0);  // several a thread
    CHECK_EQ(wrong_sums<T>({ReduceWay::packets, 4, 3, 2}, seed), 0);     // blocks without values
  }
}

}  // namespace

TEST(floats_are_summed_by_packets) { check_sizes<float>(); }
TEST(doubles_are_summed_by_packets) { check_sizes<double>(); }

TEST(a_packet_that_is_lost_ends_the_wait_and_names_its_sender) {
  // The third packet of thread 5 of PE 1.
  warp_rig::Mishap mishap{{cpu_fibers::Fault::Kind::drop_signal, 1, 5, 2}, 300'000};
  CHECK_EQ(wrong_sums<float>({ReduceWay::packets, 2, 1, 100}, 1, &mishap), -1);
  bool named = false;
  for (const WaitRecord& record : mishap.records)
    named =
        named || (record.waited() && record.channel == Channel::reduction && record.from_pe == 1);
  CHECK(named);
}
