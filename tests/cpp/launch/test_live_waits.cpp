// What hosts read of waits while kernels run.
#include <vector>

#include "cpufree/engines/cpu_threads/atomic.hpp"
#include "cpufree/launch/live_waits.hpp"
#include "cpufree/trace/record.hpp"
#include "harness.hpp"

using namespace cpufree;

namespace {

using Reports = std::vector<std::vector<BlockReport>>;

// Looks that a wait has stood long for, however short.
TraceSpec hearing(Reports& heard) {
  TraceSpec spec;
  spec.heard = [&heard](const auto& blocks) { heard.push_back(blocks); };
  spec.after = 1e-9;
  return spec;
}

void publish(Published& to, std::uint64_t number, BlockState state, int peer, int block,
             Channel channel, Epoch want) {
  cpu_threads::store_flag(to.body,
                          trace_body(trace_site(block, static_cast<std::uint32_t>(channel)), want));
  cpu_threads::store_flag(to.state, published_state(number, state, peer));
}

TEST(waits_are_told_while_they_last) {
  std::vector<Published> told(4);
  Reports heard;
  const TraceShape shape = TraceShape::of(2, 2, 1, 1, 64, kAllTraceKinds);
  LiveWaits live(hearing(heard), shape, 3, {{told.data(), nullptr}, {told.data() + 2, nullptr}});
  live.look();
  CHECK(heard.empty());
  publish(told[0], 1, BlockState::waiting, 4, 1, Channel::reduction, 7);
  publish(told[1], 0, BlockState::running, 0, 0, Channel::reduction, 0);
  publish(told[3], 0, BlockState::finished, 0, 0, Channel::reduction, 0);
  live.look();
  live.look();
  CHECK_EQ(heard.size(), std::size_t{1});
  const std::vector<BlockReport>& blocks = heard.back();
  CHECK_EQ(blocks.size(), std::size_t{4});
  CHECK_EQ(blocks[0].pe, 3);
  CHECK_EQ(blocks[3].pe, 4);
  CHECK(blocks[0].record.state == BlockState::waiting);
  CHECK(blocks[0].record.channel == Channel::reduction);
  CHECK_EQ(blocks[0].record.from_pe, 4);
  CHECK_EQ(blocks[0].record.from_block, 1);
  CHECK_EQ(blocks[0].record.want, Epoch{7});
  CHECK(blocks[1].record.state == BlockState::running);
  CHECK(blocks[2].record.state == BlockState::absent);
  CHECK(blocks[3].record.state == BlockState::finished);
  publish(told[0], 2, BlockState::running, 0, 0, Channel::reduction, 0);
  live.look();
  CHECK_EQ(heard.size(), std::size_t{1});  // the wait has ended
}

TEST(numbers_of_a_trace_are_checked) {
  const auto refused = [](auto&& change) {
    TraceSpec spec;
    change(spec);
    try {
      check(spec);
    } catch (const InvalidInput&) {
      return true;
    }
    return false;
  };
  CHECK(!refused([](TraceSpec&) {}));
  CHECK(refused([](TraceSpec& s) { s.events = 3; }));
  CHECK(refused([](TraceSpec& s) { s.every = 0; }));
  CHECK(refused([](TraceSpec& s) { s.after = 0.0; }));
}

}  // namespace
