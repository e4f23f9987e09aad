// Probes on GPUs that reach one another's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/probes/host/prober.hpp"

namespace cpufree {

// Where the symmetric memory of PEs on GPUs lies.
enum class ProbePlace {
  device,  // on the GPU of each
  pinned   // on the host, where kernels read and write it through the GPU's link to that
};
// Throws InvalidInput for another name.
inline ProbePlace probe_place_from_name(const std::string& name) {
  if (name == "device") return ProbePlace::device;
  if (name == "pinned") return ProbePlace::pinned;
  throw InvalidInput("memory of probes lies on the device, or is pinned; not '" + name + "'");
}

// A PE on each of the GPUs, of N blocks and threads; none: two GPUs. `bytes`: see
// ProbeMemory. In memory of GPUs, messages count as received when their flag has been seen: their
// values lie in the receiver's memory then, and are not read. From the host they come when they are
// read. Throws InvalidInput, Unsupported, OutOfMemory.
std::unique_ptr<Prober> make_gpu_prober(const std::vector<int>& gpus, int blocks, int threads,
                                        std::int64_t bytes, ProbePlace place = ProbePlace::device);

}  // namespace cpufree
