// Which GPUs this build can use, and why not.
#include "cpufree/launch/gpu/gpus.hpp"

#include <gpu_vendor.hpp>

#include "cpufree/engines/gpu_p2p/bootstrap.hpp"

namespace cpufree {

namespace {

// The number of devices, or why there are none.
int count_devices(std::string& why) {
  int count = 0;
  const gpuError_t status = gpuGetDeviceCount(&count);
  if (status == gpuSuccess && count > 0) return count;
  static_cast<void>(gpuGetLastError());
  int driver = 0;
  static_cast<void>(gpuDriverGetVersion(&driver));
  const std::string the_driver = std::string("the ") + gpuVendor + " driver ";
  if (driver == 0)
    why = std::string("there is no ") + gpuVendor +
          " driver on this machine, or this process cannot see it";
  else if (status == gpuErrorInsufficientDriver)
    why = the_driver + "is too old: it has " + gpuRuntimeName + " " + gpuVersionText(driver) +
          ", this build needs " + gpuVersionText(gpuRuntimeVersion) + "; update the driver";
  else if (status == gpuErrorNoDevice || status == gpuSuccess)
    why = the_driver + "lists no GPU; see " + gpuLister + ", and the environment variable " +
          gpuVisibleVariable;
  else
    why = the_driver + "does not start: " + gpuGetErrorString(status);
  return 0;
}

GpuInfo describe(int device) {
  const gpuDeviceProp_t properties = gpu::properties_of(device);
  GpuInfo info;
  info.index = device;
  info.name = properties.name;
  info.memory_bytes = properties.totalGlobalMem;
  info.multiprocessors = properties.multiProcessorCount;
  info.major = properties.major;
  info.minor = properties.minor;
  info.kind = gpuKindOf(properties);
  info.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  for (const char byte : properties.uuid.bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    info.uuid += kDigits[static_cast<unsigned char>(byte) / 16];
    info.uuid += kDigits[static_cast<unsigned char>(byte) % 16];
  }
  return info;
}

// "" if the engine can use it.
std::string flaw_of(const GpuInfo& gpu) {
  const std::string name = "GPU " + std::to_string(gpu.index) + " (" + gpu.name + ")";
  if (const std::string flaw = gpuFlawOf(gpu::properties_of(gpu.index)); !flaw.empty())
    return name + " " + flaw;
  if (!gpu::offers_cooperative_launch(gpu.index))
    return name + " offers no cooperative launch, which the solver needs";
  return "";
}

std::vector<GpuInfo> find_gpus(std::string& why) {
  std::vector<GpuInfo> found;
  try {
    const int count = count_devices(why);
    for (int device = 0; device < count; ++device) {
      GpuInfo gpu = describe(device);
      const std::string flaw = flaw_of(gpu);
      if (flaw.empty())
        found.push_back(std::move(gpu));
      else if (why.empty())
        why = flaw;
    }
  } catch (const Error& error) {
    why = error.what();
  }
  if (!found.empty()) why.clear();
  return found;
}

}  // namespace

std::string gpu_vendor() { return gpuVendor; }

std::string cuda_runtime() { return gpuVersionText(gpuRuntimeVersion); }

std::vector<GpuInfo> list_gpus() {
  std::string why;
  return find_gpus(why);
}

std::string gpu_note() {
  std::string why;
  find_gpus(why);
  return why;
}

std::size_t gpu_free_bytes(int index) {
  const gpu::OnDevice here(index);
  return gpu::memory_info().free;
}

bool gpu_is_started(int index) {
  try {
    return gpu::is_started(index);
  } catch (const Error&) {
    return false;
  }
}

std::string peer_problem(const std::vector<int>& gpus) {
  std::string why;
  const int count = count_devices(why);
  for (const int gpu : gpus)
    if (gpu < 0 || gpu >= count)
      return "there is no GPU " + std::to_string(gpu) + (why.empty() ? "" : ": " + why);
  return gpu_p2p::peer_problem(gpus);
}

int gpu_of(const void* p) {
  int device = -1;
  if (gpuDeviceOf(&device, p) != gpuSuccess) static_cast<void>(gpuGetLastError());
  if (device < 0)
    throw InvalidInput("an array that should lie on a GPU lies on none that " +
                       std::string(gpuRuntimeName) + " knows of");
  return device;
}

}  // namespace cpufree
