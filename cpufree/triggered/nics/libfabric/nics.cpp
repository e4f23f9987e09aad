#include "cpufree/triggered/nics/libfabric/nics.hpp"

#include <array>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/triggered/device/trigger_nic.hpp"
#include "cpufree/triggered/nics/host_port.hpp"
#include "cpufree/triggered/nics/libfabric/fabric.hpp"

namespace cpufree::nics {

namespace {

constexpr int kSlots = TriggerTable::kAssociative;  // operations that the provider holds, each PE

// A tag that the provider holds. `armed` until its data have moved, then until its signal has.
struct Slot {
  enum class State { unused, armed, signalling, done };
  State state = State::unused;
  TriggerTag tag;
  int pe = 0;
  std::int32_t signal = -1;
  Held held;
};

// A table whose entries are carried out by the provider. The table keeps the rules: what is early,
// stray or refused. The next epoch of an operation takes a slot as soon as it is posted, if one is
// free; its counter begins with the triggers that were early. Dynamic triggers are known only when
// they have come: their operations take a slot then, with a threshold that is reached.
class FabricTable {
 public:
  FabricTable(TriggerTable& table, Fabric& fabric, const TriggerBoard& board, int pe,
              const NicsConfig& config, Hold hold)
      : table_(table),
        fabric_(fabric),
        board_(board),
        pe_(pe),
        port_(config.heaps, {pe, board.pes, 0, 1}, config.wait_limit),
        hold_(hold) {
    for (Slot& slot : slots_) fabric_.open_counters(slot.held, hold_);
  }

  bool trigger(TriggerTag tag, const TriggerFields& fields) {
    if (!table_.trigger(tag, fields)) return false;
    Slot* slot = slot_of(tag);
    if (slot != nullptr && slot->state == Slot::State::armed)
      check_fabric(fi_cntr_add(slot->held.trigger.get(), 1), "fi_cntr_add");
    return true;
  }

  bool post(const TriggerOperation& operation) {
    if (!table_.post(operation)) return false;
    arm(operation.first.operation);
    return true;
  }

  // The entry whose transfer and signal are over, or that cannot be carried out.
  TriggerEntry* ready(std::uint32_t operation) {
    TriggerEntry* entry = table_.ready(operation);
    if (entry == nullptr || fault_of(port_, board_, *entry).refused()) return entry;
    Slot* slot = slot_of(entry->tag);
    if (slot == nullptr) slot = start(*entry, 0);
    return slot != nullptr && slot->state == Slot::State::done ? entry : nullptr;
  }

  void retire(TriggerEntry* entry, const TriggerFault& why) {
    const std::uint32_t operation = entry->tag.operation;
    Slot* slot = slot_of(entry->tag);
    if (slot != nullptr) slot->state = Slot::State::unused;
    table_.retire(entry, why);
    arm(operation);
  }

  // Looks at what has completed. Calls settle(operation) for what may have become ready.
  template <class F>
  bool poll(F&& settle) {
    bool found = false;
    void* contexts[8];
    const int count = fabric_.completed(pe_, contexts);
    for (int k = 0; k < count; ++k) complete(contexts[k]);
    for (Slot& slot : slots_) {
      if (slot.state == Slot::State::armed && hold_ == Hold::queue &&
          fi_cntr_read(slot.held.complete.get()) > 0)
        moved(slot);
      if (slot.state != Slot::State::done) continue;
      settle(slot.tag.operation);
      found = true;
    }
    if (found) serve_those_without_slot(settle);
    return found || count > 0;
  }

 private:
  Slot* slot_of(TriggerTag tag) {
    for (Slot& slot : slots_)
      if (slot.state != Slot::State::unused && slot.tag == tag) return &slot;
    return nullptr;
  }

