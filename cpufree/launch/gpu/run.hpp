// Runs one kernel on all GPUs of a System to its end, listening to the host meanwhile.
#pragma once

#include <cstddef>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/gpu_p2p/launch.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/engine.hpp"
#include "cpufree/launch/waits.hpp"

namespace cpufree {

// What is launched: a kernel with its arguments, one for each GPU.
struct GpuKernel {
  const void* function = nullptr;
  int blocks = 1;
  int threads = 0;
  std::size_t dynamic_bytes = 0;
};

class GpuRunner {
 public:
  GpuRunner(const std::vector<int>& devices, int blocks);

  const gpu::Stream& stream(std::size_t pe) const { return launch_.stream(pe); }
  // Waits for all streams.
  void synchronize() const;
  // Loads a kernel on all GPUs, with room for its dynamic shared memory.
  void load(const GpuKernel& kernel) const { launch_.load(kernel.function, kernel.dynamic_bytes); }

  // Runs a loaded kernel; `shared` lacks only what is the host's. All that the kernel reads must
  // have arrived on all GPUs. Returns the seconds from the first launch to the last end. Throws
  // WaitTimeout, EngineError, and what `progress` throws, each after all GPUs have ended.
  //
  // With a team, each process runs its own PE, and WaitTimeout, thrown in all of them, tells of the
  // blocks of all. A process that throws anything else has its kernel tell the others to leave.
  double run(const GpuKernel& kernel, std::vector<gpu_p2p::Shared> shared,
             const std::vector<const void*>& args, const Limits& limits, const Progress& progress,
             Team* team = nullptr);

 private:
  // Words that kernels and host share, each on lines of its own.
  struct alignas(128) Word {
    volatile unsigned value;
  };
  struct alignas(128) Reached {
    volatile std::int64_t iteration;
    volatile double residual;
  };

  void reset(std::vector<gpu_p2p::Shared>& shared, const Limits& limits);
  void listen(const Limits& limits, const Progress& progress, Team* team) const;
  bool gave_up() const;
  void stop() noexcept;
  void report_waits(Team* team, double wait_limit);

  gpu_p2p::Launch launch_;
  int blocks_;
  struct Words {
    Word leave, notes;
    Reached reached;
  };
  Words& words() const { return words_[0]; }

  gpu::MappedArray<Words> words_{1};  // in one: the driver takes its time for each allocation
  gpu::MappedArray<WaitRecord> records_;
};

}  // namespace cpufree
