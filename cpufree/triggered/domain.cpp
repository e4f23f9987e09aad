#include "cpufree/triggered/domain.hpp"

#include <algorithm>
#include <cstring>

#include "cpufree/base/cores.hpp"
#include "cpufree/base/error.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/trace/traced.hpp"
#include "cpufree/triggered/buffer_room.hpp"

namespace cpufree::triggered {

namespace {

using Port = cpu_threads::Port;

double* doubles(const TriggerBoard& board, std::uint64_t place) {
  return reinterpret_cast<double*>(board.heap + place);
}

// What of a block outlives a launch.
struct Past {
  Epoch* sent;   // to each NIC
  Epoch* taken;  // from each queue of the PE
  std::vector<TriggerTag>* arrivals;
};

// The program of one block.
template <class P>
class Interpreter {
 public:
  Interpreter(P& port, const TriggerBoard& board, const std::vector<double>& values,
              const Past& past)
      : board_(board), values_(values), past_(past) {
    for (int pe = 0; pe < port.pes(); ++pe) {
      triggers_.emplace_back(port, board_, pe, past.sent[pe]);
      queues_.emplace_back(port, board_, pe, past.taken[pe]);
    }
  }

  void run(const std::vector<Step>& steps) {
    for (const Step& step : steps)
      if (!take(step)) break;
    for (std::size_t pe = 0; pe < triggers_.size(); ++pe) past_.sent[pe] = triggers_[pe].sent();
  }

 private:
  bool take(const Step& step) {
    const auto pe = static_cast<std::size_t>(step.pe);
    switch (step.kind) {
      case Step::Kind::store:
        std::copy_n(values_.data() + step.first, step.count, doubles(board_, step.place));
        return true;
      case Step::Kind::copy:
        std::copy_n(doubles(board_, step.from), step.count, doubles(board_, step.place));
        return true;
      case Step::Kind::add:
        for (std::int64_t k = 0; k < step.count; ++k)
          doubles(board_, step.place)[k] += doubles(board_, step.from)[k];
        return true;
      case Step::Kind::trigger:
        return triggers_[pe].trigger(step.tag, step.fields);
      case Step::Kind::wait_done:
        return triggers_[0].wait_done(step.tag);
      case Step::Kind::wait_signal:
        return triggers_[0].wait_signal(step.number, step.tag.epoch, step.pe);
      default:
        return arrival(step);
    }
  }

  bool arrival(const Step& step) {
    TriggerTag tag;
    TriggerQueue<P>& queue = queues_[static_cast<std::size_t>(step.pe)];
    if (!queue.next(tag)) return false;
    past_.arrivals->push_back(tag);
    past_.taken[step.pe] = queue.taken();
    return true;
  }

  const TriggerBoard board_;
  const std::vector<double>& values_;
  Past past_;
  std::vector<Triggers<P>> triggers_;
  std::vector<TriggerQueue<P>> queues_;
};

}  // namespace

struct Domain::Memory {
  SymmetricLayout layout;
  TriggerLayout triggers;
  Symmetric<std::byte> buffers;
  BufferRoom room;
  cpu_threads::SymmetricHeaps heaps;