  void arm(std::uint32_t operation) {
    const TriggerEntry* entry = table_.current(operation);
    if (entry == nullptr || entry->operation.open != 0U || entry->operation.bytes == 0) return;
    if (slot_of(entry->tag) != nullptr) return;
    Slot* slot = start(*entry, entry->operation.threshold);
    if (slot != nullptr && slot->state == Slot::State::armed && entry->counter > 0)
      check_fabric(fi_cntr_add(slot->held.trigger.get(), entry->counter), "fi_cntr_add");
  }

  // Hands an entry to the provider. Null: all slots are taken.
  Slot* start(const TriggerEntry& entry, std::uint64_t threshold) {
    Slot* slot = nullptr;
    for (Slot& other : slots_)
      if (other.state == Slot::State::unused) slot = &other;
    if (slot == nullptr) return nullptr;
    const TriggerOperation& o = entry.operation;
    const TriggerPlaces at = places_of(entry);
    slot->state = Slot::State::armed;
    slot->tag = entry.tag;
    slot->pe = static_cast<int>(at.pe);
    slot->signal = o.signal;
    if (o.bytes == 0) {
      moved(*slot);
      return slot;
    }
    const bool get = o.kind == TriggerKind::get;
    fabric_.hold(pe_, slot->held,
                 {get, slot->pe, board_.heap + (get ? at.target : at.source),
                  get ? at.source : at.target, o.bytes, threshold},
                 hold_);
    return slot;
  }

  void complete(void* context) {
    for (Slot& slot : slots_) {
      if (context == &slot.held.call && slot.state == Slot::State::armed) moved(slot);
      if (context == &slot.held.word_context) slot.state = Slot::State::done;
    }
  }

  void moved(Slot& slot) {
    slot.state = slot.signal < 0 ? Slot::State::done : Slot::State::signalling;
    if (slot.signal < 0) return;
    slot.held.word = std::uint64_t{slot.tag.epoch} + 1;
    const auto* flag = reinterpret_cast<const std::byte*>(board_.signals + slot.signal);
    fabric_.set_word(pe_, slot.held, slot.pe, static_cast<std::uint64_t>(flag - board_.heap));
  }

  template <class F>
  void serve_those_without_slot(F&& settle) {
    std::vector<std::uint32_t> operations;
    for (int k = 0; k < table_.size(); ++k)
      if (table_.at(k).state == TriggerEntry::State::posted)
        operations.push_back(table_.at(k).tag.operation);
    for (const std::uint32_t operation : operations) {
      arm(operation);
      settle(operation);
    }
  }

  TriggerTable& table_;
  Fabric& fabric_;
  const TriggerBoard& board_;
  int pe_;
  HostPort port_;
  Hold hold_;
  std::array<Slot, kSlots> slots_;
};

// The provider has copied, and set the signal.
struct ProviderMover {
  static constexpr bool signals = true;
  std::vector<Firing>* firings = nullptr;

  void put(HostPort&, std::byte*, int, const std::byte*, std::uint64_t) {}
  void get(HostPort&, std::byte*, int, std::byte*, std::uint64_t) {}
  void fired(TriggerTag tag, const TriggerFields& fields) {
    if (firings == nullptr) return;
    const auto now = static_cast<std::int64_t>(HostPort::now());
    firings->push_back({tag, fields, now, now});
  }
};

// What belongs to one PE.
class FabricUnit {
 public:
  FabricUnit(const NicsConfig& config, Fabric& fabric, Hold hold, int pe)
      : sizes_(config.layout->sizes()),
        board_(config.layout->board(config.heaps[pe])),
        nic_port_(config.heaps, {pe, sizes_.pes, sizes_.blocks, sizes_.blocks}, config.wait_limit),
        host_port_(nic_port_),
        entries_(static_cast<std::size_t>(config.early + config.live)),
        over_(static_cast<std::size_t>(sizes_.operations)),
        rings_(static_cast<std::size_t>(sizes_.pes * sizes_.blocks)),
        queued_(static_cast<std::size_t>(sizes_.pes)),
        rules_({entries_.data(), over_.data()}, {sizes_.operations, config.early, config.live}),
        table_(rules_, fabric, board_, pe, config, hold),
        mover_{config.times ? &firings_ : nullptr},
        nic_(nic_port_, board_, table_, {rings_.data(), queued_.data()}, mover_),
        posts_(host_port_, board_) {}

