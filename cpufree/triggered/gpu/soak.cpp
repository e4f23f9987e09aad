#include <chrono>

#include "cpufree/triggered/gpu/rig.hpp"
#include "cpufree/triggered/gpu/studies.hpp"

namespace cpufree::triggered {

namespace {

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }
constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;

class Soak {
 public:
  explicit Soak(const SoakStudy& study)
      : study_(study),
        pes_(static_cast<int>(study.devices.size())),
        bytes_(at(2 * study.words * study.channels) * sizeof(std::uint64_t)),
        rig_(study.devices, {pes_, blocks(), 64, 2 * study.channels, 2 * study.channels},
             study.wait_limit),
        source_(rig_.layout.reserve<std::byte>(bytes_)),
        target_(rig_.layout.reserve<std::byte>(bytes_)) {
    rig_.options.operations = 2 * study.channels;
    rig_.allocate();
    for (int pe = 0; pe < pes_; ++pe) sums_.emplace_back(rig_.pes.device(pe), std::size_t{2});
    kernel_ = soak_kernel(GpuRig::counts_by_words(study.back_end));
    rig_.prepare(kernel_, grid(), study.back_end);
  }

  SoakResult run(const Look& look) {
    return rig_.guarded([&] { return run_all(look); });
  }

 private:
  SoakResult run_all(const Look& look) {
    rig_.make_nics(study_.back_end);
    rig_.nics->add_buffer("source", source_.offset, bytes_);
    rig_.nics->add_buffer("target", target_.offset, bytes_);
    for (int pe = 0; pe < pes_; ++pe)
      for (int channel = 0; channel < study_.channels; ++channel) post(pe, channel);
    const auto start = std::chrono::steady_clock::now();
    for (int pe = 0; pe < pes_; ++pe) {
      SoakArgs args;
      args.verbs = rig_.verbs(pe);
      args.source = source_.offset;
      args.target = target_.offset;
      args.words = study_.words;
      args.blocks = study_.blocks;
      args.epochs = study_.epochs;
      args.sums = sums_[at(pe)].data();
      rig_.pes.launch(pe, kernel_, grid(), &args);
    }
    rig_.finish(look);
    SoakResult result;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    rig_.stop_nics();
    for (int pe = 0; pe < pes_; ++pe) {
      const auto sums = sums_[at(pe)].download();
      result.checksum += sums[0];
      result.wrong += sums[1];
      result.expected += sum_from(pe);
    }
    return result;
  }

  int blocks() const { return study_.blocks * study_.channels; }
  gpu::Grid grid() const { return {blocks(), 128, 0}; }

  void post(int pe, int channel) const {
    const std::uint64_t share = at(study_.words) * sizeof(std::uint64_t);
    const auto operation = static_cast<std::uint32_t>(2 * channel);
    TriggerOperation data;
    data.first = {operation, 0};
    data.epochs = study_.epochs;
    data.threshold = static_cast<std::uint64_t>(study_.blocks);
    data.pe = (pe + 1) % pes_;
    data.source = source_.offset + at(channel) * share;
    data.target = target_.offset + at(channel) * share;
    data.bytes = share;
    data.source_step = data.target_step = bytes_ / 2;
    data.slots = 2;
    data.signal = 2 * channel;
    TriggerOperation read = data;
    read.first = {operation + 1, 0};
    read.pe = (pe + pes_ - 1) % pes_;
    read.bytes = 0;
    read.signal = 2 * channel + 1;
    rig_.nics->post(pe, data);
    rig_.nics->post(pe, read);
  }

  // The sum of all that a PE sends, modulo 2^64: words are (16 e + pe + 1) F + k.
  std::uint64_t sum_from(int pe) const {
    const std::uint64_t epochs = study_.epochs, words = at(study_.words * study_.channels);
    const std::uint64_t numbers =
        16 * sum_below(epochs) + epochs * (static_cast<std::uint64_t>(pe) + 1);
    return words * numbers * kFactor + epochs * sum_below(words);
  }
  static std::uint64_t sum_below(std::uint64_t n) {
    return n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
  }

  SoakStudy study_;
  int pes_;
  std::uint64_t bytes_;
  GpuRig rig_;
  Symmetric<std::byte> source_, target_;
  std::vector<gpu::DeviceArray<unsigned long long>> sums_;
  const void* kernel_ = nullptr;
};

}  // namespace

SoakResult run_soak(const SoakStudy& study, const Look& look) {
  require(study.devices.size() >= 2, "epochs go from one PE to another: name two GPUs at least");
  require(study.words >= 1 && study.blocks >= 1 && study.epochs >= 1 && study.channels >= 1,
          "a long run has channels, words, blocks and epochs");
  return Soak(study).run(look);
}

double run_flood(const FloodStudy& study, const Look& look) {
  require(study.devices.size() == 1, "one PE triggers");
  const std::int64_t all = std::int64_t{study.blocks} * study.items;
  require(all >= 1 && all < (std::int64_t{1} << 31), "there are 1 to 2147483647 triggers");
  GpuRig rig(study.devices, {1, study.blocks, 1024, 1, 1}, study.wait_limit);
  const auto place = rig.layout.reserve<std::byte>(512);
  rig.options.operations = 1;
  rig.options.times = true;
  rig.allocate();
  const void* const kernel = flood_kernel(GpuRig::counts_by_words(study.back_end));
  const gpu::Grid grid{study.blocks, study.threads, 0};
  rig.prepare(kernel, grid, study.back_end);
  rig.make_nics(study.back_end);
  rig.nics->add_buffer("place", place.offset, 512);
  TriggerOperation put;
  put.source = place.offset;
  put.target = place.offset + 256;
  put.bytes = 8;
  put.threshold = static_cast<std::uint64_t>(all);
  rig.nics->post(0, put);
  const FloodArgs args{rig.verbs(0), study.items};
  const auto start = std::chrono::steady_clock::now();
  rig.pes.launch(0, kernel, grid, &args);
  rig.finish(look);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rig.stop_nics();
  if (rig.nics->firings(0).size() != 1)
    throw EngineError("an operation fired " + std::to_string(rig.nics->firings(0).size()) +
                      " times, not once");
  return seconds;
}

}  // namespace cpufree::triggered