  explicit Memory(const DomainConfig& config)
      : triggers(layout, config.sizes),
        buffers(layout.reserve<std::byte>(config.bytes)),
        room(buffers.offset, config.bytes),
        heaps(config.sizes.pes, layout.bytes()) {}
};

std::string describe(const Outcome& outcome) {
  std::string text;
  for (const LostWait& wait : outcome.waits) {
    const WaitRecord& r = wait.record;
    text += "\n  block " + std::to_string(wait.block) + " of PE " + std::to_string(wait.pe) +
            " waited for: " + channel_name(r.channel);
    if (r.channel == Channel::trigger_done) text += ", tag " + std::to_string(r.from_block);
    if (r.channel == Channel::trigger_signal) text += ", signal " + std::to_string(r.from_block);
    text += ", PE " + std::to_string(r.from_pe) + ", epoch " +
            std::to_string(r.want > 0 ? r.want - 1 : 0) + " (" + std::to_string(r.seen) +
            " epochs seen)";
  }
  return text + nics::describe(outcome.report);
}

namespace {

nics::SuppliedPlaces supplied_by(const Step& step) {
  return {step.tag, step.fields, {step.bytes[0], step.bytes[1]}};
}

void check(const Step& step, const Program& program, const DomainConfig& config, nics::Nics& nics) {
  const TriggerSizes& s = config.sizes;
  require(step.pe >= 0 && step.pe < s.pes, "there is no PE " + std::to_string(step.pe));
  const bool triggers = step.kind == Step::Kind::trigger || step.kind == Step::Kind::wait_done;
  require(!triggers || step.tag.operation < static_cast<std::uint32_t>(s.operations),
          "tag " + std::to_string(step.tag.operation) + ": operations are numbered from 0 to " +
              std::to_string(s.operations - 1));
  require(step.kind != Step::Kind::wait_signal || (step.number >= 0 && step.number < s.signals),
          "there is no signal " + std::to_string(step.number));
  if (step.kind == Step::Kind::trigger && step.fields.given != 0U)
    nics.check_supplied(step.pe, supplied_by(step));
  if (step.kind > Step::Kind::add) return;
  require(step.count >= 0 && step.place % sizeof(double) == 0 && step.from % sizeof(double) == 0,
          "a step of a program names no values");
  const auto bytes = static_cast<std::uint64_t>(step.count) * sizeof(double);
  nics.require_in_buffer("what a step of a program writes", step.place, bytes);
  if (step.kind != Step::Kind::store)
    nics.require_in_buffer("what a step of a program reads", step.from, bytes);
  require(step.kind != Step::Kind::store ||
              (step.first >= 0 && static_cast<std::size_t>(step.first) <= program.values.size() &&
               static_cast<std::size_t>(step.count) <=
                   program.values.size() - static_cast<std::size_t>(step.first)),
          "a step of a program has no values");
}

}  // namespace

void check(const Program& program, const DomainConfig& config, nics::Nics& nics) {
  const auto blocks = static_cast<std::size_t>(config.sizes.pes * config.sizes.blocks);
  require(program.blocks.size() == blocks,
          "a program has steps for each of " + std::to_string(blocks) + " blocks");
  for (const auto& steps : program.blocks)
    for (const Step& step : steps) check(step, program, config, nics);
  for (const auto& steps : program.blocks)
    for (const Step& step : steps)
      if (step.kind == Step::Kind::trigger && step.fields.given != 0U)
        nics.remember(step.pe, supplied_by(step));
}

void check(const TriggerSizes& s) {
  require(s.pes >= 1 && s.blocks >= 1, "a domain has at least one PE of one block");
  require(s.operations >= 1 && s.operations <= static_cast<int>(kTriggerOperations),
          "a domain has 1 to " + std::to_string(kTriggerOperations) + " operations");
  require(s.depth >= 8, "a ring has room for at least 8 triggers");
  require(s.signals >= 0, "the number of signals is negative");
}

void check_cores(int pes, int blocks) {
  // Each NIC looks at the rings of all blocks in turn. At twice as many the threads of NICs leave
  // no time for those that trigger: 512 PEs of a block take minutes on two cores, 256 half a
  // second.
  constexpr std::int64_t kRings = std::int64_t{1} << 15;  // a core
  const std::int64_t limit = kRings * available_cores();
  const std::int64_t rings = std::int64_t{pes} * blocks;
  require(rings <= limit && rings * pes <= limit,
          "a domain of " + std::to_string(pes) + " PEs with " + std::to_string(blocks) +
              (blocks == 1 ? " block" : " blocks") + " each is too large for the " +
              std::to_string(available_cores()) +
              " cores of this machine, whose NICs look at the blocks of all PEs: PEs times PEs " +
              "times blocks are at most " + std::to_string(limit));
}

Domain::Domain(const DomainConfig& config, const MakeNics& make) : config_(config) {
  const TriggerSizes& s = config.sizes;
  check(s);
  check_cores(s.pes, s.blocks);
  memory_ = std::make_unique<Memory>(config);
  nics::NicsConfig nics;
  nics.layout = &memory_->triggers;
  nics.heaps = memory_->heaps.bases();
  nics.bytes = memory_->layout.bytes();
  nics.times = config.times;
  nics.wait_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * config.wait_limit));
  if (config.trace_events > 0) {
    const auto shape =
        TraceShape::of(s.pes, s.blocks + 1, 1, 1, config.trace_events, kAllTraceKinds);
    trace_.emplace(shape, nics.heaps, Port::now());
    for (int pe = 0; pe < s.pes; ++pe) nics.traces.push_back(trace_->rings(pe));
  }
  nics_ = make(nics);
  sent_.assign(static_cast<std::size_t>(s.pes) * static_cast<std::size_t>(s.blocks * s.pes), 0);
  taken_.assign(static_cast<std::size_t>(s.pes) * static_cast<std::size_t>(s.pes), 0);
}