  bool progress() {
    const bool found = nic_.progress();
    return table_.poll([this](std::uint32_t operation) { nic_.settle(operation); }) || found;
  }
  TriggerPosts<HostPort>& posts() { return posts_; }
  std::uint32_t epochs_done(std::uint32_t operation) {
    return static_cast<std::uint32_t>(host_port_.get_flag(board_.done + operation));
  }
  void add_to(NicReport& report) const { add_table(report, host_port_.pe(), rules_); }
  const std::vector<Firing>& firings() const { return firings_; }

 private:
  TriggerSizes sizes_;
  TriggerBoard board_;
  HostPort nic_port_;
  HostPort host_port_;
  std::vector<TriggerEntry> entries_;
  std::vector<std::uint32_t> over_;
  std::vector<TriggerRing> rings_;
  std::vector<Epoch> queued_;
  TriggerTable rules_;
  FabricTable table_;
  std::vector<Firing> firings_;
  ProviderMover mover_;
  TriggerNic<HostPort, ProviderMover, FabricTable> nic_;
  TriggerPosts<HostPort> posts_;
};

class LibfabricNics : public Nics {
 public:
  LibfabricNics(const NicsConfig& config, FabricCalls calls)
      : Nics(config), fabric_(config.heaps, config.layout->sizes().pes, config.bytes) {
    const Hold hold = calls == FabricCalls::triggered ? Hold::calls : Hold::queue;
    for (int pe = 0; pe < config.layout->sizes().pes; ++pe)
      units_.push_back(std::make_unique<FabricUnit>(config, fabric_, hold, pe));
    thread_ = std::thread([this] { run(); });
  }
  ~LibfabricNics() override { end(); }

  const std::vector<Firing>& firings(int pe) const override { return unit(pe).firings(); }

 private:
  FabricUnit& unit(int pe) const { return *units_.at(static_cast<std::size_t>(pe)); }
  void check(int, const TriggerOperation& o) override {
    if (o.reports != 0U)
      throw Unsupported("libfabric's NICs have no queues of completions: use a signal");
  }
  bool hand_over(int pe, const TriggerOperation& operation) override {
    return unit(pe).posts().post(operation);
  }
  void show_buffer(int pe, std::uint32_t number, std::uint64_t offset,
                   std::uint64_t bytes) override {
    unit(pe).posts().show_buffer(number, offset, bytes);
  }
  std::uint32_t epochs_done(int pe, std::uint32_t operation) override {
    return unit(pe).epochs_done(operation);
  }
  NicReport finish() override {
    end();
    if (failure_) std::rethrow_exception(failure_);
    NicReport report;
    for (const auto& unit : units_) unit->add_to(report);
    return report;
  }

  void end() {
    end_posts();
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Transfers that are under way when the end is asked for have this long to complete without
  // another completion between: operations that have not fired must not keep the thread.
  static constexpr std::chrono::milliseconds kQuiet{50};

  void run() {
    try {
      auto last = HostPort::Clock::now();
      while (true) {
        const bool ending = ending_;
        bool found = false;
        for (auto& unit : units_) found = unit->progress() || found;
        const auto now = HostPort::Clock::now();
        if (found || !ending) last = now;
        if (ending && now - last > kQuiet) return;
        if (!found) std::this_thread::yield();
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  Fabric fabric_;
  std::vector<std::unique_ptr<FabricUnit>> units_;
  std::atomic<bool> ending_{false};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Nics> make_libfabric_nics(const NicsConfig& config, FabricCalls calls) {
  return std::make_unique<LibfabricNics>(config, calls);
}

}  // namespace cpufree::nics
