#include <cmath>
#include <limits>

#include "cpufree/triggered/gpu/clocks.hpp"
#include "cpufree/triggered/gpu/rig.hpp"
#include "cpufree/triggered/gpu/studies.hpp"
#include "cpufree/triggered/nics/host_port.hpp"

namespace cpufree::triggered {

namespace {

constexpr int kWarmUp = 3;  // rounds that are not reported
constexpr int kThreads = 1024;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::int64_t host_now() { return static_cast<std::int64_t>(nics::HostPort::now()); }
std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

class GpuMessenger {
 public:
  explicit GpuMessenger(const GpuMessageStudy& study)
      : study_(study),
        rounds_(study.rounds + kWarmUp),
        rig_(study.devices, {2, study.blocks, 64, 1, study.blocks}, study.wait_limit),
        packet_(rig_.layout.reserve<Packet>(1)),
        source_(rig_.layout.reserve<std::byte>(study.bytes)),
        target_(rig_.layout.reserve<std::byte>(study.bytes)) {
    rig_.options.times = true;
    rig_.options.operations = 1;
    rig_.allocate();
    for (int pe = 0; pe < 2; ++pe) stamps_.emplace_back(rig_.pes.device(pe), at(rounds_));
    const bool counts = triggers() && GpuRig::counts_by_words(study.back_end);
    initiator_ = initiator_kernel(counts, study_.order == PostOrder::open);
    const std::string back_end = triggers() ? study.back_end : "none";
    rig_.prepare(initiator_, grid(0), back_end);
    rig_.prepare(target_kernel(), grid(1), back_end);
  }

  GpuMessages run(const Look& look) {
    return rig_.guarded([&] { return run_all(look); });
  }

 private:
  GpuMessages run_all(const Look& look) {
    const GpuClocks clocks = measure_clocks(rig_.pes, packet_, look);
    const gpu::Event over(rig_.pes.device(0));
    if (triggers()) {
      rig_.make_nics(study_.back_end);
      rig_.nics->add_buffer("source", source_.offset, study_.bytes);
      rig_.nics->add_buffer("target", target_.offset, study_.bytes);
      if (posts_ahead(study_.order)) post(0, static_cast<std::uint32_t>(rounds_));
    }
    for (int k = 0; k < rounds_; ++k) one(static_cast<std::uint32_t>(k), over, look);
    rig_.stop_nics();
    return times_of(clocks);
  }

  struct HostTimes {
    std::int64_t start = 0, observed = 0;
  };
  bool triggers() const { return study_.path == Path::triggered; }
  gpu::Grid grid(int pe) const { return {pe == 0 ? study_.blocks : 1, kThreads, 0}; }

  void post(std::uint32_t epoch, std::uint32_t epochs) const {
    TriggerOperation put;
    put.first = {0, epoch};
    put.pe = 1;
    put.source = source_.offset;
    put.open = supplied(study_.order, target_.offset).given;
    put.target = put.open == 0 ? target_.offset : 0;
    put.bytes = study_.bytes;
    put.signal = 0;
    put.threshold = static_cast<std::uint64_t>(study_.blocks);
    put.epochs = epochs;
    rig_.nics->post(0, put);
  }

  MessageArgs args(int pe, std::uint32_t epoch) const {
    MessageArgs a;
    a.verbs = rig_.verbs(pe);
    a.way = triggers()                    ? MessageWay::triggered
            : study_.path == Path::stores ? MessageWay::stores
                                          : MessageWay::silent;
    a.epoch = epoch;
    a.signals = study_.path == Path::stores ? study_.blocks : 1;
    a.bytes = study_.bytes;
    a.source = source_.offset;
    a.target = target_.offset;
    a.before_ns = static_cast<std::uint64_t>(1e9 * study_.before);
    a.after_ns = static_cast<std::uint64_t>(1e9 * study_.after);
    a.stamps = stamps_[at(pe)].data() + epoch;
    return a;
  }

