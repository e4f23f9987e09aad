#include "cpufree/triggered/nics/block/nics.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "cpufree/base/error.hpp"
#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/gpu/stream_words.hpp"
#include "cpufree/triggered/nics/block/kernel.hpp"
#include "cpufree/triggered/nics/host_port.hpp"

namespace cpufree::nics {

namespace {

constexpr std::uint64_t kMostFirings = 1U << 16;  // that are written down

std::size_t size_of(int count) { return static_cast<std::size_t>(count); }

// The NIC of one PE, seen by its host. Posts go to the device by a stream, in order: the operation,
// then the number of posts. What the NIC has taken of them it writes to memory of the host.
class BlockUnit {
 public:
  BlockUnit(const GpuNicsConfig& config, int pe, const TriggerBoard& board)
      : config_(config),
        pe_(pe),
        board_(board),
        nic_stream_(device(), true),
        post_stream_(device(), true),
        entries_(device(), size_of(config.nics.early + config.nics.live)),
        over_(device(), size_of(board.operations)),
        rings_(device(), size_of(board.pes * board.blocks)),
        queued_(device(), size_of(board.pes)),
        log_(device(), config.nics.times ? kMostFirings : 0),
        end_(device(), 1),
        leave_(device(), 1),
        staged_(size_of(board.depth)),
        taken_(1),
        ending_(2),
        records_(1),
        done_(1) {
    board_.posts_taken = taken_.data();
    board_.own_scope = Scope::pe;
  }
  ~BlockUnit() { end(); }
  BlockUnit(const BlockUnit&) = delete;
  BlockUnit& operator=(const BlockUnit&) = delete;

  void load() const {
    const gpu::OnDevice here(device());
    gpu::load(block_nic_kernel(), 0);
  }

  void launch() {
    gpu_p2p::Shared shared;
    shared.pe = pe_;
    shared.pes = board_.pes;
    for (int k = 0; k < board_.pes; ++k) shared.heaps[k] = config_.nics.heaps[k];
    shared.leave = leave_.data();
    shared.host_leave = ending_.data() + 1;  // never written: `ending` is another word
    shared.records = records_.data();
    shared.wait_limit_ns = static_cast<std::uint64_t>(config_.nics.wait_limit.count());
    BlockNicArgs args;
    args.board = board_;
    args.memory = {entries_.data(), over_.data()};
    args.limits = {board_.operations, config_.nics.early, config_.nics.live};
    args.rings = rings_.data();
    args.queued = queued_.data();
    args.log = config_.nics.times ? log_.data() : nullptr;
    args.log_size = log_.size();
    args.end = end_.data();
    args.ending = ending_.data();
    args.idle_limit_ns = static_cast<std::uint64_t>(1e9 * config_.idle_limit);
    const gpu::OnDevice here(device());
    void* parameters[] = {&shared, &args};
    gpu::launch(block_nic_kernel(), {1, kNicThreads, 0}, parameters, nic_stream_);
    running_ = true;
  }

  bool post(const TriggerOperation& operation) {
    const auto depth = static_cast<Epoch>(board_.depth);
    HostPort port(config_.nics.heaps, {pe_, board_.pes, 0, 1}, config_.nics.wait_limit);
    if (posts_ >= depth && !wait_flag(port, taken_.data(), posts_ + 1 - depth,
                                      WaitSite{Channel::trigger_room, pe_, 0}))
      return false;
    const auto slot = static_cast<std::size_t>(posts_ % depth);
    staged_[slot] = operation;
    const gpu::OnDevice here(device());
    gpu::copy(board_.posts + slot, &staged_[slot], sizeof(TriggerOperation), post_stream_);
    gpu::write_word(post_stream_, board_.posted, ++posts_);
    return true;
  }

  // Word by word: at each moment the entry is what it was, none, or what it will be.
  void show_buffer(std::uint32_t number, std::uint64_t offset, std::uint64_t bytes) {
    const gpu::OnDevice here(device());
    Packet* const entry = board_.buffers + number;
    gpu::write_word(post_stream_, &entry->tag, 0);
    gpu::write_word(post_stream_, &entry->value,
                    std::bit_cast<std::uint64_t>(packed_place(offset)));
    gpu::write_word(post_stream_, &entry->tag, bytes);
    if (number >= buffers_)
      gpu::write_word(post_stream_, board_.buffer_count, buffers_ = Epoch{number} + 1);
    // A kernel that names it may be launched by another stream.
    post_stream_.drain(gpu::Deadline(gpu::kCopyLimit), "a buffer that a NIC is told of");
  }

