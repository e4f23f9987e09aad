// Runs one kernel on all GPUs of a System to its end, listening to the host meanwhile.
#pragma once

#include <cstddef>
#include <vector>

#include "cpufree/engines/cuda_p2p/launch.hpp"
#include "cpufree/engines/cuda_p2p/memory.hpp"
#include "cpufree/run/result.hpp"
#include "cpufree/run/system.hpp"
#include "cpufree/run/team.hpp"

namespace cpufree {

// What is launched: a kernel with its arguments, one for each GPU.
struct CudaKernel {
  const void* function = nullptr;
  int blocks = 1;
  int threads = 0;
  std::size_t dynamic_bytes = 0;
  int first_blocks = 0;  // not 0: two launches, the first one of so many of the blocks
};

class CudaRunner {
 public:
  // `launchers`: host threads that launch kernels; 1, or 0: one for each device.
  CudaRunner(const std::vector<int>& devices, int blocks, int launchers);

  cudaStream_t stream(std::size_t pe) const { return launch_.stream(pe); }
  // Waits for all streams.
  void synchronize() const;
  // Loads a kernel on all GPUs, with room for its dynamic shared memory.
  void load(const CudaKernel& kernel) const { launch_.load(kernel.function, kernel.dynamic_bytes); }

  // A run is near: threads that launch wake, and look for it.
  void get_ready() { launch_.get_ready(); }

  // Runs a loaded kernel; `shared` lacks only what is the host's. All that the kernel reads must
  // have arrived on all GPUs. Returns the seconds from the first launch to the last end. Throws
  // WaitTimeout, EngineError, and what `progress` throws, each after all GPUs have ended.
  //
  // With a team, each process runs its own PE, and WaitTimeout, thrown in all of them, tells of the
  // blocks of all. A process that throws anything else has its kernel tell the others to leave.
  double run(const CudaKernel& kernel, std::vector<cuda_p2p::Shared> shared,
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

  void reset(std::vector<cuda_p2p::Shared>& shared, const Limits& limits);
  void launch(const CudaKernel& kernel, std::vector<cuda_p2p::Shared>& shared,
              const std::vector<const void*>& args);
  void listen(const Limits& limits, const Progress& progress, Team* team) const;
  bool gave_up() const;
  void stop() noexcept;
  void report_waits(Team* team, double wait_limit);

  cuda_p2p::Launch launch_;
  cuda_p2p::Launch beside_;  // of the second of two launches
  int blocks_;
  cuda_p2p::MappedArray<Word> leave_{1};
  cuda_p2p::MappedArray<Word> notes_{1};
  cuda_p2p::MappedArray<Reached> reached_{1};
  cuda_p2p::MappedArray<WaitRecord> records_;
};

}  // namespace cpufree
