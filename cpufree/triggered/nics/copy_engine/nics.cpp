#include "cpufree/triggered/nics/copy_engine/nics.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <optional>
#include <thread>

#include "cpufree/base/error.hpp"
#include "cpufree/gpu/stream_words.hpp"
#include "cpufree/triggered/nics/copy_engine/line.hpp"

namespace cpufree::nics {

namespace {

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

// The lines of one PE, and what its words say.
class EngineUnit {
 public:
  EngineUnit(const GpuNicsConfig& config, const LinePlace& place, int lines)
      : config_(config),
        place_(place),
        aux_(place.devices[at(place.pe)], true),
        operations_(place.board.operations),
        words_(at(operations_) * TriggerCounters::kWindow),
        event_(place.devices[at(place.pe)]) {
    set_words();
    find_reach();
    for (int k = 0; k < lines; ++k) lines_.emplace_back(place_).warm_up();
  }

  // Throws Unsupported where no stream is left, or the threshold is not that of epochs before.
  void check(const TriggerOperation& o) {
    const std::lock_guard lock(mutex_);
    const auto found = by_operation_.find(o.first.operation);
    if (found != by_operation_.end()) return found->second->require_threshold(o);
    if (by_operation_.size() == lines_.size())
      throw Unsupported("the copy engines of PE " + std::to_string(place_.pe) +
                        " have streams for " + std::to_string(lines_.size()) +
                        " operations, and all are taken: use fewer tags, or the back end block");
  }

  void post(const TriggerOperation& o, bool at_kernel_end) {
    const std::lock_guard lock(mutex_);
    Line& line = line_of(o.first.operation);
    const gpu::OnDevice here(aux_.device());
    gpu::write_word(aux_, place_.counters.thresholds + o.first.operation, o.threshold);
    aux_.drain(gpu::Deadline(gpu::kCopyLimit), "a post");
    line.post(o);
    if (!at_kernel_end) line.feed();
  }

  bool feed() {
    const std::lock_guard lock(mutex_);
    bool found = false;
    for (auto& [operation, line] : by_operation_) found = line->feed() || found;
    return found;
  }

  void feed_behind(const gpu::Stream& stream) {
    const std::lock_guard lock(mutex_);
    const gpu::OnDevice here(aux_.device());
    stream.record(event_);
    for (auto& [operation, line] : by_operation_) line->feed_behind(event_);
  }

  std::uint32_t over(std::uint32_t operation) {
    const std::lock_guard lock(mutex_);
    const auto found = by_operation_.find(operation);
    return found == by_operation_.end() ? 0 : found->second->over();
  }

  // Whether all that has its triggers has fired; `queued`: of what streams have.
  bool settled(bool queued) {
    const std::lock_guard lock(mutex_);
    read_words();
    for (const auto& [operation, line] : by_operation_) {
      const std::uint32_t next = line->over();
      if (next < (queued ? line->queued() : line->posted()) &&
          fires(operation, next, line->threshold(next)))
        return false;
    }
    return true;
  }

  // After the end: kernels and the thread that feeds are no more.
  void add_to(NicReport& report, std::vector<Firing>* firings) {
    read_words();
    add_device_strays(report);
    for (int o = 0; o < operations_; ++o) add_words(report, static_cast<std::uint32_t>(o));
    for (const auto& [operation, line] : by_operation_)
      for (std::uint32_t e = 0; firings != nullptr && e < line->over(); ++e)
        firings->push_back({{operation, e}, {}, 0, 0});
  }

  void undo() {
    for (auto& [operation, line] : by_operation_) line->undo(aux_);
  }

 private:
  Line& line_of(std::uint32_t operation) {
    const auto found = by_operation_.find(operation);
    if (found != by_operation_.end()) return *found->second;
    Line& line = lines_[by_operation_.size()];
    line.take(operation);
    by_operation_[operation] = &line;
    return line;
  }

  Flag* words() const { return place_.counters.words; }

