// Generated kernels on GPUs: compiled on this machine, launched on one GPU for each PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/programs/cpu/cpu_program.hpp"

namespace cpufree {

// What a kernel is, and the memory that it wants.
struct GpuProgramSpec {
  std::string source;        // of one kernel, run_on_gpu(Shared, GridArgs)
  std::vector<int> devices;  // of each PE
  std::size_t heap_bytes = 0;
  std::size_t leave_offset = 0;  // of the flag in the heap that makes all leave
  int threads = 0;               // of a block
  std::size_t thread_bytes = 0;  // of shared memory: a value that is reduced
  int most_blocks = 0;           // of a PE: as many as have something to do
  bool traced = false;           // the kernel takes TracedArgs
};

// Rows of bytes of an array, in memory of the host or of any GPU, and where they lie in the heap of
// a PE.
struct GpuProgramCopy {
  int pe = 0;
  std::size_t offset = 0, pitch = 0;  // in the heap, and from row to row there
  std::byte* array = nullptr;
  std::size_t array_pitch = 0;
  std::size_t width = 0, rows = 0;
};

class GpuProgram {
 public:
  virtual ~GpuProgram() = default;
  virtual int blocks() const = 0;  // of a PE
  // Zeros in all heaps; then these rows.
  virtual void load(const std::vector<GpuProgramCopy>& copies) = 0;
  // To its end. `results` and `faults` (two) are filled. Throws WaitTimeout, EngineError, and what
  // `progress` throws; `stopped` where that has returned false. `trace`: of a kernel that is
  // traced.
  virtual ProgramOutcome run(const std::vector<std::int64_t>& scalars,
                             std::vector<std::int64_t>& results, std::vector<std::int64_t>& faults,
                             double wait_limit, const Progress& progress,
                             const TraceSpec& trace) = 0;
  // Rows back from the heaps.
  virtual void store(const std::vector<GpuProgramCopy>& copies) = 0;
};

// What the host does in a host-driven program.
struct HostedCommand {
  enum class Kind { launch = 0, meet = 1, copy = 2 };
  Kind kind = Kind::meet;
  int pe = 0;
  // A launch: of a kernel, by N blocks, with arguments from a place in all arguments.
  int kernel = 0, blocks = 0;
  std::size_t arguments = 0;
  // A copy: to another PE.
  int to_pe = 0;
  std::size_t from = 0, to = 0, bytes = 0;
};
struct HostedSegment {
  std::vector<HostedCommand> commands;
  std::int64_t repeats = 1;
};

// A program driven by the host: a launch for each sweep, copies between GPUs. Kernels are called
// stage_0, stage_1, ... and take HostedPlace and HostedArgs.
class HostedProgram {
 public:
  virtual ~HostedProgram() = default;
  virtual void load(const std::vector<GpuProgramCopy>& copies) = 0;
  virtual void store(const std::vector<GpuProgramCopy>& copies) = 0;
  // What a run is to do: segments that repeat become graphs over all GPUs. `size`: bytes of the
  // arguments of a launch.
  virtual void prepare(const std::vector<HostedSegment>& segments, const std::string& arguments,
                       std::size_t size) = 0;
  // Returns the seconds from the first launch to the end. Throws EngineError, Stuck.
  virtual double run(std::vector<std::int64_t>& faults, double wait_limit) = 0;
};
std::unique_ptr<HostedProgram> make_hosted_program(const std::string& source, int kernels,
                                                   const std::vector<int>& devices,
                                                   std::size_t heap_bytes, int threads);

// Compiles the kernel, unless it is known or on disk. Throws Unsupported where there is no GPU, or
// no compiler for it; OutOfMemory, EngineError.
std::unique_ptr<GpuProgram> make_gpu_program(const GpuProgramSpec& spec);

}  // namespace cpufree
