// PEs on CPU threads with triggered operations: symmetric buffers, NICs of a chosen back end, and
// kernels that run small programs. Kernels may be launched before, after or between posts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpufree/trace/host_trace.hpp"
#include "cpufree/triggered/device/triggered.hpp"
#include "cpufree/triggered/nics/nics.hpp"

namespace cpufree::triggered {

// Makes the NICs of a back end.
using MakeNics = std::function<std::unique_ptr<nics::Nics>(const nics::NicsConfig&)>;

struct DomainConfig {
  TriggerSizes sizes;
  std::size_t bytes = 0;  // of buffers, on each PE
  double wait_limit = 60.0;
  bool times = false;
  std::int64_t trace_events = 0;  // that the ring of a block, or of a NIC, holds; 0: not traced
};

// One step of a block's program. Places are offsets into symmetric memory.
struct Step {
  enum class Kind : std::uint32_t {
    store,        // values[first, first + count) to doubles at `place`
    copy,         // `count` doubles from `from` to `place`
    add,          // the same, added to what is there
    trigger,      // `tag` at the NIC of `pe`, with `fields`
    wait_done,    // local completion of `tag`
    wait_signal,  // `number` has reached tag.epoch; `pe` is named where it does not come
    next_arrival  // the next entry of the queue from `pe`; one block of a PE reads it
  };
  Kind kind = Kind::store;
  TriggerTag tag;
  TriggerFields fields;
  std::int32_t pe = 0;
  std::int32_t number = 0;
  std::uint64_t place = 0;
  std::uint64_t from = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::uint64_t bytes[2] = {};  // of a trigger: of the source and the target that it supplies
};

// The programs of a launch: steps of block b of PE q at q * blocks + b.
struct Program {
  std::vector<std::vector<Step>> blocks;
  std::vector<double> values;
};

// A wait that was given up.
struct LostWait {
  int pe = 0;
  int block = 0;
  WaitRecord record;
};

struct Outcome {
  std::vector<LostWait> waits;                    // empty: all blocks came to their ends
  nics::NicReport report;                         // where there are waits: what the NICs had seen
  std::vector<std::vector<TriggerTag>> arrivals;  // that each block took from queues, in its order
  double seconds = 0.0;
};

// What became of waits, and why: a line each.
std::string describe(const Outcome& outcome);

// Throws InvalidInput where a program has no sense with these NICs, whose buffers and operations it
// names; they remember what its triggers will supply.
void check(const Program& program, const DomainConfig& config, nics::Nics& nics);
// The same for the sizes of a domain.
void check(const TriggerSizes& sizes);
// The same for what the cores of this machine can serve, where PEs are groups of CPU threads.
void check_cores(int pes, int blocks);

class Domain {
 public:
  Domain(const DomainConfig& config, const MakeNics& make);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  // Reserves and registers `bytes` of zeros on all PEs; returns the offset. Throws InvalidInput
  // where there is no such room.
  std::uint64_t add_buffer(const std::string& name, std::uint64_t bytes);
  void remove_buffer(const std::string& name);
  std::byte* memory(int pe, std::uint64_t offset) const;

  void post(int pe, const TriggerOperation& operation) { nics_->post(pe, operation); }

  // Runs a program to its end, or until a wait is given up: then the domain is closed. `look` is
  // called now and then; what it throws ends the kernels and passes.
  Outcome run(const Program& program, const std::function<void()>& look);

  // Ends the NICs. Operations that have not fired are in the report. May be called again.
  const nics::NicReport& close();
  const std::vector<nics::Firing>& firings(int pe) const { return nics_->firings(pe); }
  // What the blocks of all runs and the NICs have done, once it is closed. Throws InvalidInput
  // where that is not recorded.
  TraceReport trace() const;
  const DomainConfig& config() const { return config_; }

 private:
  struct Memory;

  DomainConfig config_;
  std::unique_ptr<Memory> memory_;
  std::optional<HostTrace> trace_;  // outlives the NICs
  std::unique_ptr<nics::Nics> nics_;
  std::vector<Epoch> sent_;   // packets of block (q, b) to NIC n: at (q * blocks + b) * pes + n
  std::vector<Epoch> taken_;  // entries of the queue from q that PE p has read: at p * pes + q
  bool closed_ = false;
  nics::NicReport report_;
};

}  // namespace cpufree::triggered
