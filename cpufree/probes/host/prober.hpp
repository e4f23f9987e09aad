// Probes of communication on an engine: how long messages take between its PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/probes/args.hpp"
#include "cpufree/probes/pattern_args.hpp"

namespace cpufree {

// What is to be measured: see ProbeArgs.
struct ProbeOrder {
  ProbeWay way = ProbeWay::store_block;
  ProbeMode mode = ProbeMode::single;
  std::int64_t bytes = 8;  // of a message: a multiple of 8
  int messages = 1;
  int rounds = 1;
  int warm_ups = 0;
  int repeats = 1;
  double wait_limit = 60.0;  // seconds that a PE waits for another
};

// A pattern of messages among all PEs: see PatternArgs.
struct PatternOrder {
  PatternKind kind = PatternKind::exchange;
  std::vector<std::int64_t> bytes;  // of an exchange: from PE p to PE q, at [p * PEs + q]
  int tile = 1;                     // of a product: rows of a tile
  bool puts = false;
  bool overlapped = false;
  bool local = false;
  int warm_ups = 0;
  int repeats = 1;
  double wait_limit = 60.0;
};

// Of each repeat, the seconds of a round, and of that those of waiting and moving tiles: PE after
// PE, first all rounds, then all moves.
using PatternTimes = std::vector<double>;

// Throws InvalidInput for another name.
ProbeWay probe_way_from_name(const std::string& name);
ProbeMode probe_mode_from_name(const std::string& name);

// The symmetric memory of a probe whose windows have up to `bytes` in all, for each block.
class ProbeMemory {
 public:
  ProbeMemory(int pes, int blocks, std::int64_t bytes);

  std::size_t bytes() const { return layout_.bytes(); }
  Flag* leave(std::byte* heap) const { return leave_.at(heap); }
  // What a PE's kernel is told, but for what is private to it. Throws InvalidInput for an order
  // that does not fit, or says nothing that can be measured.
  ProbeArgs args(const ProbeOrder& order, std::byte* heap) const;
  // The same for a pattern, without its table.
  PatternArgs args(const PatternOrder& order, std::byte* heap) const;
  // The table of an exchange: values, then places. Throws InvalidInput where they find no room.
  std::vector<std::int64_t> table(const PatternOrder& order) const;

 private:
  int pes_, blocks_;
  std::int64_t stride_;  // values that each block has room for
  SymmetricLayout layout_;
  Symmetric<Flag> flags_, pattern_flags_, leave_;
  Symmetric<Packet> slots_, packets_;
  Symmetric<double> buffer_;
};

// Seconds of a message, a get, a sum, a window, or a fence, by the ticks of each repeat. Throws
// EngineError where values arrived wrong.
std::vector<double> probe_seconds(const ProbeOrder& order, const std::vector<std::uint64_t>& ticks,
                                  const ProbeClock& clock, const std::vector<std::int64_t>& wrong);

// The same for a pattern: `ticks` and `comm` have those of all repeats of each PE, one after
// another.
PatternTimes pattern_seconds(const std::vector<std::uint64_t>& ticks,
                             const std::vector<std::uint64_t>& comm,
                             const std::vector<ProbeClock>& clocks,
                             const std::vector<std::int64_t>& wrong);

class Prober {
 public:
  virtual ~Prober() = default;
  // Runs an order on all PEs of this process. Returns the seconds of each repeat, by PE 0; nothing
  // where that is in another process. Throws InvalidInput, WaitTimeout, EngineError.
  virtual std::vector<double> run(const ProbeOrder& order) = 0;
  // The same for a pattern; all PEs must be in this process.
  virtual PatternTimes run(const PatternOrder& order) = 0;
};

}  // namespace cpufree
