// Jacobi iterations on strips whose blocks have several threads, as on GPUs: rows go from block to
// block, each computed and sent by all threads of a block.
#include <vector>

#include "cpufree/reference/jacobi.hpp"
#include "cpufree/triggered/device/triggered_jacobi.hpp"
#include "harness.hpp"
#include "warp_rig.hpp"

using namespace cpufree;

namespace {

constexpr int kBlocks = 3, kThreads = 64;
constexpr std::int64_t kRows = 12;
constexpr std::int32_t kColumns = 70;  // more than threads
constexpr std::uint32_t kIterations = 5;

double start_value(std::int64_t i) { return static_cast<double>((i * 2654435761U) % 1000) / 7.0; }

// Values that differ from those of the reference after a run under one schedule; -1: it hung.
std::int64_t wrong_values(std::uint64_t seed, const std::vector<double>& expected) {
  const StripShape shape{kRows, kColumns, 1, kBlocks};
  SymmetricLayout layout;
  const auto values = layout.reserve<double>(static_cast<std::size_t>(shape.values()));
  const auto signals = layout.reserve<Flag>(2 * kBlocks);
  std::vector<double> memory(layout.bytes() / sizeof(double) + 1, 0.0);
  auto* const heap = reinterpret_cast<std::byte*>(memory.data());
  for (int block = 0; block < kBlocks; ++block)
    for (std::int64_t row = shape.first(block) - 1; row <= shape.first(block + 1); ++row)
      for (int parity = 0; parity < 2; ++parity)
        for (std::int32_t x = 0; x < kColumns; ++x)
          values.at(heap)[shape.place(block, parity, row - shape.first(block)) + x] =
              start_value(row * kColumns + x);
  TriggerBoard board;
  board.heap = heap;
  board.signals = signals.at(heap);
  board.blocks = kBlocks;
  board.signal_count = 2 * kBlocks;
  std::byte* const heaps[] = {heap};
  const bool ended =
      warp_rig::run(1, kBlocks, kThreads, 16, heaps, seed, [&](warp_rig::Port& port, int pe) {
        Triggers<warp_rig::Port> triggers(port, board, pe);
        const TriggeredJacobiArgs<double> args{shape, values.at(heap), kIterations};
        TriggeredJacobi<warp_rig::Port, double>(port, board, triggers, args).run();
      });
  if (!ended) return -1;
  std::int64_t wrong = 0;
  const int parity = static_cast<int>((kIterations + 1) % 2);
  for (int block = 0; block < kBlocks; ++block)
    for (std::int64_t row = shape.first(block); row < shape.first(block + 1); ++row)
      for (std::int32_t x = 0; x < kColumns; ++x)
        wrong += values.at(heap)[shape.place(block, parity, row - shape.first(block)) + x] ==
                         expected[static_cast<std::size_t>(row * kColumns + x)]
                     ? 0
                     : 1;
  return wrong;
}

}  // namespace

TEST(rows_are_sent_after_all_threads_have_computed_them) {
  std::vector<double> u;
  for (std::int64_t k = 0; k < kRows * kColumns; ++k) u.push_back(start_value(k));
  Grid grid;
  grid.n[0] = kRows;
  grid.n[2] = kColumns;
  const std::vector<double> expected =
      reference::jacobi(u, static_cast<const double*>(nullptr), grid, kIterations);
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(harness::schedules(10, 200));
       ++seed)
    CHECK_EQ(wrong_values(seed, expected), 0);
}
