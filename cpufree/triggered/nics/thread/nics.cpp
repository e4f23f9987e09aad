#include "cpufree/triggered/nics/thread/nics.hpp"

#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>

#include "cpufree/base/error.hpp"
#include "cpufree/trace/traced.hpp"
#include "cpufree/triggered/device/trigger_nic.hpp"
#include "cpufree/triggered/nics/host_port.hpp"

namespace cpufree::nics {

namespace {

std::int64_t now() { return static_cast<std::int64_t>(HostPort::now()); }

struct CopyMover {
  static constexpr bool signals = false;
  std::vector<Firing>* firings = nullptr;  // null: not recorded
  std::int64_t begun = 0;

  void put(HostPort& port, std::byte* to, int pe, const std::byte* from, std::uint64_t bytes) {
    begin();
    if (bytes > 0) std::memcpy(port.peer(to, pe), from, bytes);
  }
  void get(HostPort& port, std::byte* to, int pe, std::byte* from, std::uint64_t bytes) {
    begin();
    if (bytes > 0) std::memcpy(to, port.peer(from, pe), bytes);
  }
  void begin() {
    if (firings != nullptr) begun = now();
  }
  void fired(TriggerTag tag, const TriggerFields& fields) {
    if (firings != nullptr) firings->push_back({tag, fields, begun, now()});
  }
};

}  // namespace

class ThreadNics::Unit {
 public:
  Unit(const NicsConfig& config, int pe)
      : sizes_(config.layout->sizes()),
        board_(config.layout->board(config.heaps[pe])),
        nic_port_(config.heaps, {pe, sizes_.pes, sizes_.blocks, sizes_.blocks}, config.wait_limit),
        host_port_(nic_port_),
        entries_(static_cast<std::size_t>(config.early + config.live)),
        over_(static_cast<std::size_t>(sizes_.operations)),
        rings_(static_cast<std::size_t>(sizes_.pes * sizes_.blocks)),
        queued_(static_cast<std::size_t>(sizes_.pes)),
        table_({entries_.data(), over_.data()}, {sizes_.operations, config.early, config.live}),
        mover_{config.times ? &firings_ : nullptr, 0},
        posts_(host_port_, board_) {
    const TraceRing* const trace =
        config.traces.empty() ? nullptr : config.traces[static_cast<std::size_t>(pe)];
    thread_ = std::thread([this, trace] {
      if (trace == nullptr) return run(nic_port_);
      run_traced(nic_port_, trace, [this](auto& port) { run(port); });
    });
  }
  ~Unit() { end(); }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  TriggerPosts<HostPort>& posts() { return posts_; }

  std::uint32_t epochs_done(std::uint32_t operation) {
    return static_cast<std::uint32_t>(host_port_.get_flag(board_.done + operation));
  }

  void end() {
    ending_.store(true, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
  }

  void add_to(NicReport& report) const { add_table(report, host_port_.pe(), table_); }
  const std::vector<Firing>& firings() const { return firings_; }

 private:
  // Ends after a look that began after `ending_` was set, and found nothing: then all that had been
  // sent before has been taken, or has no room.
  template <class P>
  void run(P& port) {
    TriggerNic<P, CopyMover> nic(port, board_, table_, {rings_.data(), queued_.data()}, mover_);
    auto wait = port.start_wait();
    while (true) {
      const bool last = ending_.load(std::memory_order_acquire);
      if (nic.progress()) {
        wait = port.start_wait();
        continue;
      }
      if (last) return;
      // The NIC itself never times out; the waits of its clients are bounded.
      if (!port.keep_waiting(wait)) wait.start = {};
    }
  }

  TriggerSizes sizes_;
  TriggerBoard board_;
  HostPort nic_port_;
  HostPort host_port_;
  std::vector<TriggerEntry> entries_;
  std::vector<std::uint32_t> over_;
  std::vector<TriggerRing> rings_;
  std::vector<Epoch> queued_;
  TriggerTable table_;
  std::vector<Firing> firings_;
  CopyMover mover_;
  TriggerPosts<HostPort> posts_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

ThreadNics::ThreadNics(const NicsConfig& config) : Nics(config) {
  try {
    for (int pe = 0; pe < config.layout->sizes().pes; ++pe)
      units_.push_back(std::make_unique<Unit>(config, pe));
  } catch (const std::system_error& e) {
    throw EngineError(std::string("no thread can be started for a NIC (") + e.what() +
                      "); raise the limit of processes (ulimit -u)");
  }
}

ThreadNics::~ThreadNics() = default;

bool ThreadNics::hand_over(int pe, const TriggerOperation& operation) {
  return unit(pe).posts().post(operation);
}

void ThreadNics::show_buffer(int pe, std::uint32_t number, std::uint64_t offset,
                             std::uint64_t bytes) {
  unit(pe).posts().show_buffer(number, offset, bytes);
}

std::uint32_t ThreadNics::epochs_done(int pe, std::uint32_t operation) {
  return unit(pe).epochs_done(operation);
}

NicReport ThreadNics::finish() {
  end_posts();
  NicReport report;
  for (auto& unit : units_) unit->end();
  for (const auto& unit : units_) unit->add_to(report);
  return report;
}

const std::vector<Firing>& ThreadNics::firings(int pe) const { return unit(pe).firings(); }

}  // namespace cpufree::nics
