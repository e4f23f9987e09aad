// Channels among threads: right under stress, bounded when a thread fails.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cpufree/device/allreduce.hpp"
#include "cpufree/device/block.hpp"
#include "cpufree/device/channel.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "harness.hpp"

using namespace cpufree;
using cpu_threads::Launch;
using cpu_threads::LaunchConfig;
using ThreadPort = cpu_threads::Port;

namespace {

constexpr int kEpochs = harness::shorter(3'000, 300);

// All blocks of all PEs next to one another in a ring of PEs: each PE awaits all blocks of both
// neighbours.
struct Ring {
  int pes, blocks;
  SymmetricLayout layout;
  Symmetric<Flag> flags;
  Symmetric<Packet> slots;
  Symmetric<std::int64_t> ghosts[2];  // two parities: blocks entries from either side
  std::vector<std::vector<std::int32_t>> notify, await;
  std::vector<std::int32_t> here;  // all blocks of a PE
  std::unique_ptr<cpu_threads::SymmetricHeaps> heaps;

  Ring(int pes_, int blocks_) : pes(pes_), blocks(blocks_) {
    flags = layout.reserve<Flag>(static_cast<std::size_t>(pes * blocks));
    slots = layout.reserve<Packet>(static_cast<std::size_t>(reduce_slot_count(pes, blocks)));
    for (auto& g : ghosts) g = layout.reserve<std::int64_t>(static_cast<std::size_t>(pes * blocks));
    heaps = std::make_unique<cpu_threads::SymmetricHeaps>(pes, layout.bytes());
    for (int b = 0; b < blocks; ++b) here.push_back(b);
    for (int pe = 0; pe < pes; ++pe) {
      std::vector<std::int32_t> sides;
      for (int other : {(pe + 1) % pes, (pe + pes - 1) % pes})
        if (other != pe && (sides.empty() || sides[0] != other)) sides.push_back(other);
      std::vector<std::int32_t> from;
      for (const auto side : sides)
        for (int b = 0; b < blocks; ++b) from.push_back(side * blocks + b);
      notify.push_back(sides);
      await.push_back(from);
    }
  }
  ArrivalBoard board(int pe) const {
    const auto k = static_cast<std::size_t>(pe);
    return {flags.at(heaps->base(pe)),
            notify[k].data(),
            await[k].data(),
            here.data(),
            static_cast<std::int32_t>(notify[k].size()),
            static_cast<std::int32_t>(await[k].size()),
            static_cast<std::int32_t>(here.size())};
  }
  LaunchConfig config(double seconds) const {
    LaunchConfig c;
    c.pes = pes;
    c.blocks = blocks;
    c.heaps = heaps->bases();
    c.wait_limit = std::chrono::milliseconds(static_cast<int>(1000 * seconds));
    return c;
  }
};

// Every block puts the epoch into its neighbours' ghosts and expects theirs. Two vectors in turn.
std::int64_t wrong_ghosts(Ring& ring, int epochs) {
  std::atomic<std::int64_t> wrong = 0;
  Launch launch(ring.config(300.0), [&](ThreadPort& port) {
    const ArrivalBoard board = ring.board(port.pe());
    Arrivals<ThreadPort> arrivals(port, board);
    const int me = port.pe() * port.blocks() + port.block();
    for (std::int64_t e = 1; e <= epochs; ++e) {
      auto* ghosts = ring.ghosts[e % 2].at(ring.heaps->base(port.pe()));
      arrivals.begin();
      for (int k = 0; k < board.notify_count; ++k) port.put(ghosts + me, board.notify[k], e);
      arrivals.arrive_remote();
      arrivals.arrive_local();
      if (!arrivals.wait_local() || !arrivals.wait_halo()) return;
      for (int k = 0; k < board.await_count; ++k) wrong += ghosts[board.await[k]] == e ? 0 : 1;
    }
  });
  while (!launch.wait_for(std::chrono::milliseconds(1000))) {
  }
  CHECK(!launch.gave_up());
  return wrong;
}

}  // namespace

TEST(ghosts_of_an_exchange_are_those_of_its_epoch) {
  for (const auto& [pes, blocks] : {std::pair{2, 1}, {3, 2}, {8, 4}}) {
    Ring ring(pes, blocks);
    CHECK_EQ(wrong_ghosts(ring, pes == 8 ? kEpochs / 10 : kEpochs), 0);
  }
}

TEST(allreduce_gives_every_block_the_same_exact_sum_every_time) {
  for (const auto& [pes, blocks] : {std::pair{1, 1}, {1, 3}, {2, 2}, {8, 4}}) {
    Ring ring(pes, blocks);
    std::atomic<int> wrong = 0;
    const int epochs = pes == 8 ? kEpochs / 10 : kEpochs;
    Launch launch(ring.config(300.0), [&](ThreadPort& port) {
      AllReduce<ThreadPort> reduce(port, ring.slots.at(ring.heaps->base(port.pe())));
      const int me = port.pe() * port.blocks() + port.block();
      const int all = port.pes() * port.blocks();
      for (int e = 1; e <= epochs; ++e) {
        double partial[3] = {1.0 * me, 1.0 * e, 1.0};
        double total[3];
        unsigned notes = 0;
        reduce.push(partial);
        if (!reduce.pull(total, notes, false)) return;
        if (total[0] != all * (all - 1) / 2.0 || total[1] != 1.0 * e * all || total[2] != all)
          ++wrong;
      }
    });
    while (!launch.wait_for(std::chrono::milliseconds(1000))) {
    }
    CHECK(!launch.gave_up());
    CHECK_EQ(wrong.load(), 0);
  }
}

TEST(notes_of_the_host_reach_every_block_in_the_same_epoch) {
  Ring ring(3, 2);
  std::vector<std::int64_t> heard(6, -1);
  Launch launch(ring.config(300.0), [&](ThreadPort& port) {
    AllReduce<ThreadPort> reduce(port, ring.slots.at(ring.heaps->base(port.pe())));
    unsigned notes = 0;
    for (std::int64_t e = 1; notes == 0; ++e) {
      double one[1] = {1.0};
      double total[1];
      reduce.push(one);
      if (!reduce.pull(total, notes, false)) return;
      if (notes != 0) heard[static_cast<std::size_t>(port.pe() * 2 + port.block())] = e;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  launch.note(kNoteInterrupt);
  while (!launch.wait_for(std::chrono::milliseconds(1000))) {
  }
  for (const auto e : heard) CHECK_EQ(e, heard[0]);
  CHECK(heard[0] > 0);
}

TEST(block_that_leaves_early_is_named) {
  Ring ring(3, 2);
  std::atomic<int> pushed{0};
  Launch launch(ring.config(0.2), [&](ThreadPort& port) {
    if (port.pe() == 1 && port.block() == 1) return;
    AllReduce<ThreadPort> reduce(port, ring.slots.at(ring.heaps->base(port.pe())));
    double one[1] = {1.0};
    double total[1];
    unsigned notes = 0;
    reduce.push(one);
    ++pushed;
    // Else one that has yet to push could be missed. Each of these waits is too short to be given
    // up.
    while (pushed < 5) {
      auto wait = port.start_wait();
      for (int look = 0; look < 1000 && pushed < 5; ++look)
        static_cast<void>(port.keep_waiting(wait));
    }
    static_cast<void>(reduce.pull(total, notes, false));
  });
  while (!launch.wait_for(std::chrono::milliseconds(1000))) {
  }
  CHECK(launch.gave_up());
  int waiting = 0;
  for (const WaitRecord& r : launch.records()) {
    if (r.state != BlockState::expired && r.state != BlockState::aborted) continue;
    ++waiting;
    CHECK_EQ(r.from_pe, 1);
    CHECK_EQ(r.from_block, 1);
    CHECK(r.channel == Channel::reduction);
    CHECK_EQ(r.want, Epoch{1});
    CHECK_EQ(r.seen, Epoch{0});
  }
  CHECK_EQ(waiting, 5);
}

TEST(destroying_a_launch_ends_blocks_that_wait_for_ever) {
  Ring ring(2, 1);
  std::atomic<int> ended{0};
  {
    Launch launch(ring.config(1e5), [&](ThreadPort& port) {
      const ArrivalBoard board = ring.board(port.pe());
      Arrivals<ThreadPort> arrivals(port, board);
      if (port.pe() == 0) return;
      arrivals.begin();
      ended += arrivals.wait_halo() ? 0 : 1;
    });
  }
  CHECK_EQ(ended.load(), 1);
}

TEST(diagnosis_names_the_one_that_all_waited_for) {
  WaitRecord waiting;
  waiting.state = BlockState::expired;
  waiting.channel = Channel::halo_arrival;
  waiting.from_pe = 2;
  waiting.from_block = 0;
  waiting.want = 7;
  waiting.seen = 6;
  WaitRecord gone;
  gone.state = BlockState::finished;
  const std::string text = describe_waits({{0, 0, waiting}, {1, 0, waiting}, {2, 0, gone}});
  CHECK(text.find("block 0 of PE 1 waited") != std::string::npos);
  CHECK(text.find("halo arrival, epoch 7, last seen 6") != std::string::npos);
  CHECK(text.find("not waiting: block 0 of PE 2, which had left its kernel") != std::string::npos);
}

TEST(diagnosis_names_the_one_that_had_waited_itself_for_a_moment_only) {
  WaitRecord waiting;
  waiting.state = BlockState::expired;
  waiting.from_pe = 1;
  waiting.from_block = 0;
  waiting.seconds = 3.0;
  WaitRecord resumed = waiting;
  resumed.state = BlockState::aborted;
  resumed.from_pe = 0;
  resumed.seconds = 0.0;
  const std::string text = describe_waits({{0, 0, waiting}, {1, 0, resumed}, {2, 0, waiting}});
  CHECK(text.find("late: block 0 of PE 1, which had waited itself for only 0.000 s") !=
        std::string::npos);
  CHECK(text.find("block 0 of PE 0, which") == std::string::npos);
  CHECK(text.find("a signal was lost") == std::string::npos);
}

TEST(diagnosis_says_where_all_waited_for_one_another) {
  WaitRecord waiting;
  waiting.state = BlockState::expired;
  waiting.from_pe = 1;
  waiting.from_block = 0;
  waiting.seconds = 3.0;
  WaitRecord other = waiting;
  other.from_pe = 0;
  other.seconds = 2.9;
  const std::string text = describe_waits({{0, 0, waiting}, {1, 0, other}});
  CHECK(text.find("a signal was lost") != std::string::npos);
}

TEST(epochs_compare_safely_across_wrap_around) {
  CHECK(reached(5, 5));
  CHECK(reached(6, 5));
  CHECK(!reached(4, 5));
  CHECK(reached(2, ~Epoch{0} - 3));
  CHECK(!reached(~Epoch{0} - 3, 2));
}