Domain::~Domain() = default;

std::uint64_t Domain::add_buffer(const std::string& name, std::uint64_t bytes) {
  const std::uint64_t offset = memory_->room.find(name, bytes);
  nics_->add_buffer(name, offset, bytes);
  const bool used = memory_->room.used_before(offset);
  memory_->room.take(name, offset, bytes);
  for (int pe = 0; used && pe < config_.sizes.pes; ++pe)
    std::memset(memory_->heaps.base(pe) + offset, 0, bytes);
  return offset;
}

void Domain::remove_buffer(const std::string& name) {
  nics_->remove_buffer(name);
  memory_->room.give_back(name);
}

std::byte* Domain::memory(int pe, std::uint64_t offset) const {
  require(pe >= 0 && pe < config_.sizes.pes, "there is no PE " + std::to_string(pe));
  return memory_->heaps.base(pe) + offset;
}

Outcome Domain::run(const Program& program, const std::function<void()>& look) {
  require(!closed_, "the domain is closed: its NICs have ended");
  check(program, config_, *nics_);
  const TriggerSizes& s = config_.sizes;
  cpu_threads::LaunchConfig config;
  config.pes = s.pes;
  config.blocks = s.blocks;
  config.heaps = memory_->heaps.bases();
  config.beside = s.pes;
  config.wait_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * config_.wait_limit));
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  outcome.arrivals.resize(program.blocks.size());
  {
    cpu_threads::Launch launch(config, [&](Port& port) {
      const auto at = static_cast<std::size_t>(port.pe() * s.blocks + port.block());
      const Past past{sent_.data() + at * static_cast<std::size_t>(s.pes),
                      taken_.data() + port.pe() * s.pes, &outcome.arrivals[at]};
      const TriggerBoard board = memory_->triggers.board(memory_->heaps.base(port.pe()));
      const auto run_block = [&](auto& port_of_block) {
        Interpreter(port_of_block, board, program.values, past).run(program.blocks[at]);
      };
      if (trace_)
        run_traced(port, trace_->rings(port.pe()), run_block);
      else
        run_block(port);
    });
    while (!launch.wait_for(cpu_threads::kLook)) look();
    for (std::size_t k = 0; launch.gave_up() && k < launch.records().size(); ++k)
      if (launch.records()[k].waited())
        outcome.waits.push_back(
            {static_cast<int>(k) / s.blocks, static_cast<int>(k) % s.blocks, launch.records()[k]});
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outcome.waits.empty()) outcome.report = close();
  return outcome;
}

TraceReport Domain::trace() const {
  require(closed_ && trace_.has_value(),
          "a domain that was made with a trace has it once it is closed");
  return trace_->report();
}

const nics::NicReport& Domain::close() {
  if (!closed_) {
    closed_ = true;
    report_ = nics_->stop();
  }
  return report_;
}

}  // namespace cpufree::triggered
