// The back ends of triggered operations on GPUs, by name.
#pragma once

#include <memory>
#include <string>

#include "cpufree/triggered/gpu/pes.hpp"
#include "cpufree/triggered/nics/gpu_nics.hpp"

namespace cpufree::triggered {

// The part of symmetric memory that triggered operations have on GPUs.
struct GpuTriggerLayout {
  TriggerLayout triggers;
  CounterLayout counters;
  GpuTriggerLayout(SymmetricLayout& layout, const TriggerSizes& sizes)
      : triggers(layout, sizes), counters(layout, sizes.operations) {}
};

struct GpuNicsOptions {
  std::string back_end = "copy_engine";  // copy_engine, on_stream, block, proxy
  std::size_t bytes = 0;                 // of a heap
  double wait_limit = 10.0;
  bool times = false;
  int operations = 0;  // that are used on each PE; 0: all that there are
};

// NICs of the PEs. The layout outlives them. Throws InvalidInput for an unknown name.
std::unique_ptr<nics::GpuNics> make_gpu_nics(const GpuPes& pes, const GpuTriggerLayout& layout,
                                             const GpuNicsOptions& options);

}  // namespace cpufree::triggered
