#include "cpufree/triggered/device/packet_allreduce.hpp"
#include "cpufree/triggered/gpu/rig.hpp"
#include "cpufree/triggered/gpu/studies.hpp"

namespace cpufree::triggered {

namespace {

constexpr std::uint32_t kChecked = 5, kWarmUp = 10;

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

class GpuReduction {
 public:
  explicit GpuReduction(const GpuReduceStudy& study)
      : study_(study),
        schedule_{study.way, static_cast<int>(study.devices.size()), study.blocks, study.count},
        value_bytes_(study.single ? sizeof(float) : sizeof(double)),
        rig_(study.devices,
             {schedule_.pes, study.blocks, 64, std::max(1, schedule_.operations()),
              std::max(1, schedule_.signals())},
             study.wait_limit),
        values_(rig_.layout.reserve<std::byte>(at(study.count) * value_bytes_)),
        inbox_(rig_.layout.reserve<std::byte>(inbox_bytes())) {
    rig_.allocate();
    for (int pe = 0; pe < schedule_.pes; ++pe) {
      times_.emplace_back(rig_.pes.device(pe), at(2 * study.blocks));
      wrong_.emplace_back(rig_.pes.device(pe), std::size_t{1});
    }
    kernel_ = reduce_kernel(by(), study.single);
    rig_.prepare(kernel_, grid(), study.by);
  }

  double run(const Look& look) {
    return rig_.guarded([&] { return run_all(look); });
  }

 private:
  double run_all(const Look& look) {
    if (triggers()) {
      rig_.make_nics(study_.by);
      rig_.nics->add_buffer("vectors", values_.offset, rig_.options.bytes - values_.offset);
      study_.single ? post_all<float>() : post_all<double>();
    }
    sum(kChecked, 0, true, look);
    for (const auto& wrong : wrong_)
      if (wrong.download().at(0) != 0) throw EngineError("a study's all-reduce gave a wrong sum");
    write_opposites();
    const double seconds = sum(kWarmUp + study_.repeats, kWarmUp, false, look);
    rig_.stop_nics();
    return seconds;
  }

  bool triggers() const { return study_.by != "stores" && study_.by != "packets"; }
  ReduceBy by() const {
    if (study_.by == "stores") return ReduceBy::stores;
    if (study_.by == "packets") return ReduceBy::packets;
    return GpuRig::counts_by_words(study_.by) ? ReduceBy::words : ReduceBy::rings;
  }
  std::size_t inbox_bytes() const {
    if (by() != ReduceBy::packets) return at(schedule_.inbox()) * value_bytes_;
    return at(study_.single ? packet_inbox<float>(schedule_) : packet_inbox<double>(schedule_)) *
           sizeof(Packet);
  }
  gpu::Grid grid() const { return {study_.blocks, study_.threads, 0}; }

  template <class T>
  void post_all() const {
    for (int pe = 0; pe < schedule_.pes; ++pe)
      for (int block = 0; block < schedule_.blocks; ++block)
        for (int k = 0; k < schedule_.sends(); ++k)
          rig_.nics->post(pe,
                          operation_of<T>(schedule_, pe, block, k, values_.offset, inbox_.offset,
                                          kChecked + kWarmUp + study_.repeats, 0, 0));
  }

  // Values whose sum is zero, so that none grows with the number of all-reduces.
  void write_opposites() const {
    for (int pe = 0; pe < schedule_.pes; ++pe) {
      const double value = pe == 0 ? static_cast<double>(schedule_.pes - 1) : -1.0;
      const gpu::Stream& stream = rig_.pes.stream(pe);
      const gpu::OnDevice here(rig_.pes.device(pe));
      std::byte* const to = values_.at(rig_.pes.heap(pe));
      const std::vector<float> floats(study_.single ? at(study_.count) : 0,
                                      static_cast<float>(value));
      const std::vector<double> doubles(study_.single ? 0 : at(study_.count), value);
      const void* from = study_.single ? static_cast<const void*>(floats.data()) : doubles.data();
      gpu::copy(to, from, at(study_.count) * value_bytes_, stream);
      stream.wait("the values of an all-reduce");
    }
  }

  double sum(std::uint32_t repeats, std::uint32_t warm_up, bool checks, const Look& look) {
    std::vector<GpuReduceArgs> args(at(schedule_.pes));
    for (int pe = 0; pe < schedule_.pes; ++pe) {
      GpuReduceArgs& a = args[at(pe)];
      a.verbs = rig_.verbs(pe);
      a.schedule = schedule_;
      a.values = values_.at(rig_.pes.heap(pe));
      a.inbox = inbox_.at(rig_.pes.heap(pe));
      a.epoch = epoch_;
      a.repeats = repeats;
      a.warm_up = warm_up;
      a.checks = checks ? 1U : 0U;
      a.times = times_[at(pe)].data();
      a.wrong = wrong_[at(pe)].data();
    }
    for (int pe = 0; pe < schedule_.pes; ++pe) rig_.pes.launch(pe, kernel_, grid(), &args[at(pe)]);
    rig_.finish(look);
    epoch_ += repeats;
    double slowest = 0.0;
    for (const auto& times : times_) {
      const auto all = times.download();
      unsigned long long begun = all[0], ended = all[1];
      for (std::size_t b = 1; b < at(study_.blocks); ++b) {
        begun = std::min(begun, all[2 * b]);
        ended = std::max(ended, all[2 * b + 1]);
      }
      slowest = std::max(slowest, 1e-9 * static_cast<double>(ended - begun));
    }
    return slowest / (repeats - warm_up);
  }

  GpuReduceStudy study_;
  VectorSchedule schedule_;
  std::size_t value_bytes_;
  GpuRig rig_;
  Symmetric<std::byte> values_, inbox_;
  std::vector<gpu::DeviceArray<unsigned long long>> times_, wrong_;
  const void* kernel_ = nullptr;
  std::uint32_t epoch_ = 0;
};

}  // namespace

double measure_gpu_allreduce(const GpuReduceStudy& study, const Look& look) {
  require(study.blocks >= 1 && study.count >= 1 && study.repeats >= 1,
          "an all-reduce has blocks, values and repeats");
  require(study.threads >= 32 && study.threads <= 1024 && study.threads % 32 == 0,
          "a block has 32 to 1024 threads, in whole warps");
  require((study.by == "packets") == (study.way == ReduceWay::packets),
          "packets go their own way, and no other goes by packets");
  return GpuReduction(study).run(look);
}

}  // namespace cpufree::triggered
