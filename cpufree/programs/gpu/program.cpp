#include "cpufree/programs/gpu/program.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/compiler.hpp"
#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/launch/gpu/run.hpp"
#include "cpufree/launch/gpu/trace.hpp"
#include "cpufree/programs/gpu/heaps.hpp"

namespace cpufree {

namespace {

// A product of the same bits wherever it is added: no multiplication is fused with an addition.
GpuKernel kernel_of(const GpuProgramSpec& spec, const std::vector<int>& devices) {
  GpuKernel kernel;
  kernel.function = only_kernel(compiled_code({spec.source}, devices, {gpuCompilerExact})[0]);
  kernel.threads = spec.threads;
  kernel.dynamic_bytes = spec.thread_bytes * at(spec.threads);
  kernel.blocks = spec.most_blocks;
  for (const int device : devices) {
    const gpu::OnDevice here(device);
    gpu::load(kernel.function, kernel.dynamic_bytes);
    kernel.blocks = std::min(kernel.blocks, gpu::resident_blocks(kernel.function, kernel.threads,
                                                                 device, kernel.dynamic_bytes));
  }
  require(kernel.blocks > 0, "no block of the program's kernel fits on a multiprocessor");
  for (const int device : devices) {
    const gpu::OnDevice here(device);
    const int each = (kernel.blocks - 1) / gpu::multiprocessors(device) + 1;
    gpu::leave_cache(kernel.function, each, kernel.dynamic_bytes, device);
  }
  return kernel;
}

class Runs : public GpuProgram {
 public:
  Runs(const GpuProgramSpec& spec, const std::vector<int>& devices)
      : spec_(spec),
        devices_(devices),
        kernel_(kernel_of(spec, devices_)),
        heaps_(devices_, spec.heap_bytes),
        runner_(devices_, kernel_.blocks) {
    runner_.load(kernel_);
  }

  int blocks() const override { return kernel_.blocks; }

  void load(const std::vector<GpuProgramCopy>& copies) override {
    const gpu_p2p::DeviceLocks locks(devices_);
    heaps_.load(copies);
  }
  void store(const std::vector<GpuProgramCopy>& copies) override {
    const gpu_p2p::DeviceLocks locks(devices_);
    heaps_.store(copies);
  }

  ProgramOutcome run(const std::vector<std::int64_t>& scalars, std::vector<std::int64_t>& results,
                     std::vector<std::int64_t>& faults, double wait_limit, const Progress& progress,
                     const TraceSpec& how) override {
    const gpu_p2p::DeviceLocks locks(devices_);
    const gpu::MappedArray<std::int64_t> out(results.size() + faults.size());
    std::vector<std::int64_t*> heads = {out.data(), out.data() + results.size()};
    std::optional<GpuTrace> trace = this->trace(how);
    const std::vector<std::vector<std::byte>> args = arguments(heads, scalars, trace);
    std::vector<const void*> pointers;
    for (const auto& of_pe : args) pointers.push_back(of_pe.data());
    Limits limits;
    limits.wait_limit = wait_limit;
    ProgramOutcome outcome;
    const Progress tell = [&](std::int64_t turn, double) {
      if (progress && !outcome.stopped && !progress(turn, 0.0)) outcome.stopped = true;
      return !outcome.stopped;
    };
    outcome.seconds = launch_traced(trace, [&] {
      return runner_.run(kernel_, shared(), pointers, limits,
                         watched(tell, trace ? trace->watch() : nullptr));
    });
    if (trace) outcome.trace = trace->report(nullptr);
    std::copy_n(out.data(), results.size(), results.begin());
    std::copy_n(out.data() + results.size(), faults.size(), faults.begin());
    return outcome;
  }

 private:
  // The rings of a run, where it is to be traced.
  std::optional<GpuTrace> trace(const TraceSpec& how) const {
    if (!spec_.traced) return std::nullopt;
    std::vector<std::byte*> bases;
    for (std::size_t k = 0; k < devices_.size(); ++k) bases.push_back(heaps_.base(k));
    return GpuTrace(
        how,
        TraceShape::of(static_cast<int>(devices_.size()), kernel_.blocks, kernel_.threads,
                       gpu_p2p::kWarp, how.events, how.kinds, how.every),
        devices_, bases, 0);
  }
  // GridArgs or TracedArgs of each PE, as bytes.
  std::vector<std::vector<std::byte>> arguments(const std::vector<std::int64_t*>& heads,
                                                const std::vector<std::int64_t>& scalars,
                                                const std::optional<GpuTrace>& trace) const {
    std::vector<std::vector<std::byte>> all(devices_.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      const auto add = [&](const auto& words) {
        const auto bytes = std::as_bytes(std::span(words));
        all[k].insert(all[k].end(), bytes.begin(), bytes.end());
      };
      add(heads), add(scalars);
      if (trace) add(std::vector{trace->rings(k)});
    }
    return all;
  }
  std::vector<gpu_p2p::Shared> shared() const {
    std::vector<gpu_p2p::Shared> all(devices_.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      all[k].pe = static_cast<int>(k);
      all[k].pes = static_cast<int>(all.size());
      for (std::size_t pe = 0; pe < all.size(); ++pe) all[k].heaps[pe] = heaps_.base(pe);
      all[k].leave = reinterpret_cast<Flag*>(heaps_.base(k) + spec_.leave_offset);
    }
    return all;
  }

  GpuProgramSpec spec_;
  std::vector<int> devices_;
  GpuKernel kernel_;
  ProgramHeaps heaps_;
  GpuRunner runner_;
};

}  // namespace

std::vector<int> devices_of_program(const std::vector<int>& devices) {
  require(!devices.empty(), "a program on GPUs has PEs");
  std::vector<int> chosen = choose_devices(static_cast<int>(devices.size()), devices);
  gpu_p2p::connect(chosen);
  return chosen;
}

std::unique_ptr<GpuProgram> make_gpu_program(const GpuProgramSpec& spec) {
  require(spec.threads > 0 && spec.most_blocks > 0, "a program on GPUs has threads and blocks");
  const std::vector<int> devices = devices_of_program(spec.devices);
  const gpu_p2p::DeviceLocks locks(devices);
  return std::make_unique<Runs>(spec, devices);
}

}  // namespace cpufree
