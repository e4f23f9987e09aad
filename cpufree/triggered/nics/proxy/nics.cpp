#include "cpufree/triggered/nics/proxy/nics.hpp"

#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "cpufree/base/error.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/gpu/stream_words.hpp"
#include "cpufree/triggered/device/trigger_nic.hpp"
#include "cpufree/triggered/nics/host_port.hpp"

namespace cpufree::nics {

namespace {

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }
std::int64_t now() { return static_cast<std::int64_t>(HostPort::now()); }

// The PEs' memory as a proxy sees it: rings and posts lie in memory of the host, of which each PE
// has a part; buffers and the flags that kernels wait for lie on the devices. What goes there, goes
// by one stream, so that a flag is written after the copies before it.
class ProxyPort : public HostPort {
 public:
  struct Memory {
    std::byte* const* host = nullptr;  // each PE's part
    std::size_t host_bytes = 0;
    std::byte* const* heaps = nullptr;
    const std::vector<int>* devices = nullptr;
  };
  ProxyPort(const Memory& memory, const Place& place, std::chrono::nanoseconds limit)
      : HostPort(memory.host, place, limit),
        memory_(memory),
        stream_(memory.devices->at(at(place.pe)), true) {}

  void put_flag(Flag* flag, int pe, Epoch epoch) {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(flag) - reinterpret_cast<std::uintptr_t>(here());
    if (offset < memory_.host_bytes) return HostPort::put_flag(flag, pe, epoch);
    const gpu::OnDevice current(stream_.device());
    gpu::write_word(stream_, there(reinterpret_cast<std::byte*>(flag), pe), epoch);
  }
  void copy(std::byte* to, int to_pe, const std::byte* from, int from_pe, std::uint64_t bytes) {
    if (bytes == 0) return;
    const gpu::OnDevice current(stream_.device());
    const int to_device = memory_.devices->at(at(to_pe)),
              from_device = memory_.devices->at(at(from_pe));
    if (to_device == from_device)
      gpu::copy(to, from, bytes, stream_, " of a triggered operation");
    else
      gpu::copy_across(to, to_device, from, from_device, bytes, stream_,
                       " of a triggered operation");
  }
  // An address in my heap, in that of a PE.
  template <class T>
  T* there(T* mine, int pe) const {
    return memory_.heaps[pe] + (mine - memory_.heaps[HostPort::pe()]);
  }
  const gpu::Stream& stream() const { return stream_; }

 private:
  std::byte* here() const { return memory_.host[HostPort::pe()]; }
  Memory memory_;
  gpu::Stream stream_;
};

struct StreamMover {
  static constexpr bool signals = false;
  std::vector<Firing>* firings = nullptr;  // null: not recorded
  std::int64_t begun = 0;

  void put(ProxyPort& port, std::byte* to, int pe, const std::byte* from, std::uint64_t bytes) {
    begin();
    port.copy(port.there(to, pe), pe, from, port.pe(), bytes);
  }
  void get(ProxyPort& port, std::byte* to, int pe, std::byte* from, std::uint64_t bytes) {
    begin();
    port.copy(to, port.pe(), port.there(from, pe), pe, bytes);
  }
  void begin() {
    if (firings != nullptr) begun = now();
  }
  void fired(TriggerTag tag, const TriggerFields& fields) {
    if (firings != nullptr) firings->push_back({tag, fields, begun, now()});
  }
};

class ProxyUnit {
 public:
  ProxyUnit(const GpuNicsConfig& config, const ProxyPort::Memory& memory, int pe,
            const TriggerBoard& board)
      : limit_(config.nics.wait_limit),
        board_(board),
        port_(memory, place(config, pe), limit_),
        host_port_(memory.host, place(config, pe), limit_),
        entries_(at(config.nics.early + config.nics.live)),
        over_(at(board.operations)),
        rings_(at(board.pes * board.blocks)),
        queued_(at(board.pes)),
        done_(1),
        table_({entries_.data(), over_.data()},
               {board.operations, config.nics.early, config.nics.live}),
        mover_{config.nics.times ? &firings_ : nullptr, 0},
        nic_(port_, board_, table_, {rings_.data(), queued_.data()}, mover_),
        posts_(host_port_, board_) {
    warm_up();
  }
  ~ProxyUnit() { end(); }
  ProxyUnit(const ProxyUnit&) = delete;
  ProxyUnit& operator=(const ProxyUnit&) = delete;

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  TriggerPosts<HostPort>& posts() { return posts_; }

  std::uint32_t epochs_done(std::uint32_t operation) {
    const gpu::OnDevice here(port_.stream().device());
    gpu::copy(done_.data(), board_.done + operation, sizeof(Flag), port_.stream());
    port_.stream().drain(gpu::Deadline(gpu::kCopyLimit), "a look at completions");
    return static_cast<std::uint32_t>(done_[0].value);
  }

