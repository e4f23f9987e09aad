// Programs driven by the host, the opponents of those that run as one kernel.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/compiler.hpp"
#include "cpufree/gpu/graph.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/programs/args.hpp"
#include "cpufree/programs/gpu/heaps.hpp"

namespace cpufree {

namespace {

class Hosted : public HostedProgram {
 public:
  Hosted(const std::string& source, int kernels, const std::vector<int>& devices,
         std::size_t heap_bytes, int threads)
      : devices_(devices), heaps_(devices, heap_bytes), threads_(threads) {
    const gpuLibrary_t code = compiled_code({source}, devices, {gpuCompilerExact})[0];
    for (int k = 0; k < kernels; ++k)
      kernels_.push_back(
          gpu::find_kernel(code, "a compiled program", "stage_" + std::to_string(k)));
    for (std::size_t pe = 0; pe < devices.size(); ++pe) {
      const gpu::OnDevice here(devices[pe]);
      for (const void* kernel : kernels_) gpu::load(kernel, 0);
      here_.emplace_back(devices[pe]);
      programs::HostedPlace& place = places_.emplace_back();
      place = {heaps_.base(pe),
               faults_.data(),
               static_cast<int>(pe),
               static_cast<int>(devices.size()),
               {}};
      for (std::size_t other = 0; other < devices.size(); ++other)
        place.heaps[other] = heaps_.base(other);
    }
  }

  void load(const std::vector<GpuProgramCopy>& copies) override {
    const gpu_p2p::DeviceLocks locks(devices_);
    heaps_.load(copies);
  }
  void store(const std::vector<GpuProgramCopy>& copies) override {
    const gpu_p2p::DeviceLocks locks(devices_);
    heaps_.store(copies);
  }

  void prepare(const std::vector<HostedSegment>& segments, const std::string& arguments,
               std::size_t size) override {
    const gpu_p2p::DeviceLocks locks(devices_);
    arguments_ = arguments;
    for (const HostedSegment& segment : segments)
      for (const HostedCommand& c : segment.commands) check(c, size);
    parts_.clear();
    for (const HostedSegment& segment : segments) {
      Part& part = parts_.emplace_back();
      part.segment = segment;
      if (segment.repeats < 2) continue;
      part.graph = gpu::Graph::record(heaps_.stream(0), [&] {
        gather(0);  // the other streams become part of what is recorded
        issue(segment.commands);
        join(0);
      });
    }
  }

  double run(std::vector<std::int64_t>& faults, double wait_limit) override {
    const gpu_p2p::DeviceLocks locks(devices_);
    std::fill_n(faults_.data(), 2, 0);
    const auto start = std::chrono::steady_clock::now();
    for (const Part& part : parts_) {
      if (!part.graph) {
        issue(part.segment.commands);
        continue;
      }
      meet();
      for (std::int64_t k = 0; k < part.segment.repeats; ++k) part.graph->launch(heaps_.stream(0));
      gather(0);
    }
    heaps_.drain(wait_limit, "a host-driven program");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    faults.assign(faults_.data(), faults_.data() + 2);
    return seconds.count();
  }

 private:
  struct Part {
    HostedSegment segment;
    std::optional<gpu::Graph> graph;
  };

  void check(const HostedCommand& c, std::size_t size) const {
    const auto pes = static_cast<int>(devices_.size());
    require(c.pe >= 0 && c.pe < pes && c.to_pe >= 0 && c.to_pe < pes, "a PE of the program");
    if (c.kind == HostedCommand::Kind::launch)
      require(c.kernel >= 0 && at(c.kernel) < kernels_.size() && c.blocks > 0 &&
                  c.arguments + size <= arguments_.size(),
              "a launch has a kernel, blocks and arguments");
  }

  void issue(const std::vector<HostedCommand>& commands) const {
    for (const HostedCommand& c : commands) {
      if (c.kind == HostedCommand::Kind::meet) {
        meet();
        continue;
      }
      const gpu::OnDevice here(devices_[at(c.pe)]);
      const gpu::Stream& stream = heaps_.stream(at(c.pe));
      if (c.kind == HostedCommand::Kind::launch) {
        programs::HostedPlace place = places_[at(c.pe)];
        void* parameters[] = {&place, const_cast<char*>(arguments_.data()) + c.arguments};
        gpu::check_call(gpuLaunchKernel(kernels_[at(c.kernel)], static_cast<unsigned>(c.blocks),
                                        threads_, parameters, stream),
                        "LaunchKernel");
      } else {
        gpu::copy(heaps_.base(at(c.to_pe)) + c.to, heaps_.base(at(c.pe)) + c.from, c.bytes, stream);
      }
    }
  }

  // What follows on any stream comes after all that is before on all of them.
  void meet() const {
    if (devices_.size() == 1) return;
    for (std::size_t pe = 0; pe < devices_.size(); ++pe) {
      const gpu::OnDevice here(devices_[pe]);
      heaps_.stream(pe).record(here_[pe]);
    }
    for (std::size_t pe = 0; pe < devices_.size(); ++pe)
      for (std::size_t other = 0; other < devices_.size(); ++other)
        if (other != pe) {
          const gpu::OnDevice here(devices_[pe]);
          heaps_.stream(pe).wait_for(here_[other]);
        }
  }
  // What follows on any stream comes after what is before on the first one.
  void gather(std::size_t first) const {
    {
      const gpu::OnDevice here(devices_[first]);
      heaps_.stream(first).record(here_[first]);
    }
    for (std::size_t pe = 0; pe < devices_.size(); ++pe)
      if (pe != first) {
        const gpu::OnDevice here(devices_[pe]);
        heaps_.stream(pe).wait_for(here_[first]);
      }
  }

  // What follows on the first stream comes after what is before on any.
  void join(std::size_t first) const {
    for (std::size_t pe = 0; pe < devices_.size(); ++pe)
      if (pe != first) {
        {
          const gpu::OnDevice here(devices_[pe]);
          heaps_.stream(pe).record(here_[pe]);
        }
        const gpu::OnDevice here(devices_[first]);
        heaps_.stream(first).wait_for(here_[pe]);
      }
  }

  std::vector<int> devices_;
  ProgramHeaps heaps_;
  int threads_;
  std::vector<const void*> kernels_;
  gpu::MappedArray<std::int64_t> faults_{2};
  std::vector<gpu::Event> here_;
  std::vector<programs::HostedPlace> places_;
  std::string arguments_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<HostedProgram> make_hosted_program(const std::string& source, int kernels,
                                                   const std::vector<int>& devices,
                                                   std::size_t heap_bytes, int threads) {
  require(kernels > 0 && threads > 0, "a program on GPUs has kernels and threads");
  require(devices.size() <= programs::kMostHostedPes, "a host-driven program has up to 16 PEs");
  const std::vector<int> chosen = devices_of_program(devices);
  const gpu_p2p::DeviceLocks locks(chosen);
  return std::make_unique<Hosted>(source, kernels, chosen, heap_bytes, threads);
}

}  // namespace cpufree