  // The put of the host, or of the stream behind the kernel.
  void put(std::uint32_t epoch) const {
    const gpu::Stream& stream = rig_.pes.stream(0);
    std::byte* const heap = rig_.pes.heap(0);
    rig_.pes.copy(stream, 0, source_.at(heap), 1, target_.at(heap), study_.bytes);
    rig_.pes.signal(stream, 0, rig_.triggers.triggers.board(heap).signals, 1, Epoch{epoch} + 1);
  }

  void one(std::uint32_t epoch, const gpu::Event& over, const Look& look) {
    const MessageArgs first = args(0, epoch), second = args(1, epoch);
    rig_.pes.launch(1, target_kernel(), grid(1), &second);
    const gpu::OnDevice here(rig_.pes.device(0));
    const gpu::Stream& stream = rig_.pes.stream(0);
    HostTimes times;
    times.start = host_now();
    if (study_.order == PostOrder::post_first) post(epoch, 1);
    rig_.pes.launch(0, initiator_, grid(0), &first);
    if (study_.order == PostOrder::launch_first) post(epoch, 1);
    if (study_.path == Path::at_end) put(epoch);
    stream.record(over);
    over.wait(gpu::Deadline(2.0 * study_.wait_limit), "the initiator's kernel");
    times.observed = host_now();
    if (study_.path == Path::host) put(epoch);
    rig_.finish(look);
    host_.push_back(times);
  }

  GpuMessages times_of(const GpuClocks& clocks) const {
    const auto first = stamps_[0].download(), second = stamps_[1].download();
    GpuMessages all;
    all.host_error = clocks.host_error;
    all.pair_error = clocks.pair_error;
    for (int k = 0; k < rounds_; ++k) {
      if (second[at(k)].wrong != 0)
        throw EngineError("a study delivered " + std::to_string(second[at(k)].wrong) +
                          " wrong words of " + std::to_string(study_.bytes / 8) + " in round " +
                          std::to_string(k));
      if (k < kWarmUp) continue;
      const auto since = [&](unsigned long long time, int pe) {
        return 1e-9 * static_cast<double>(static_cast<std::int64_t>(time) + clocks.offset[pe] -
                                          host_[at(k)].start);
      };
      const MessageStamps& s = first[at(k)];
      MessageTimes t;
      t.begun = since(s.begun, 0);
      t.ready = since(s.ready, 0);
      t.sent = triggers() || study_.path == Path::stores ? since(s.sent, 0) : kNone;
      t.ended = since(s.ended, 0);
      t.observed = 1e-9 * static_cast<double>(host_[at(k)].observed - host_[at(k)].start);
      t.seen = since(second[at(k)].seen, 1);
      t.nic_begun = t.nic_ended = kNone;
      add_nic_times(t, k, clocks);
      all.times.push_back(t);
    }
    return all;
  }

  // Of NICs that have a clock: a block that of its GPU, a proxy the host's.
  void add_nic_times(MessageTimes& t, int k, const GpuClocks& clocks) const {
    if (!triggers() || (study_.back_end != "block" && study_.back_end != "proxy")) return;
    const nics::Firing& f = rig_.nics->firings(0).at(at(k));
    const std::int64_t offset = study_.back_end == "block" ? clocks.offset[0] : 0;
    t.nic_begun = 1e-9 * static_cast<double>(f.begun + offset - host_[at(k)].start);
    t.nic_ended = 1e-9 * static_cast<double>(f.ended + offset - host_[at(k)].start);
  }

  GpuMessageStudy study_;
  int rounds_;
  GpuRig rig_;
  Symmetric<Packet> packet_;
  Symmetric<std::byte> source_, target_;
  std::vector<gpu::DeviceArray<MessageStamps>> stamps_;
  const void* initiator_ = nullptr;
  std::vector<HostTimes> host_;
};

}  // namespace

GpuMessages measure_gpu_messages(const GpuMessageStudy& study, const Look& look) {
  require(study.devices.size() == 2, "messages go from one PE to another: name two GPUs");
  require(study.bytes >= 8 && study.bytes % 8 == 0, "a message has a multiple of 8 bytes");
  require(study.rounds >= 1 && study.blocks >= 1, "a study has a round and a block at least");
  require_order(study.order, study.path);
  return GpuMessenger(study).run(look);
}

}  // namespace cpufree::triggered