  // Slot s of each operation waits for epoch s.
  void set_words() {
    for (std::size_t k = 0; k < words_.size(); ++k)
      words_[k].value = TriggerCounters::word_of(k % TriggerCounters::kWindow, 0);
    const gpu::OnDevice here(aux_.device());
    gpu::copy(words(), words_.data(), words_.size() * sizeof(Flag), aux_);
    aux_.drain(gpu::Deadline(gpu::kCopyLimit), "the start of a copy engine");
  }
  void read_words() {
    const gpu::OnDevice here(aux_.device());
    gpu::copy(words_.data(), words(), words_.size() * sizeof(Flag), aux_);
    aux_.drain(gpu::Deadline(gpu::kCopyLimit), "a look at counters");
  }

  // Whether streams of this device write words in the memory of others: tried.
  void find_reach() {
    const gpu::OnDevice here(aux_.device());
    place_.writes_to.assign(place_.devices.size(), false);
    for (std::size_t pe = 0; pe < place_.devices.size(); ++pe) {
      auto* const word = reinterpret_cast<Flag*>(
          place_.heaps[pe] +
          (reinterpret_cast<std::byte*>(place_.counters.stray_count) - place_.heaps[place_.pe]));
      if (!gpu::try_write_word(aux_, word, 1)) continue;
      aux_.drain(gpu::Deadline(gpu::kCopyLimit), "a word of another GPU");
      gpu::copy(words_.data(), word, sizeof(Flag), aux_);
      gpu::write_word(aux_, word, 0);
      aux_.drain(gpu::Deadline(gpu::kCopyLimit), "a word of another GPU");
      place_.writes_to[pe] = words_[0].value == 1;
    }
    set_words();
  }

  Epoch word(std::uint32_t operation, std::uint32_t epoch) const {
    return words_[at(operation) * TriggerCounters::kWindow + epoch % TriggerCounters::kWindow]
        .value;
  }
  bool fires(std::uint32_t operation, std::uint32_t epoch, std::uint64_t threshold) const {
    return threshold == 0 ||
           reached(word(operation, epoch), TriggerCounters::word_of(epoch, threshold));
  }

  void add_device_strays(NicReport& report) {
    Flag count{};
    gpu::copy_to_host(&count, place_.counters.stray_count, sizeof(count));
    const auto kept = std::min<Epoch>(count.value, TriggerCounters::kStrays);
    std::vector<StrayTrigger> strays(kept);
    if (kept > 0)
      gpu::copy_to_host(strays.data(), place_.counters.strays, kept * sizeof(StrayTrigger));
    for (const StrayTrigger& s : strays) add_fault(report, s.tag, s.count);
    report.faults_dropped += count.value - kept;
  }

  void add_fault(NicReport& report, TriggerTag tag, std::uint64_t count) {
    const auto kind = tag.operation < static_cast<std::uint32_t>(operations_)
                          ? TriggerFault::Kind::stray
                          : TriggerFault::Kind::unknown;
    for (NicFault& f : report.faults)
      if (f.pe == place_.pe && f.fault.tag == tag) {
        f.fault.count += count;
        return;
      }
    report.faults.push_back({place_.pe, {kind, tag, count}, {}});
  }

  // What the words of an operation say: strays of epochs that are over, and those that wait.
  void add_words(NicReport& report, std::uint32_t operation) {
    const auto found = by_operation_.find(operation);
    const Line* const line = found == by_operation_.end() ? nullptr : found->second;
    const std::uint32_t over = line == nullptr ? 0 : line->over();
    const bool posted = line != nullptr && over < line->posted();
    bool listed = false;
    for (std::uint32_t s = 0; s < TriggerCounters::kWindow; ++s) {
      const Epoch w = words_[at(operation) * TriggerCounters::kWindow + s].value;
      const std::uint32_t epoch = TriggerCounters::epoch_of(w);
      const std::uint64_t seen = TriggerCounters::count_of(w);
      if (epoch < over) {
        const std::uint64_t threshold = line->threshold(epoch);
        if (seen > threshold) add_fault(report, {operation, epoch}, seen - threshold);
        continue;
      }
      const bool next = posted && epoch == over;
      listed = listed || next;
      const bool own = next || (line != nullptr && epoch < line->posted() && line->starts(epoch));
      if (!own && seen == 0) continue;
      report.waiting.push_back(
          {place_.pe, {operation, epoch}, seen, own ? line->threshold(epoch) : 0, own});
    }
    // Its word is still at an epoch before: it has not been triggered.
    if (posted && !listed)
      report.waiting.push_back({place_.pe, {operation, over}, 0, line->threshold(over), true});
  }

