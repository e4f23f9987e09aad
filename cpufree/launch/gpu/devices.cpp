#include "cpufree/launch/gpu/devices.hpp"

#include <algorithm>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/engines/gpu_p2p/launch.hpp"
#include "cpufree/launch/gpu/gpus.hpp"

namespace cpufree {

using gpu::OnDevice;

namespace {

std::string text_of(const std::vector<GpuInfo>& gpus) {
  std::string list;
  for (const GpuInfo& gpu : gpus) list += (list.empty() ? "" : ", ") + std::to_string(gpu.index);
  return list;
}

// Blocks that share a multiprocessor's memory, with `blocks` of each PE.
int blocks_of_multiprocessor(const std::vector<int>& devices, int device, int blocks) {
  const int all = blocks * gpu_p2p::pes_on(devices, device);
  const int multiprocessors = gpu::multiprocessors(device);
  return (all + multiprocessors - 1) / multiprocessors;
}

}  // namespace

std::vector<int> choose_devices(int pes, const std::vector<int>& named) {
  require(pes <= gpu_p2p::kMaxPes, "the engine cuda_p2p takes at most " +
                                       std::to_string(gpu_p2p::kMaxPes) + " PEs, not " +
                                       std::to_string(pes));
  std::vector<int> devices = named;
  const auto found = list_gpus();
  if (found.empty()) throw Unsupported("engine cuda_p2p: " + gpu_note());
  if (devices.empty()) {
    if (found.size() < at(pes))
      throw Unsupported(std::to_string(pes) + " PEs need as many GPUs; there are " +
                        std::to_string(found.size()) + ": " + text_of(found));
    for (int k = 0; k < pes; ++k) devices.push_back(found[at(k)].index);
  }
  for (const int device : devices)
    if (std::ranges::find(found, device, &GpuInfo::index) == found.end())
      throw Unsupported("GPU " + std::to_string(device) +
                        " is not one that the engine can use; those are: " + text_of(found));
  return devices;
}

int multiprocessors_of_pe(const std::vector<int>& devices) {
  int least = 1024;
  for (const int device : devices) {
    const int sharing = gpu_p2p::pes_on(devices, device);
    const int all = gpu::multiprocessors(device);
    require(sharing <= all, "GPU " + std::to_string(device) + " has " + std::to_string(all) +
                                " multiprocessors, too few for " + std::to_string(sharing) +
                                " PEs: name it less often");
    least = std::min(least, all / sharing);
  }
  return least;
}

void require_reach(int pes) {
  require(pes <= gpu_p2p::kMaxPes, "GPUs that reach one another's memory work together, " +
                                       std::to_string(gpu_p2p::kMaxPes) + " of them at most, not " +
                                       std::to_string(pes));
}

std::jthread wake_devices(const std::vector<int>& devices) {
  return std::jthread([devices] {
    // The holder of the locks has woken them. Waiting for a solve could take forever: the thread
    // that awaits this one may be its progress function.
    const gpu_p2p::DeviceLocks locks(devices, std::try_to_lock);
    if (!locks.all()) return;
    for (const int device : devices)
      if (gpuSetDevice(device) != gpuSuccess || gpuStart() != gpuSuccess)
        static_cast<void>(gpuGetLastError());
  });
}

std::size_t fast_memory_limit(const void* kernel, const std::vector<int>& devices, int blocks) {
  constexpr std::size_t kSlack = 1024;  // what the runtime keeps of every block's
  std::size_t limit = std::size_t{1} << 30;
  for (const int device : devices) {
    const OnDevice here(device);
    const int each = blocks_of_multiprocessor(devices, device, blocks);
    const std::size_t room = gpu::shared_memory_of_block(device) / at(each);
    const std::size_t taken = gpu::static_shared_memory(kernel) + kSlack;
    limit = std::min(limit, room > taken ? room - taken : 0);
  }
  return limit;
}

void require_residency(const GpuKernel& kernel, const std::vector<int>& devices) {
  for (const int device : devices) {
    const int most =
        gpu::resident_blocks(kernel.function, kernel.threads, device, kernel.dynamic_bytes);
    const int sharing = gpu_p2p::pes_on(devices, device);
    const std::string of_pes =
        sharing > 1 ? " for each of the " + std::to_string(sharing) + " PEs that share it" : "";
    require(most >= sharing * kernel.blocks,
            "GPU " + std::to_string(device) + " runs at most " + std::to_string(most) +
                " blocks of " + std::to_string(kernel.threads) + " threads together, not " +
                std::to_string(kernel.blocks) + of_pes + "; use fewer blocks or threads" +
                (sharing > 1 ? ", or fewer PEs on it" : ""));
  }
}

}  // namespace cpufree
