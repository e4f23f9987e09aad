#include "cpufree/probes/host/cpu.hpp"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "cpufree/base/cores.hpp"
#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/launch/waits.hpp"
#include "cpufree/probes/kernel.hpp"
#include "cpufree/probes/patterns.hpp"

namespace cpufree {

namespace {

// Looks before a thread that waits lets others run: some 50 µs, longer than any message that
// have cores to themselves; where threads take turns on the cores, hardly any.
constexpr std::uint32_t kSpins = 2000;
constexpr std::uint32_t kSpinsInTurn = 16;

// A block on a thread of its own.
class OwnThread final : public cpu_threads::Seat {
 public:
  explicit OwnThread(std::uint32_t spins) : spins_(spins) { called = &never_; }
  bool pass(std::uint32_t look) override {
    if (look < spins_) {
      cpu_threads::pause_cpu();
      return false;
    }
    std::this_thread::yield();
    return true;
  }

 private:
  void move() override {}
  std::uint32_t spins_;
  std::atomic<bool> never_{false};
};

// Switches of the calling thread while it wanted to run on.
long switches_of_thread() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nivcsw;
}

}  // namespace

CpuProber::CpuProber(int pes, int blocks, std::int64_t bytes)
    : pes_(pes), blocks_(blocks), here_(pes), memory_(pes, blocks, bytes) {
  own_.emplace(pes, memory_.bytes());
  heaps_.assign(own_->bases(), own_->bases() + pes);
}

CpuProber::CpuProber(int pes, int blocks, std::int64_t bytes, int pe)
    : pes_(pes), blocks_(blocks), first_(pe), here_(1), memory_(pes, blocks, bytes) {
  require(pe >= 0 && pe < pes, "a process has one of the PEs");
  segments_.resize(at(pes));
  segments_[at(pe)] = cpu_processes::Segment::make(memory_.bytes());
}

cpu_processes::SegmentAddress CpuProber::address() const {
  require(!own_, "PEs in one process share no memory with others");
  return segments_[at(first_)].address();
}

void CpuProber::connect(const std::vector<cpu_processes::SegmentAddress>& addresses) {
  require(!own_ && addresses.size() == at(pes_), "each of the processes has one address");
  for (int pe = 0; pe < pes_; ++pe) {
    if (pe != first_)
      segments_[at(pe)] = cpu_processes::Segment::open(addresses[at(pe)], memory_.bytes());
    heaps_.push_back(segments_[at(pe)].data());
  }
}

void CpuProber::leave() {
  for (std::byte* const heap : heaps_) cpu_threads::store_flag(*memory_.leave(heap), 1);
}

void CpuProber::share(cpu_threads::Shared& shared, double wait_limit) const {
  shared.pes = pes_;
  shared.blocks = blocks_;
  shared.first = first_;
  shared.heaps = heaps_.data();
  shared.leave_flag = memory_.leave(heaps_[at(first_)]);
  shared.wait_limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(wait_limit));
  shared.records.assign(at(here_ * blocks_), WaitRecord{});
}

// Runs kernel(port, PE of this process) on all blocks, each on a thread of its own.
void CpuProber::run_blocks(cpu_threads::Shared& shared,
                           const std::function<void(cpu_threads::Port& port, int pe)>& kernel) {
  std::atomic<long> switches{0};
  const bool in_turn = here_ * blocks_ > available_cores();
  const auto run_block = [&](int number) {
    const long before = switches_of_thread();
    OwnThread seat(in_turn ? kSpinsInTurn : kSpins);
    cpu_threads::Port port(shared, first_ + number / blocks_, number % blocks_, &seat);
    kernel(port, number / blocks_);
    if (!port.record().waited()) port.record().state = BlockState::finished;
    switches += switches_of_thread() - before;
  };
  try {
    std::vector<std::jthread> threads;
    try {
      for (int k = 1; k < here_ * blocks_; ++k) threads.emplace_back(run_block, k);
    } catch (...) {
      shared.tell_all();
      throw;
    }
    run_block(0);
  } catch (const std::system_error& error) {
    throw EngineError(std::string("no thread can be started (") + error.what() +
                      "); raise the limit of processes (ulimit -u)");
  }
  disturbances_ = switches;
  if (shared.leaves()) throw WaitTimeout(block_reports(shared.records, blocks_));
}

std::vector<double> CpuProber::run(const ProbeOrder& order) {
  require(!heaps_.empty(), "the processes of a probe are not connected");
  ProbeClock clock;
  std::vector<std::int64_t> wrong(at(here_ * blocks_));
  std::vector<std::uint64_t> ticks(at(order.repeats));
  std::vector<ProbeArgs> args;
  for (int k = 0; k < here_; ++k) {
    args.push_back(memory_.args(order, heaps_[at(first_ + k)]));
    args.back().epoch = epoch_;
    args.back().clock = &clock;
    args.back().ticks = ticks.data();
    args.back().wrong = wrong.data() + k * blocks_;
  }
  cpu_threads::Shared shared;
  share(shared, order.wait_limit);
  epoch_ += probe_epochs(args.front());
  run_blocks(shared,
             [&](cpu_threads::Port& port, int pe) { probe_kernel(order.way, port, args[at(pe)]); });
  if (first_ != 0) ticks.clear();
  return probe_seconds(order, ticks, clock, wrong);
}

PatternTimes CpuProber::run(const PatternOrder& order) {
  require(here_ == pes_, "a pattern has all its PEs in one process");
  const std::vector<std::int64_t> table = memory_.table(order);
  const std::size_t repeats = at(order.repeats);
  std::vector<ProbeClock> clocks(at(pes_));
  std::vector<std::uint64_t> ticks(at(pes_) * repeats), comm(at(pes_) * repeats);
  std::vector<std::int64_t> wrong(at(pes_ * blocks_));
  std::vector<std::vector<double>> products(at(pes_),
                                            std::vector<double>(at(order.tile * order.tile)));
  std::vector<PatternArgs> args;
  for (int pe = 0; pe < pes_; ++pe) {
    PatternArgs& one = args.emplace_back(memory_.args(order, heaps_[at(pe)]));
    one.epoch = pattern_epoch_;
    one.values = table.data();
    one.places = table.data() + table.size() / 2;
    one.product = products[at(pe)].data();
    one.ticks = ticks.data() + at(pe) * repeats;
    one.comm_ticks = comm.data() + at(pe) * repeats;
    one.clock = &clocks[at(pe)];
    one.wrong = wrong.data() + pe * blocks_;
  }
  cpu_threads::Shared shared;
  share(shared, order.wait_limit);
  pattern_epoch_ += pattern_epochs(args.front());
  run_blocks(shared, [&](cpu_threads::Port& port, int pe) { pattern_kernel(port, args[at(pe)]); });
  return pattern_seconds(ticks, comm, clocks, wrong);
}

}  // namespace cpufree