  const GpuNicsConfig& config_;
  LinePlace place_;
  gpu::Stream aux_;
  int operations_;
  gpu::PinnedArray<Flag> words_;
  gpu::Event event_;
  std::deque<Line> lines_;
  std::map<std::uint32_t, Line*> by_operation_;
  std::mutex mutex_;
};

class CopyEngineNics final : public GpuNics {
 public:
  CopyEngineNics(const GpuNicsConfig& config, const CopyEngineOptions& options)
      : GpuNics(config), options_(options) {
    for (int pe = 0; pe < pes(); ++pe) {
      const LinePlace place{pe,        this->config().devices, this->config().nics.heaps,
                            board(pe), counters(pe),           std::vector<bool>(at(pes()), false)};
      units_.push_back(std::make_unique<EngineUnit>(this->config(), place, lines(device(pe))));
    }
    firings_.resize(at(pes()));
    if (!options.at_kernel_end) thread_ = std::thread([this] { run(); });
  }
  ~CopyEngineNics() override {
    try {
      end();
    } catch (...) {  // what is wrong with the devices shows where they are used next
    }
  }

  TriggerBoard board(int pe) const override { return device_board(pe); }
  bool counts_by_words() const override { return true; }
  void launched(int pe, const gpu::Stream& stream) override {
    if (options_.at_kernel_end) units_[at(pe)]->feed_behind(stream);
  }

  const std::vector<Firing>& firings(int pe) const override { return firings_.at(at(pe)); }

 private:
  NicReport finish() override {
    end();
    if (failure_) std::rethrow_exception(failure_);
    return report_;
  }
  int lines(int where) const {
    const auto sharing = static_cast<int>(std::ranges::count(config().devices, where));
    const int most = std::max(1, kMostLines / sharing);
    const int wanted = options_.operations > 0 ? options_.operations : sizes().operations;
    return std::min(most, wanted);
  }

  void check(int pe, const TriggerOperation& o) override {
    const std::string tag = "tag " + std::to_string(o.first.operation);
    if (o.open != 0U)
      throw Unsupported(tag +
                        ": dynamic triggers need the back end block or proxy: a copy engine "
                        "copies what was queued before");
    if (o.reports != 0U)
      throw Unsupported(tag + ": copy engines have no queues of arrivals; use a signal");
    require(std::uint64_t{o.first.epoch} + o.epochs < (std::uint64_t{1} << 31),
            tag + ": copy engines have 2147483647 epochs");
    units_[at(pe)]->check(o);
  }
  bool hand_over(int pe, const TriggerOperation& operation) override {
    units_[at(pe)]->post(operation, options_.at_kernel_end);
    return true;
  }
  std::uint32_t epochs_done(int pe, std::uint32_t operation) override {
    return units_[at(pe)]->over(operation);
  }

  // Keeps the streams supplied.
  void run() {
    try {
      while (!ending_) {
        bool found = false;
        for (auto& unit : units_) found = unit->feed() || found;
        if (!found) std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void end() {
    if (stopped_) return;
    stopped_ = true;
    end_posts();
    const gpu::Deadline deadline(1e-9 * static_cast<double>(config().nics.wait_limit.count()));
    for (auto& unit : units_)
      while (!failure_ && !unit->settled(options_.at_kernel_end))
        if (deadline.over()) gpu::give_up(deadline, "copies that have their triggers");
    ending_ = true;
    if (thread_.joinable()) thread_.join();
    for (std::size_t pe = 0; pe < units_.size(); ++pe)
      units_[pe]->add_to(report_, config().nics.times ? &firings_[pe] : nullptr);
    for (auto& unit : units_) unit->undo();
  }

  CopyEngineOptions options_;
  std::vector<std::unique_ptr<EngineUnit>> units_;
  std::vector<std::vector<Firing>> firings_;
  NicReport report_;
  std::atomic<bool> ending_{false};
  std::exception_ptr failure_;
  std::thread thread_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<GpuNics> make_copy_engine_nics(const GpuNicsConfig& config,
                                               const CopyEngineOptions& options) {
  return std::make_unique<CopyEngineNics>(config, options);
}

}  // namespace cpufree::nics
