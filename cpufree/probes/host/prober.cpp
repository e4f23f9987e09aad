#include "cpufree/probes/host/prober.hpp"

#include <algorithm>
#include <numeric>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/device/allreduce.hpp"

namespace cpufree {

namespace {

template <class T, std::size_t N>
T by_name(const char* const (&names)[N], const std::string& name, const char* what) {
  std::string known;
  for (std::size_t k = 0; k < N; ++k) {
    if (name == names[k]) return static_cast<T>(k);
    known += (k == 0 ? "" : ", ") + std::string(names[k]);
  }
  throw InvalidInput(std::string(what) + " '" + name + "' is not known: there are " + known);
}

// Exchanges that the ticks of a repeat are divided by.
double parts_of(const ProbeOrder& order) {
  switch (order.mode) {
    case ProbeMode::single:
      return order.way == ProbeWay::get ? order.rounds : 2.0 * order.rounds;
    case ProbeMode::flag:
      return 2.0 * order.rounds;
    case ProbeMode::allreduce:
      return order.rounds;
    default:
      return 1.0;
  }
}

bool is_sum(std::int64_t values) {
  return values == 1 || values == 2 || values == 4 || values == 8;
}

// Throws EngineError where values arrived wrong.
void require_right(const std::vector<std::int64_t>& wrong) {
  const auto count = std::accumulate(wrong.begin(), wrong.end(), std::int64_t{0});
  if (count > 0)
    throw EngineError(
        std::to_string(count) +
        " values of a probe's messages arrived wrong: this machine does not keep what "
        "was stored in order");
}

// The side of a grid of N PEs, 0 where that is no square.
int side_of(int pes) {
  int side = 1;
  while (side * side < pes) ++side;
  return side * side == pes ? side : 0;
}

}  // namespace

ProbeWay probe_way_from_name(const std::string& name) {
  return by_name<ProbeWay>({"store-thread", "store-warp", "store-block", "bulk", "packets", "get"},
                           name, "a way of messages");
}

ProbeMode probe_mode_from_name(const std::string& name) {
  return by_name<ProbeMode>({"single", "window", "send", "receive", "flag", "allreduce", "fence"},
                            name, "a mode of measurement");
}

ProbeMemory::ProbeMemory(int pes, int blocks, std::int64_t bytes)
    : pes_(pes), blocks_(blocks), stride_(probe_stride(bytes / 8 + 1, 1)) {
  require(pes >= 1, "a probe has one PE at least");
  require(blocks >= 1 && bytes >= 8, "a probe has one block at least, and room for 8 bytes");
  const auto values = at(blocks_) * static_cast<std::size_t>(stride_);
  flags_ = layout_.reserve<Flag>(at(blocks_));
  pattern_flags_ = layout_.reserve<Flag>(static_cast<std::size_t>(pattern_flags(pes)));
  leave_ = layout_.reserve<Flag>(1);
  slots_ = layout_.reserve<Packet>(static_cast<std::size_t>(reduce_slot_count(pes, blocks_)));
  buffer_ = layout_.reserve<double>(values);
  packets_ = layout_.reserve<Packet>(values);
}

ProbeArgs ProbeMemory::args(const ProbeOrder& order, std::byte* heap) const {
  require(pes_ % 2 == 0, "messages are measured between pairs of PEs: give 2, 4, ...");
  require(order.messages >= 1 && order.rounds >= 1 && order.warm_ups >= 0 && order.repeats >= 1,
          "messages, rounds and repeats of a probe are 1 at least");
  require(order.bytes % 8 == 0 && order.bytes >= (order.mode == ProbeMode::fence ? 0 : 8),
          "messages of a probe have whole values of 8 bytes, one at least");
  require(order.mode == ProbeMode::window || order.messages == 1,
          "only windows have several messages");
  require(order.mode != ProbeMode::allreduce || is_sum(order.bytes / 8),
          "sums of 1, 2, 4 or 8 values are measured");
  require(order.mode != ProbeMode::send || order.way != ProbeWay::get, "who gets sends nothing");
  require(order.mode != ProbeMode::receive ||
              (order.way != ProbeWay::get && order.way != ProbeWay::packets),
          "a packet is read where it is awaited: that has no time of its own");
  require(probe_stride(order.bytes / 8, order.messages) <= stride_,
          "messages of " + std::to_string(order.bytes) + " bytes, " +
              std::to_string(order.messages) + " of them, do not fit into the memory of the probe");
  ProbeArgs args;
  args.mode = order.mode;
  args.values = order.bytes / 8;
  args.messages = order.messages;
  args.rounds = order.rounds;
  args.warm_ups = order.warm_ups;
  args.repeats = order.repeats;
  args.flags = flags_.at(heap);
  args.buffer = buffer_.at(heap);
  args.packets = packets_.at(heap);
  args.slots = slots_.at(heap);
  return args;
}

PatternArgs ProbeMemory::args(const PatternOrder& order, std::byte* heap) const {
  require(order.warm_ups >= 0 && order.repeats >= 1, "a pattern has one repeat at least");
  PatternArgs args;
  args.kind = order.kind;
  args.warm_ups = order.warm_ups;
  args.repeats = order.repeats;
  args.flags = pattern_flags_.at(heap);
  args.buffer = buffer_.at(heap);
  if (order.kind == PatternKind::exchange) return args;
  args.side = side_of(pes_);
  require(args.side > 0,
          "a product of matrices needs a square of PEs: 1, 4, 9, 16, not " + std::to_string(pes_));
  require(
      order.tile >= 1 && gemm_values(args.side, order.tile) <= blocks_ * stride_,
      "tiles of " + std::to_string(order.tile) + " rows do not fit into the memory of the probe");
  require(!order.overlapped || blocks_ == 2,
          "to move tiles while others are multiplied takes two blocks");
  args.tile = order.tile;
  args.puts = order.puts;
  args.overlapped = order.overlapped;
  args.local = order.local;
  return args;
}

std::vector<std::int64_t> ProbeMemory::table(const PatternOrder& order) const {
  if (order.kind != PatternKind::exchange) return {};
  const std::size_t edges = at(pes_) * at(pes_);
  require(order.bytes.size() == edges, "an exchange has the bytes from each PE to each PE");
  std::vector<std::int64_t> table(2 * edges);
  for (int to = 0; to < pes_; ++to) {
    std::int64_t place = 0;
    for (int from = 0; from < pes_; ++from) {
      const std::size_t edge = at(from) * at(pes_) + at(to);
      const std::int64_t bytes = order.bytes[edge];
      require(bytes >= 0 && bytes % 8 == 0 && (from != to || bytes == 0),
              "messages of an exchange have whole values of 8 bytes, and go to other PEs");
      table[edge] = bytes / 8;
      table[edges + edge] = place;
      place += (bytes / 8 + 15) / 16 * 16;  // on lines of its own
    }
    require(place <= blocks_ * stride_,
            "what PE " + std::to_string(to) + " gets does not fit into the memory of the probe");
  }
  return table;
}

std::vector<double> probe_seconds(const ProbeOrder& order, const std::vector<std::uint64_t>& ticks,
                                  const ProbeClock& clock, const std::vector<std::int64_t>& wrong) {
  require_right(wrong);
  const double tick = clock.seconds_per_tick();
  std::vector<double> seconds;
  for (const std::uint64_t passed : ticks)  // of a time that the clock cannot tell: a tick
    seconds.push_back(tick * static_cast<double>(passed > clock.look ? passed - clock.look : 1) /
                      parts_of(order));
  return seconds;
}

PatternTimes pattern_seconds(const std::vector<std::uint64_t>& ticks,
                             const std::vector<std::uint64_t>& comm,
                             const std::vector<ProbeClock>& clocks,
                             const std::vector<std::int64_t>& wrong) {
  require_right(wrong);
  PatternTimes seconds;
  const std::size_t repeats = ticks.size() / clocks.size();
  for (const auto* all : {&ticks, &comm})
    for (std::size_t k = 0; k < all->size(); ++k)
      seconds.push_back(clocks[k / repeats].seconds_per_tick() * static_cast<double>((*all)[k]));
  return seconds;
}

}  // namespace cpufree
