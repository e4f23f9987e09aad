#include <limits>

#include "cpufree/triggered/gpu/clocks.hpp"
#include "cpufree/triggered/gpu/rig.hpp"
#include "cpufree/triggered/gpu/studies.hpp"

namespace cpufree::triggered {

namespace {

constexpr int kThreads = 1024;
constexpr std::int64_t kCalibration = 100'000;  // steps
constexpr double kNanosecond = 1e-9;

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

class Overlap {
 public:
  explicit Overlap(const OverlapStudy& study)
      : study_(study),
        blocks_(multiprocessors(study)),
        rig_(study.devices, {2, blocks_, 64, study.tags, study.tags}, study.wait_limit),
        packet_(rig_.layout.reserve<Packet>(1)),
        source_(rig_.layout.reserve<std::byte>(study.bytes)),
        target_(rig_.layout.reserve<std::byte>(at(study.tags) * study.bytes)) {
    rig_.options.operations = study.tags;
    rig_.allocate();
    times_ = gpu::DeviceArray<unsigned long long>(rig_.pes.device(0), std::size_t{2});
    sink_ = gpu::DeviceArray<double>(rig_.pes.device(0), std::size_t{1});
    seen_ = gpu::DeviceArray<unsigned long long>(rig_.pes.device(1), at(study.copies));
    busy_ = busy_kernel(GpuRig::counts_by_words(study.back_end));
    rig_.prepare(busy_, grid(), study.back_end);
    rig_.prepare(watch_kernel(), {1, 32, 0}, study.back_end);
  }

  std::vector<OverlapTimes> run(const Look& look) {
    return rig_.guarded([&] { return run_all(look); });
  }

 private:
  std::vector<OverlapTimes> run_all(const Look& look) {
    clocks_ = measure_clocks(rig_.pes, packet_, look);
    const double plain = plain_copy();
    rig_.make_nics(study_.back_end);
    register_puts();
    steps_ = kCalibration;
    run_busy(0, 0, look);  // the clock of the multiprocessors comes up
    steps_ = static_cast<std::int64_t>(kCalibration * study_.seconds / run_busy(0, 0, look).alone);
    std::vector<OverlapTimes> all;
    for (int k = 0; k <= study_.rounds; ++k) {
      OverlapTimes t;
      const bool first_alone = k % 2 == 0;  // what comes first takes turns
      if (first_alone) t.alone = run_busy(0, 0, look).alone;
      const OverlapTimes beside = run_busy(next_, study_.copies, look);
      if (!first_alone) t.alone = run_busy(0, 0, look).alone;
      next_ += static_cast<std::uint32_t>(study_.copies / study_.tags);
      t.beside = beside.alone;
      t.all_seen = beside.all_seen;
      t.one_copy = beside.one_copy;
      t.plain_copy = plain;
      if (k > 0) all.push_back(t);
    }
    rig_.stop_nics();
    return all;
  }

  static int multiprocessors(const OverlapStudy& study) {
    const int all = gpu::multiprocessors(study.devices.front());
    return study.back_end == "block" ? all - 1 : all;
  }
  gpu::Grid grid() const { return {blocks_, kThreads, 0}; }

  void register_puts() {
    rig_.nics->add_buffer("source", source_.offset, study_.bytes);
    rig_.nics->add_buffer("target", target_.offset, at(study_.tags) * study_.bytes);
    for (int tag = 0; tag < study_.tags; ++tag) {
      TriggerOperation put;
      put.first.operation = static_cast<std::uint32_t>(tag);
      put.pe = 1;
      put.source = source_.offset;
      put.target = target_.offset + at(tag) * study_.bytes;
      put.bytes = study_.bytes;
      put.signal = tag;
      put.epochs = static_cast<std::uint32_t>(study_.copies / study_.tags * (study_.rounds + 1));
      rig_.nics->post(0, put);
    }
  }

  // Seconds of a copy among many in a row, with nothing else to do.
  double plain_copy() const {
    constexpr int kCopies = 32;
    const gpu::OnDevice here(rig_.pes.device(0));
    const gpu::Event begun(rig_.pes.device(0), true), ended(rig_.pes.device(0), true);
    const gpu::Stream& stream = rig_.pes.stream(0);
    std::byte* const heap = rig_.pes.heap(0);
    double best = std::numeric_limits<double>::infinity();
    for (int k = 0; k < 3; ++k) {
      rig_.pes.copy(stream, 0, source_.at(heap), 1, target_.at(heap), study_.bytes);
      stream.record(begun);
      for (int c = 0; c < kCopies; ++c)
        rig_.pes.copy(stream, 0, source_.at(heap), 1, target_.at(heap), study_.bytes);
      stream.record(ended);
      ended.wait(gpu::Deadline(study_.wait_limit), "copies");
      best = std::min(best, begun.seconds_until(ended) / kCopies);
    }
    return best;
  }

  // `alone`: seconds of the kernel.
  OverlapTimes run_busy(std::uint32_t first, int copies, const Look& look) {
    times_.rewrite(rig_.pes.device(0), std::vector<unsigned long long>{
                                           std::numeric_limits<unsigned long long>::max(), 0});
    BusyArgs args;
    args.verbs = rig_.verbs(0);
    args.first_epoch = first;
    args.copies = static_cast<std::uint32_t>(copies);
    args.tags = static_cast<std::uint32_t>(study_.tags);
    args.steps = steps_;
    args.times = times_.data();
    args.sink = sink_.data();
    const WatchArgs watch{rig_.verbs(1), first, args.copies, args.tags, seen_.data()};
    if (copies > 0) rig_.pes.launch(1, watch_kernel(), {1, 32, 0}, &watch);
    rig_.pes.launch(0, busy_, grid(), &args);
    rig_.finish(look);
    const auto times = times_.download();
    OverlapTimes t;
    t.alone = kNanosecond * static_cast<double>(times[1] - times[0]);
    if (copies == 0) return t;
    const auto seen = seen_.download();
    const std::int64_t apart = clocks_.offset[1] - clocks_.offset[0];
    t.all_seen = kNanosecond *
                 static_cast<double>(static_cast<std::int64_t>(seen.back() - times[0]) + apart);
    t.one_copy = t.all_seen / copies;
    return t;
  }

  OverlapStudy study_;
  int blocks_;
  GpuRig rig_;
  Symmetric<Packet> packet_;
  Symmetric<std::byte> source_, target_;
  GpuClocks clocks_;
  gpu::DeviceArray<unsigned long long> times_, seen_;
  gpu::DeviceArray<double> sink_;
  const void* busy_ = nullptr;
  std::int64_t steps_ = 0;
  std::uint32_t next_ = 0;
};

}  // namespace

std::vector<OverlapTimes> measure_overlap(const OverlapStudy& study, const Look& look) {
  require(study.devices.size() == 2 && study.devices[0] != study.devices[1],
          "a copy beside a computation goes from one GPU to another: name two");
  require(study.tags >= 1 && study.copies >= 1 && study.copies % study.tags == 0,
          "tags take turns: there is a copy, or more, of each");
  // More at a time would have the kernel wait, in the middle of its arithmetic, for the first ones.
  require(
      study.copies / study.tags <= static_cast<int>(TriggerCounters::kWindow) && study.rounds >= 1,
      "up to " + std::to_string(TriggerCounters::kWindow) +
          " copies of a tag, and one round at least, are measured");
  return Overlap(study).run(look);
}

}  // namespace cpufree::triggered
