#include "cpufree/launch/live_waits.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>

#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kMostEvents = 1 << 24;
constexpr std::int64_t kMostEvery = 1 << 30;
constexpr double kStopped = 1.0;  // seconds without a sign of life; processes give one 20 times

// Kernels and other processes write it meanwhile.
std::uint64_t word(const Flag& flag) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(flag.value))
      .load(std::memory_order_acquire);
}

BlockState state_of(std::uint64_t state) { return static_cast<BlockState>(state >> 16 & 0xffU); }

std::chrono::steady_clock::duration pause(double after) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::min(0.5, after / 4.0)));
}

}  // namespace

void check(const TraceSpec& spec) {
  require(spec.events >= kTraceShare && spec.events <= kMostEvents,
          "events of a trace must lie between " + std::to_string(kTraceShare) + " and " +
              std::to_string(kMostEvents) + ", not " + std::to_string(spec.events));
  require(spec.every >= 1 && spec.every <= kMostEvery,
          "one iteration of N is traced for N from 1 to 2^30, not " + std::to_string(spec.every));
  require(std::isfinite(spec.after) && spec.after > 0.0,
          "waits are told of after a positive number of seconds");
}

LiveWaits::LiveWaits(const TraceSpec& spec, const TraceShape& shape, int first,
                     std::vector<PublishedPe> pes)
    : spec_(spec),
      shape_(shape),
      first_(first),
      pes_(std::move(pes)),
      states_(pes_.size() * shape.counts()),
      alive_(pes_.size()),
      bodies_(states_.size()),
      next_look_(Clock::now()),
      next_call_(spec.after) {}

void LiveWaits::see(Clock::time_point now) {
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const Published& told = pes_[k / shape_.counts()].told[k % shape_.counts()];
    std::uint64_t state = 0, again = word(told.state);
    do {
      state = again;
      bodies_[k] = word(told.body);
      again = word(told.state);
    } while (again != state);
    states_[k].see(state, now);
  }
  for (std::size_t pe = 0; pe < pes_.size(); ++pe)
    if (pes_[pe].alive != nullptr) alive_[pe].see(word(*pes_[pe].alive), now);
}

// Of a block the wait of its threads that has stood longest.
WaitRecord LiveWaits::record_of(std::size_t block, Clock::time_point now) const {
  const auto writers = at(shape_.writers);
  WaitRecord record;
  record.state = state_of(states_[block * writers].value);
  const std::size_t pe = block / at(shape_.blocks);
  const bool silent = pes_[pe].alive != nullptr && alive_[pe].stands(now) > kStopped;
  // A kernel that has given a wait up leaves the word of the thread that waited as it was.
  const bool waits = record.state != BlockState::finished;
  for (std::size_t k = block * writers; waits && k < (block + 1) * writers; ++k) {
    const std::uint64_t state = states_[k].value;
    const double seconds = states_[k].stands(now);
    if (state_of(state) != BlockState::waiting || seconds < record.seconds) continue;
    record.state = BlockState::waiting;
    record.from_pe = static_cast<std::int32_t>(state & 0xffffU);
    record.from_block = static_cast<std::int32_t>(bodies_[k] >> 32 & 0xffffU);
    record.channel = static_cast<Channel>(bodies_[k] >> 48);
    record.want = bodies_[k] & 0xffffffffU;
    record.seconds = seconds;
  }
  if (silent && record.state != BlockState::finished) {
    record = {};
    record.state = BlockState::stopped;
    record.seconds = alive_[pe].stands(now);
  }
  return record;
}

void LiveWaits::look() {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + pause(spec_.after);
  see(now);
  std::vector<WaitRecord> records;
  double longest = 0.0;
  for (std::size_t block = 0; block < pes_.size() * at(shape_.blocks); ++block) {
    records.push_back(record_of(block, now));
    if (records.back().state == BlockState::waiting)
      longest = std::max(longest, records.back().seconds);
  }
  if (longest < spec_.after) next_call_ = spec_.after;  // another wait
  if (longest < next_call_) return;
  while (next_call_ <= longest) next_call_ *= 2.0;
  std::vector<BlockReport> blocks = block_reports(records, shape_.blocks);
  for (BlockReport& block : blocks) block.pe += first_;
  spec_.heard(blocks);
}

Progress watched(const Progress& progress, LiveWaits* watch) {
  if (watch == nullptr) return progress;
  return [&progress, watch](std::int64_t iteration, double residual) {
    watch->look();
    return !progress || progress(iteration, residual);
  };
}

}  // namespace cpufree
