#include "cpufree/probes/gpu/prober.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/launch/gpu/heaps.hpp"
#include "cpufree/launch/gpu/run.hpp"
#include "cpufree/probes/gpu/kernel.hpp"

namespace cpufree {

namespace {

template <class T>
std::vector<T> joined(const std::vector<gpu::DeviceArray<T>>& arrays) {
  std::vector<T> all;
  for (const auto& one : arrays) {
    const std::vector<T> here = one.download();
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
}

// What a pattern needs of a GPU for itself.
struct PatternMemory {
  PatternMemory(int device, const PatternOrder& order, const std::vector<std::int64_t>& numbers)
      : ticks(device, at(order.repeats)),
        comm(device, at(order.repeats)),
        product(device, at(order.tile) * at(order.tile)),
        clock(device, std::size_t{1}) {
    if (!numbers.empty()) table = {device, numbers};
  }
  gpu::DeviceArray<std::uint64_t> ticks, comm;
  gpu::DeviceArray<double> product;
  gpu::DeviceArray<ProbeClock> clock;
  gpu::DeviceArray<std::int64_t> table;
};

class GpuProber final : public Prober {
 public:
  GpuProber(const std::vector<int>& gpus, int blocks, int threads, std::int64_t bytes,
            ProbePlace place)
      : devices_(connected(gpus)),
        locks_(devices_),
        blocks_(blocks),
        threads_(threads),
        place_(place),
        memory_(static_cast<int>(devices_.size()), blocks, bytes),
        runner_(devices_, blocks) {
    require(threads >= 32 && threads <= 1024 && threads % 32 == 0,
            "blocks of a probe have 32 to 1024 threads, in whole warps");
    make_heaps();
    clock_ = gpu::DeviceArray<ProbeClock>(devices_[0], std::size_t{1});
    for (const int device : devices_) wrong_.emplace_back(device, at(blocks) * at(threads));
    for (int way = 0; way < kProbeWays; ++way)
      load(gpu_probe_kernel(static_cast<ProbeWay>(way), devices_));
    load(gpu_pattern_kernel(devices_));
  }

  std::vector<double> run(const ProbeOrder& order) override {
    std::vector<ProbeArgs> args;
    for (std::byte* const heap : bases_) args.push_back(memory_.args(order, heap));
    const gpu::DeviceArray<std::uint64_t> ticks(devices_[0], at(order.repeats));
    std::vector<const void*> given;
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      args[k].reads = place_ == ProbePlace::pinned;
      args[k].epoch = epoch_;
      args[k].ticks = ticks.data();
      args[k].clock = clock_.data();
      args[k].wrong = wrong_[k].data();
      given.push_back(&args[k]);
    }
    epoch_ += probe_epochs(args.front());
    launch(gpu_probe_kernel(order.way, devices_), given, order.wait_limit);
    return probe_seconds(order, ticks.download(), clock_.download().at(0), joined(wrong_));
  }

  PatternTimes run(const PatternOrder& order) override {
    const std::vector<std::int64_t> table = memory_.table(order);
    std::vector<PatternMemory> own;
    std::vector<PatternArgs> args;
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      args.push_back(memory_.args(order, bases_[k]));
      own.emplace_back(devices_[k], order, table);
    }
    std::vector<const void*> given;
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      args[k].reads = place_ == ProbePlace::pinned;
      args[k].epoch = pattern_epoch_;
      args[k].values = own[k].table.data();
      args[k].places = own[k].table.data() + table.size() / 2;
      args[k].product = own[k].product.data();
      args[k].ticks = own[k].ticks.data();
      args[k].comm_ticks = own[k].comm.data();
      args[k].clock = own[k].clock.data();
      args[k].wrong = wrong_[k].data();
      given.push_back(&args[k]);
    }
    pattern_epoch_ += pattern_epochs(args.front());
    launch(gpu_pattern_kernel(devices_), given, order.wait_limit);
    std::vector<std::uint64_t> ticks, comm;
    std::vector<ProbeClock> clocks;
    for (const PatternMemory& one : own) {
      const auto rounds = one.ticks.download(), moves = one.comm.download();
      ticks.insert(ticks.end(), rounds.begin(), rounds.end());
      comm.insert(comm.end(), moves.begin(), moves.end());
      clocks.push_back(one.clock.download().at(0));
    }
    return pattern_seconds(ticks, comm, clocks, joined(wrong_));
  }

 private:
  static std::vector<int> connected(const std::vector<int>& gpus) {
    auto devices = choose_devices(gpus.empty() ? 2 : static_cast<int>(gpus.size()), gpus);
    require_reach(static_cast<int>(devices.size()));
    gpu_p2p::connect(devices);
    return devices;
  }
  void make_heaps() {
    if (place_ == ProbePlace::device) {
      heaps_ = std::make_unique<GpuHeaps>(devices_, memory_.bytes());
      for (int pe = 0; pe < static_cast<int>(devices_.size()); ++pe)
        bases_.push_back(heaps_->base(pe));
      return;
    }
    const gpu::OnDevice here(devices_[0]);
    pinned_ = gpu::MappedArray<std::byte>(devices_.size() * memory_.bytes());
    for (std::size_t pe = 0; pe < devices_.size(); ++pe)
      bases_.push_back(pinned_.data() + pe * memory_.bytes());
  }
  GpuKernel kernel_of(const void* function) const { return {function, blocks_, threads_, 0}; }
  void load(const void* function) const {
    runner_.load(kernel_of(function));
    require_residency(kernel_of(function), devices_);
  }
  void launch(const void* function, const std::vector<const void*>& args, double wait_limit) {
    std::vector<gpu_p2p::Shared> shared(devices_.size());
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      shared[k].pe = static_cast<int>(k);
      shared[k].pes = static_cast<int>(devices_.size());
      std::ranges::copy(bases_, shared[k].heaps);
      shared[k].leave = memory_.leave(bases_[k]);
    }
    Limits limits;
    limits.wait_limit = wait_limit;
    runner_.run(kernel_of(function), std::move(shared), args, limits, {});
  }

  std::vector<int> devices_;
  gpu_p2p::DeviceLocks locks_;
  int blocks_, threads_;
  ProbePlace place_;
  ProbeMemory memory_;
  std::unique_ptr<GpuHeaps> heaps_;
  gpu::MappedArray<std::byte> pinned_;
  std::vector<std::byte*> bases_;
  GpuRunner runner_;
  gpu::DeviceArray<ProbeClock> clock_;
  std::vector<gpu::DeviceArray<std::int64_t>> wrong_;
  Epoch epoch_ = 0;
  Epoch pattern_epoch_ = 0;
};

}  // namespace

std::unique_ptr<Prober> make_gpu_prober(const std::vector<int>& gpus, int blocks, int threads,
                                        std::int64_t bytes, ProbePlace place) {
  return std::make_unique<GpuProber>(gpus, blocks, threads, bytes, place);
}

}  // namespace cpufree