  std::uint32_t epochs_done(std::uint32_t operation) {
    const gpu::OnDevice here(device());
    gpu::copy(done_.data(), board_.done + operation, sizeof(Flag), post_stream_);
    post_stream_.drain(gpu::Deadline(gpu::kCopyLimit), "a look at a NIC's completions");
    return static_cast<std::uint32_t>(done_[0].value);
  }

  // Ends the NIC once all that was posted and triggered has been taken.
  void end() noexcept {
    if (!running_) return;
    running_ = false;
    post_stream_.settle();
    *const_cast<volatile unsigned*>(ending_.data()) = 1;
    nic_stream_.settle();
  }

  void add_to(NicReport& report) {
    const NicEnd end = end_.download().at(0);
    require_ended(end);
    auto entries = entries_.download();
    auto over = over_.download();
    alignas(TriggerTable) unsigned char room[sizeof(TriggerTable)];
    std::memcpy(room, end.table, sizeof(room));
    auto& table = *std::launder(reinterpret_cast<TriggerTable*>(room));
    table.move_to({entries.data(), over.data()});
    add_table(report, pe_, table);
    for (const FiringEntry& f : log_.download(std::min(end.firings, std::uint64_t{log_.size()})))
      firings_.push_back({f.tag, f.fields, static_cast<std::int64_t>(f.begun),
                          static_cast<std::int64_t>(f.ended)});
  }
  const std::vector<Firing>& firings() const { return firings_; }

 private:
  int device() const { return config_.devices[size_of(pe_)]; }

  void require_ended(const NicEnd& end) const {
    const std::string who = "the NIC of PE " + std::to_string(pe_) + ", a block of GPU " +
                            std::to_string(device()) + ", ";
    if (end.idle != 0U)
      throw EngineError(who + "left after " + std::to_string(config_.idle_limit) +
                        " s without a trigger; stop it sooner, or raise the limit");
    if (end.gave_up != 0U)
      throw EngineError(who + "waited too long for room in a queue: read what has arrived there");
  }

  GpuNicsConfig config_;
  int pe_;
  TriggerBoard board_;
  gpu::Stream nic_stream_, post_stream_;
  gpu::DeviceArray<TriggerEntry> entries_;
  gpu::DeviceArray<std::uint32_t> over_;
  gpu::DeviceArray<TriggerRing> rings_;
  gpu::DeviceArray<Epoch> queued_;
  gpu::DeviceArray<FiringEntry> log_;
  gpu::DeviceArray<NicEnd> end_;
  gpu::DeviceArray<Flag> leave_;
  gpu::PinnedArray<TriggerOperation> staged_;
  gpu::MappedArray<Flag> taken_;
  gpu::MappedArray<unsigned> ending_;
  gpu::MappedArray<WaitRecord> records_;
  gpu::PinnedArray<Flag> done_;
  Epoch posts_ = 0;
  Epoch buffers_ = 0;  // entries that have been written
  bool running_ = false;
  std::vector<Firing> firings_;
};

class BlockNics final : public GpuNics {
 public:
  explicit BlockNics(const GpuNicsConfig& config) : GpuNics(config) {
    for (int pe = 0; pe < pes(); ++pe)
      units_.push_back(std::make_unique<BlockUnit>(this->config(), pe, device_board(pe)));
    // All are loaded before one runs.
    for (auto& unit : units_) unit->load();
    for (auto& unit : units_) unit->launch();
  }
  ~BlockNics() override { end(); }

  TriggerBoard board(int pe) const override {
    TriggerBoard b = device_board(pe);
    b.own_scope = Scope::pe;
    return b;
  }
  int multiprocessors_taken(int where) const override {
    return static_cast<int>(std::ranges::count(config().devices, where));
  }

  const std::vector<Firing>& firings(int pe) const override {
    return units_.at(size_of(pe))->firings();
  }

 private:
  NicReport finish() override {
    end();
    NicReport report;
    for (auto& unit : units_) unit->add_to(report);
    return report;
  }
  void end() {
    end_posts();
    for (auto& unit : units_) unit->end();
  }
  bool hand_over(int pe, const TriggerOperation& operation) override {
    return units_[size_of(pe)]->post(operation);
  }
  void show_buffer(int pe, std::uint32_t number, std::uint64_t offset,
                   std::uint64_t bytes) override {
    units_[size_of(pe)]->show_buffer(number, offset, bytes);
  }
  std::uint32_t epochs_done(int pe, std::uint32_t operation) override {
    return units_[size_of(pe)]->epochs_done(operation);
  }

  std::vector<std::unique_ptr<BlockUnit>> units_;
};

}  // namespace

std::unique_ptr<GpuNics> make_block_nics(const GpuNicsConfig& config) {
  return std::make_unique<BlockNics>(config);
}

}  // namespace cpufree::nics
