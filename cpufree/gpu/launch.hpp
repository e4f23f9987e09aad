// Kernels by their addresses: what they take, how many blocks of them are resident, launches.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cpufree/gpu/device.hpp"

namespace cpufree::gpu {

// Loads a kernel on the device that is current, with so much dynamic shared memory for a block.
inline void load(const void* kernel, std::size_t dynamic_bytes) {
  check_call(gpuFuncSetSharedMemory(kernel, dynamic_bytes), "FuncSetAttribute");
  gpuFuncAttributes_t attributes;
  check_call(gpuFuncGetAttributes(&attributes, kernel), "FuncGetAttributes");
}

// Bytes of a block's shared memory that are the kernel's own, on the device that is current.
inline std::size_t static_shared_memory(const void* kernel) {
  gpuFuncAttributes_t attributes{};
  check_call(gpuFuncGetAttributes(&attributes, kernel), "FuncGetAttributes");
  return attributes.sharedSizeBytes;
}

// Blocks of `threads` threads and `dynamic_bytes` of shared memory of `kernel` that are resident on
// `device` together. The kernel must be `load`ed with as many bytes before.
inline int resident_blocks(const void* kernel, int threads, int device,
                           std::size_t dynamic_bytes = 0) {
  const OnDevice here(device);
  int per_multiprocessor = 0;
  check_call(gpuOccupancyMaxActiveBlocks(&per_multiprocessor, kernel, threads, dynamic_bytes),
             "OccupancyMaxActiveBlocksPerMultiprocessor");
  return per_multiprocessor * multiprocessors(device);
}

// Leaves as much of a multiprocessor's memory to its L1 cache as `blocks` blocks do not need: left
// to itself, a cooperative launch may take most of it for shared memory. `kernel` is `load`ed; the
// device is current.
inline void leave_cache(const void* kernel, int blocks, std::size_t dynamic_bytes, int device) {
  int most = 0;
  int reserved = 0;
  check_call(gpuSharedMemoryOfMultiprocessor(&most, device), "DeviceGetAttribute");
  check_call(gpuReservedSharedMemory(&reserved, device), "DeviceGetAttribute");
  const std::size_t each =
      static_shared_memory(kernel) + dynamic_bytes + static_cast<std::size_t>(reserved);
  const std::size_t percent =
      (100 * each * static_cast<std::size_t>(blocks) - 1) / static_cast<std::size_t>(most) + 1;
  check_call(gpuFuncPreferSharedMemory(kernel, static_cast<int>(percent < 100 ? percent : 100)),
             "FuncSetAttribute");
}

// What is launched, on a stream of the device that is current: arguments[k] is the address of the
// kernel's argument k, copied before the call returns.
struct Grid {
  int blocks = 1;
  int threads = 1;
  std::size_t dynamic_bytes = 0;
};
// Refused where not all blocks find room together.
inline void launch_cooperative(const void* kernel, const Grid& grid, void** arguments,
                               gpuStream_t stream) {
  check_call(gpuLaunchCooperativeKernel(kernel, grid.blocks, grid.threads, arguments,
                                        grid.dynamic_bytes, stream),
             "LaunchCooperativeKernel");
}
// Not refused: what makes sure that blocks which wait for one another find room is the caller's.
inline void launch(const void* kernel, const Grid& grid, void** arguments, gpuStream_t stream) {
  check_call(
      gpuLaunchGrid(kernel, grid.blocks, grid.threads, arguments, grid.dynamic_bytes, stream),
      "LaunchKernel");
}

// Kernels of a file, which stay loaded to the end of the process.
inline gpuLibrary_t load_library(const std::string& file) {
  gpuLibrary_t loaded = nullptr;
  check(gpuLibraryLoad(&loaded, file.c_str()), ("loading " + file).c_str());
  return loaded;
}
// The same for machine code in memory, which is copied.
inline gpuLibrary_t load_code(const std::string& code) {
  gpuLibrary_t loaded = nullptr;
  check(gpuLibraryLoadData(&loaded, code.data(), code.size()), "loading a compiled kernel");
  return loaded;
}
inline const void* find_kernel(gpuLibrary_t library, const std::string& file,
                               const std::string& name) {
  const void* kernel = nullptr;
  check(gpuLibraryGetKernel(&kernel, library, name.c_str()),
        ("finding " + name + " in " + file).c_str());
  return kernel;
}
// A variable of the kernels of a library, on the device that is current.
inline std::span<std::byte> variable(gpuLibrary_t library, const std::string& name) {
  void* begin = nullptr;
  std::size_t bytes = 0;
  check(gpuLibraryGetVariable(&begin, &bytes, library, name.c_str()), ("finding " + name).c_str());
  return {static_cast<std::byte*>(begin), bytes};
}

}  // namespace cpufree::gpu
