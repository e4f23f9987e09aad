// Which GPUs this build can use, and why not.
#include "cpufree/launch/gpu/gpus.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"

namespace cpufree {

namespace {

// The compute capability, times ten, that kernels can be compiled for; that those are for which are
// part of this build, if any are.
constexpr int kOldest = 80;
#if defined(CPUFREE_BUILT_FOR)
constexpr int kBuiltFor = CPUFREE_BUILT_FOR;
#else
constexpr int kBuiltFor = kOldest;
#endif

std::string version_text(int version) {  // 13000 -> "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The number of devices, or why there are none.
int count_devices(std::string& why) {
  int count = 0;
  const gpuError_t status = gpuGetDeviceCount(&count);
  if (status == gpuSuccess && count > 0) return count;
  static_cast<void>(gpuGetLastError());
  int driver = 0;
  static_cast<void>(gpuDriverGetVersion(&driver));
  if (driver == 0)
    why = "there is no NVIDIA driver on this machine, or this process cannot see it";
  else if (status == gpuErrorInsufficientDriver)
    why = "the NVIDIA driver is too old: it has CUDA " + version_text(driver) +
          ", this build needs " + version_text(gpuRuntimeVersion) + "; update the driver";
  else if (status == gpuErrorNoDevice || status == gpuSuccess)
    why =
        "the NVIDIA driver lists no GPU; see nvidia-smi -L, and the environment variable "
        "CUDA_VISIBLE_DEVICES";
  else
    why = std::string("the NVIDIA driver does not start: ") + gpuGetErrorString(status);
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
  if (10 * gpu.major + gpu.minor < kOldest)
    return name + " has compute capability " + std::to_string(gpu.major) + "." +
           std::to_string(gpu.minor) + "; 8.0 or newer is needed";
  if (10 * gpu.major + gpu.minor < kBuiltFor)
    return name + " has compute capability " + std::to_string(gpu.major) + "." +
           std::to_string(gpu.minor) + ", and the kernels of this build are for " +
           std::to_string(kBuiltFor / 10) + "." + std::to_string(kBuiltFor % 10) +
           " and newer: build with CMAKE_CUDA_ARCHITECTURES=" + std::to_string(gpu.major) +
           std::to_string(gpu.minor) + ", or with CPUFREE_KERNELS=USUAL";
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

bool cuda_built() { return true; }

std::string cuda_runtime() { return version_text(gpuRuntimeVersion); }

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
    throw InvalidInput("an array that should lie on a GPU lies on none that CUDA knows of");
  return device;
}

}  // namespace cpufree
