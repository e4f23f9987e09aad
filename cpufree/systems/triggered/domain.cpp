#include "cpufree/systems/triggered/domain.hpp"

#include <algorithm>

#include "cpufree/base/error.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"

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
class Interpreter {
 public:
  Interpreter(Port& port, const TriggerBoard& board, const std::vector<double>& values,
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
    TriggerQueue<Port>& queue = queues_[static_cast<std::size_t>(step.pe)];
    if (!queue.next(tag)) return false;
    past_.arrivals->push_back(tag);
    past_.taken[step.pe] = queue.taken();
    return true;
  }

  const TriggerBoard board_;
  const std::vector<double>& values_;
  Past past_;
  std::vector<Triggers<Port>> triggers_;
  std::vector<TriggerQueue<Port>> queues_;
};

}  // namespace

struct Domain::Memory {
  SymmetricLayout layout;
  TriggerLayout triggers;
  Symmetric<std::byte> buffers;
  cpu_threads::SymmetricHeaps heaps;

  explicit Memory(const DomainConfig& config)
      : triggers(layout, config.sizes),
        buffers(layout.reserve<std::byte>(config.bytes)),
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

void check(const Step& step, const Program& program, const DomainConfig& config,
           std::uint64_t begin) {
  const TriggerSizes& s = config.sizes;
  require(step.pe >= 0 && step.pe < s.pes, "there is no PE " + std::to_string(step.pe));
  const bool triggers = step.kind == Step::Kind::trigger || step.kind == Step::Kind::wait_done;
  require(!triggers || step.tag.operation < static_cast<std::uint32_t>(s.operations),
          "tag " + std::to_string(step.tag.operation) + ": operations are numbered from 0 to " +
              std::to_string(s.operations - 1));
  require(step.kind != Step::Kind::wait_signal || (step.number >= 0 && step.number < s.signals),
          "there is no signal " + std::to_string(step.number));
  if (step.kind > Step::Kind::add) return;
  const auto inside = [&](std::uint64_t place) {
    const std::uint64_t bytes = config.bytes;
    const auto need = static_cast<std::uint64_t>(step.count) * sizeof(double);
    return step.count >= 0 && place >= begin && need <= bytes && place - begin <= bytes - need &&
           place % sizeof(double) == 0;
  };
  require(inside(step.place) && (step.kind == Step::Kind::store || inside(step.from)),
          "a step of a program reaches outside of the domain's buffers");
  require(step.kind != Step::Kind::store ||
              (step.first >= 0 && static_cast<std::size_t>(step.first) <= program.values.size() &&
               static_cast<std::size_t>(step.count) <=
                   program.values.size() - static_cast<std::size_t>(step.first)),
          "a step of a program has no values");
}

}  // namespace

void check(const Program& program, const DomainConfig& config, std::uint64_t begin) {
  const auto blocks = static_cast<std::size_t>(config.sizes.pes * config.sizes.blocks);
  require(program.blocks.size() == blocks,
          "a program has steps for each of " + std::to_string(blocks) + " blocks");
  for (const auto& steps : program.blocks)
    for (const Step& step : steps) check(step, program, config, begin);
}

void check(const TriggerSizes& s) {
  require(s.pes >= 1 && s.blocks >= 1, "a domain has at least one PE of one block");
  require(s.operations >= 1 && s.operations <= static_cast<int>(kTriggerOperations),
          "a domain has 1 to " + std::to_string(kTriggerOperations) + " operations");
  require(s.depth >= 8, "a ring has room for at least 8 triggers");
  require(s.signals >= 0, "the number of signals is negative");
}

Domain::Domain(const DomainConfig& config, const MakeNics& make) : config_(config) {
  const TriggerSizes& s = config.sizes;
  check(s);
  memory_ = std::make_unique<Memory>(config);
  nics::NicsConfig nics;
  nics.layout = &memory_->triggers;
  nics.heaps = memory_->heaps.bases();
  nics.bytes = memory_->layout.bytes();
  nics.times = config.times;
  nics.wait_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * config.wait_limit));
  nics_ = make(nics);
  sent_.assign(static_cast<std::size_t>(s.pes) * static_cast<std::size_t>(s.blocks * s.pes), 0);
  taken_.assign(static_cast<std::size_t>(s.pes) * static_cast<std::size_t>(s.pes), 0);
}

Domain::~Domain() = default;

std::uint64_t Domain::add_buffer(const std::string& name, std::uint64_t bytes) {
  require(bytes <= config_.bytes - used_,
          "buffer '" + name + "' of " + std::to_string(bytes) +
              " bytes does not fit: " + std::to_string(config_.bytes - used_) + " of " +
              std::to_string(config_.bytes) + " bytes are left; give the domain more");
  const std::uint64_t offset = memory_->buffers.offset + used_;
  nics_->add_buffer(name, offset, bytes);
  used_ = std::min(config_.bytes, used_ + (bytes + 255) / 256 * 256);
  return offset;
}

std::byte* Domain::memory(int pe, std::uint64_t offset) const {
  require(pe >= 0 && pe < config_.sizes.pes, "there is no PE " + std::to_string(pe));
  return memory_->heaps.base(pe) + offset;
}

Outcome Domain::run(const Program& program, const std::function<void()>& look) {
  require(!closed_, "the domain is closed: its NICs have ended");
  check(program, config_, memory_->buffers.offset);
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
      Interpreter(port, board, program.values, past).run(program.blocks[at]);
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

const nics::NicReport& Domain::close() {
  if (!closed_) {
    closed_ = true;
    report_ = nics_->stop();
  }
  return report_;
}

}  // namespace cpufree::triggered
