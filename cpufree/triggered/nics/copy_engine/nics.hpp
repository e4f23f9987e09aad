// Triggered operations by the copy engines: streams of the host that wait for a counter.
//
// Each operation has a stream, on which the host queues ahead, epoch by epoch: wait until the word
// of the epoch has its triggers; copy; write the signal; write `done`. Nothing runs on a GPU and
// the host is on no path: it only keeps streams supplied.
//
// Why no stream waits for another one's operation: there are fewer of them than connections from
// the host to a device (CUDA_DEVICE_MAX_CONNECTIONS, which must be set to kConnections before the
// runtime starts), so that each has its own. Streams are made, and all that they do is done once,
// before any of them waits: what is loaded or made later would wait behind those that wait.
#pragma once

#include <memory>

#include "cpufree/triggered/nics/gpu_nics.hpp"

namespace cpufree::nics {

inline constexpr int kConnections = 32;
inline constexpr int kMostLines = 24;  // streams of operations on one device; kernels need others

struct CopyEngineOptions {
  // Operations fire at the end of a kernel that was launched after they were posted (GPU-direct
  // Sync: the put is queued behind the kernel), and not within it.
  bool at_kernel_end = false;
  int operations = 0;  // used on each PE, one stream for each; 0: the maximum
};

// Throws Unsupported, EngineError, OutOfMemory.
std::unique_ptr<GpuNics> make_copy_engine_nics(const GpuNicsConfig& config,
                                               const CopyEngineOptions& options);

}  // namespace cpufree::nics