  void end() {
    ending_.store(true, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
    port_.stream().settle();
  }
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  void add_to(NicReport& report) const { add_table(report, host_port_.pe(), table_); }
  const std::vector<Firing>& firings() const { return firings_; }

 private:
  static HostPort::Place place(const GpuNicsConfig& config, int pe) {
    const TriggerSizes& s = config.nics.layout->sizes();
    return {pe, s.pes, s.blocks, s.blocks};
  }
  // All that streams do is done once before a kernel runs: what is made later may wait for it.
  void warm_up() {
    for (int pe = 0; pe < board_.pes; ++pe) {
      auto* const word = reinterpret_cast<std::byte*>(board_.queue_taken + pe);
      if (pe != port_.pe()) port_.copy(port_.there(word, pe), pe, word, port_.pe(), sizeof(Flag));
      port_.put_flag(board_.queue_taken + pe, pe, 0);
    }
    port_.stream().drain(gpu::Deadline(gpu::kCopyLimit), "the start of a proxy");
  }

  void run() {
    try {
      auto wait = port_.start_wait();
      while (true) {
        const bool last = ending_.load(std::memory_order_acquire);
        if (nic_.progress()) {
          wait = port_.start_wait();
          continue;
        }
        if (last) return;
        // The NIC itself never times out; the waits of its clients are bounded.
        if (!port_.keep_waiting(wait)) wait.start = {};
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::chrono::nanoseconds limit_;
  TriggerBoard board_;  // rings, posts in memory of the host
  ProxyPort port_;
  HostPort host_port_;
  std::vector<TriggerEntry> entries_;
  std::vector<std::uint32_t> over_;
  std::vector<TriggerRing> rings_;
  std::vector<Epoch> queued_;
  gpu::PinnedArray<Flag> done_;
  TriggerTable table_;
  std::vector<Firing> firings_;
  StreamMover mover_;
  TriggerNic<ProxyPort, StreamMover> nic_;
  TriggerPosts<HostPort> posts_;
  std::atomic<bool> ending_{false};
  std::exception_ptr failure_;
  std::thread thread_;
};

class ProxyNics final : public GpuNics {
 public:
  explicit ProxyNics(const GpuNicsConfig& config)
      : GpuNics(config), layout_(symmetric_, sizes()), host_(at(pes()) * stride()) {
    for (int pe = 0; pe < pes(); ++pe) parts_.push_back(host_.data() + at(pe) * stride());
    memory_ = {parts_.data(), symmetric_.bytes(), this->config().nics.heaps,
               &this->config().devices};
    try {
      for (int pe = 0; pe < pes(); ++pe)
        units_.push_back(std::make_unique<ProxyUnit>(this->config(), memory_, pe, board(pe)));
      for (auto& unit : units_) unit->start();
    } catch (const std::system_error& e) {
      throw EngineError(std::string("no thread can be started for a proxy (") + e.what() +
                        "); raise the limit of processes (ulimit -u)");
    }
  }
  ~ProxyNics() override { end(); }

  // The kernel's triggers, what was taken of them, posts and buffers are in memory of the host.
  TriggerBoard board(int pe) const override {
    TriggerBoard b = device_board(pe);
    const TriggerBoard host = layout_.board(parts_[at(pe)]);
    b.rings = host.rings;
    b.taken = host.taken;
    b.posts = host.posts;
    b.posted = host.posted;
    b.posts_taken = host.posts_taken;
    b.buffers = host.buffers;
    b.buffer_count = host.buffer_count;
    return b;
  }
  bool reached_by_all() const override { return false; }

  const std::vector<Firing>& firings(int pe) const override { return units_.at(at(pe))->firings(); }

 private:
  std::size_t stride() const { return symmetric_.bytes(); }
  NicReport finish() override {
    end();
    NicReport report;
    for (auto& unit : units_) unit->check();
    for (auto& unit : units_) unit->add_to(report);
    return report;
  }
  void end() {
    end_posts();
    for (auto& unit : units_) unit->end();
  }
  void check(int, const TriggerOperation& o) override {
    if (o.reports != 0U)
      throw Unsupported("tag " + std::to_string(o.first.operation) +
                        ": proxies have no queues of arrivals; use a signal");
  }
  bool hand_over(int pe, const TriggerOperation& operation) override {
    return units_[at(pe)]->posts().post(operation);
  }
  void show_buffer(int pe, std::uint32_t number, std::uint64_t offset,
                   std::uint64_t bytes) override {
    units_[at(pe)]->posts().show_buffer(number, offset, bytes);
  }
  std::uint32_t epochs_done(int pe, std::uint32_t operation) override {
    return units_[at(pe)]->epochs_done(operation);
  }

  SymmetricLayout symmetric_;
  TriggerLayout layout_;
  gpu::MappedArray<std::byte> host_;
  std::vector<std::byte*> parts_;
  ProxyPort::Memory memory_;
  std::vector<std::unique_ptr<ProxyUnit>> units_;
};

}  // namespace

std::unique_ptr<GpuNics> make_proxy_nics(const GpuNicsConfig& config) {
  return std::make_unique<ProxyNics>(config);
}

}  // namespace cpufree::nics
