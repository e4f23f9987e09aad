#include "cpufree/systems/probes/gpu/prober.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/systems/gpu/devices.hpp"
#include "cpufree/systems/gpu/heaps.hpp"
#include "cpufree/systems/gpu/run.hpp"
#include "cpufree/systems/probes/gpu/kernel.hpp"

namespace cpufree {

namespace {

class GpuProber final : public Prober {
 public:
  GpuProber(const std::vector<int>& gpus, int blocks, int threads, std::int64_t bytes)
      : devices_(connected(gpus)),
        locks_(devices_),
        blocks_(blocks),
        threads_(threads),
        memory_(static_cast<int>(devices_.size()), blocks, bytes),
        heaps_(devices_, memory_.bytes()),
        runner_(devices_, blocks) {
    require(threads >= 32 && threads <= 1024 && threads % 32 == 0,
            "blocks of a probe have 32 to 1024 threads, in whole warps");
    clock_ = gpu::DeviceArray<ProbeClock>(devices_[0], std::size_t{1});
    for (const int device : devices_) wrong_.emplace_back(device, at(blocks) * at(threads));
    for (int way = 0; way < kProbeWays; ++way) {
      runner_.load(kernel_of(static_cast<ProbeWay>(way)));
      require_residency(kernel_of(static_cast<ProbeWay>(way)), devices_);
    }
  }

  std::vector<double> run(const ProbeOrder& order) override {
    std::vector<ProbeArgs> args;
    for (std::size_t k = 0; k < devices_.size(); ++k)
      args.push_back(memory_.args(order, heaps_.base(static_cast<int>(k))));
    const gpu::DeviceArray<std::uint64_t> ticks(devices_[0], at(order.repeats));
    std::vector<gpu_p2p::Shared> shared(devices_.size());
    std::vector<const void*> given;
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      args[k].reads = false;
      args[k].epoch = epoch_;
      args[k].ticks = ticks.data();
      args[k].clock = clock_.data();
      args[k].wrong = wrong_[k].data();
      shared[k].pe = static_cast<int>(k);
      shared[k].pes = static_cast<int>(devices_.size());
      for (std::size_t pe = 0; pe < devices_.size(); ++pe)
        shared[k].heaps[pe] = heaps_.base(static_cast<int>(pe));
      shared[k].leave = memory_.leave(heaps_.base(static_cast<int>(k)));
      given.push_back(&args[k]);
    }
    epoch_ += probe_epochs(args.front());
    Limits limits;
    limits.wait_limit = order.wait_limit;
    runner_.run(kernel_of(order.way), std::move(shared), given, limits, {});
    std::vector<std::int64_t> wrong;
    for (const auto& of_pe : wrong_) {
      const auto here = of_pe.download();
      wrong.insert(wrong.end(), here.begin(), here.end());
    }
    return probe_seconds(order, ticks.download(), clock_.download().at(0), wrong);
  }

 private:
  static std::vector<int> connected(const std::vector<int>& gpus) {
    auto devices = choose_devices(gpus.empty() ? 2 : static_cast<int>(gpus.size()), gpus);
    require_reach(static_cast<int>(devices.size()));
    gpu_p2p::connect(devices);
    return devices;
  }
  GpuKernel kernel_of(ProbeWay way) const {
    return {gpu_probe_kernel(way, devices_), blocks_, threads_, 0};
  }

  std::vector<int> devices_;
  gpu_p2p::DeviceLocks locks_;
  int blocks_, threads_;
  ProbeMemory memory_;
  GpuHeaps heaps_;
  GpuRunner runner_;
  gpu::DeviceArray<ProbeClock> clock_;
  std::vector<gpu::DeviceArray<std::int64_t>> wrong_;
  Epoch epoch_ = 0;
};

}  // namespace

std::unique_ptr<Prober> make_gpu_prober(const std::vector<int>& gpus, int blocks, int threads,
                                        std::int64_t bytes) {
  return std::make_unique<GpuProber>(gpus, blocks, threads, bytes);
}

}  // namespace cpufree
