// Kernels of probes that are compiled on this machine when they are first wanted.
#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/probes/gpu/compiled/probe_source.hpp"
#include "cpufree/probes/gpu/kernel.hpp"

namespace cpufree {

namespace {

// All of them together: a caller that wants one will want the others.
std::vector<gpuLibrary_t> codes(std::span<const int> devices) {
  std::vector<std::string> sources;
  for (int way = 0; way < kProbeWays; ++way)
    sources.push_back(probe_source(static_cast<ProbeWay>(way)));
  sources.push_back(pattern_source());
  return compiled_code(sources, devices);
}

// A kernel without a port, for the device that is current.
const void* plain_kernel(const char* name) {
  int device = 0;
  gpu::check_call(gpuGetDevice(&device), "GetDevice");
  const int devices[] = {device};
  return gpu::find_kernel(compiled_code({reading_source()}, devices)[0], "compiled kernels", name);
}

}  // namespace

const void* gpu_probe_kernel(ProbeWay way, std::span<const int> devices) {
  return only_kernel(codes(devices)[static_cast<std::size_t>(way)]);
}

const void* gpu_pattern_kernel(std::span<const int> devices) {
  return only_kernel(codes(devices)[kProbeWays]);
}

void launch_nothing(gpuStream_t stream) {
  static const void* const kernel = plain_kernel("nothing");
  gpu::check(gpuLaunchKernel(kernel, 1, 32, nullptr, stream),
             "launch of a kernel that does nothing");
}

void launch_reading(const double* values, std::int64_t count, double* sum, gpuStream_t stream) {
  static const void* const kernel = plain_kernel("reading");
  void* arguments[] = {&values, &count, &sum};
  gpu::check(gpuLaunchKernel(kernel, kReadingBlocks, kReadingThreads, arguments, stream),
             "launch of a kernel that reads");
}

void launch_product(const ProductArgs& args, int blocks, gpuStream_t stream) {
  static const void* const kernel = plain_kernel("tile_product");
  ProductArgs given = args;
  void* arguments[] = {&given};
  gpu::check(
      gpuLaunchKernel(kernel, static_cast<unsigned>(blocks), kTileThreads, arguments, stream),
      "launch of a kernel that multiplies");
}

}  // namespace cpufree
