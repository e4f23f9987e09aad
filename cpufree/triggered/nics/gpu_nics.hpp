// NICs of PEs that are GPUs: what their back ends have in common. Kernels trigger them with the
// board that the NIC gives: its parts lie where this NIC and the kernel both reach them fast.
#pragma once

#include <vector>

#include "cpufree/gpu/stream.hpp"
#include "cpufree/triggered/device/trigger_counters.hpp"
#include "cpufree/triggered/nics/nics.hpp"

namespace cpufree::nics {

struct GpuNicsConfig {
  NicsConfig nics;           // heaps in memory of the devices, whose triggers' part holds zeros
  std::vector<int> devices;  // of each PE; several PEs may have the same
  const CounterLayout* counters = nullptr;  // in the same heaps
  double idle_limit = 600.0;  // seconds without a trigger after which a NIC on a GPU leaves it
};

class GpuNics : public Nics {
 public:
  // For kernels of PE `pe`. Of a NIC that counts by words (CounterTriggers) the rings are idle.
  virtual TriggerBoard board(int pe) const = 0;
  virtual bool counts_by_words() const { return false; }
  TriggerCounters counters(int pe) const;
  // Whether blocks may trigger the NICs of other PEs.
  virtual bool reached_by_all() const { return true; }
  // Multiprocessors of `device` that NICs keep for themselves.
  virtual int multiprocessors_taken(int device) const;
  // A kernel has been launched on a stream of PE `pe`'s device, behind what is there.
  virtual void launched(int pe, const gpu::Stream& stream);

 protected:
  explicit GpuNics(const GpuNicsConfig& config);

  const GpuNicsConfig& config() const { return config_; }
  const TriggerSizes& sizes() const { return config_.nics.layout->sizes(); }
  int pes() const { return sizes().pes; }
  int device(int pe) const { return config_.devices[static_cast<std::size_t>(pe)]; }
  std::byte* heap(int pe) const { return config_.nics.heaps[pe]; }
  TriggerBoard device_board(int pe) const { return config_.nics.layout->board(heap(pe)); }

 private:
  GpuNicsConfig config_;
};

}  // namespace cpufree::nics
