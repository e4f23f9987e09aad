// The kernels of probes as CUDA launches them, one for each way: each has registers of its own.
#include "cpufree/engines/gpu_p2p/bulk_put.cuh"
#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/gpu/error.hpp"
#include "cpufree/probes/gpu/kernel.hpp"
#include "cpufree/probes/gpu/reading.cuh"
#include "cpufree/probes/gpu/tiles.cuh"
#include "cpufree/probes/kernel.hpp"
#include "cpufree/probes/patterns.hpp"

namespace cpufree {

namespace {

// Where it is missing, the way measures stores, and bulk copies are what its name says.
static_assert(!gpu_p2p::kSinceHopper ||
              requires(gpu_p2p::Port& port, double* to, double (*value)(std::int64_t)) {
                put_bulk(port, to, 0, std::int64_t{1}, value);
              });

template <ProbeWay W>
__global__ void __launch_bounds__(1024, 1)
    probe(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ ProbeArgs args) {
  gpu_p2p::Port port(shared, nullptr);
  probe_kernel<W>(port, args);
}

__global__ void __launch_bounds__(1024, 1) pattern(const __grid_constant__ gpu_p2p::Shared shared,
                                                   const __grid_constant__ PatternArgs args) {
  gpu_p2p::Port port(shared, nullptr);
  pattern_kernel(port, args);
}

__global__ void nothing() {}

__global__ void __launch_bounds__(kReadingThreads)
    reading(const double* values, std::int64_t count, double* sum) {
  read_all(values, count, sum);
}

__global__ void __launch_bounds__(kTileThreads)
    tile_product(const __grid_constant__ ProductArgs args) {
  multiply_tiles(args);
}

template <ProbeWay W>
const void* address() {
  return reinterpret_cast<const void*>(probe<W>);
}

}  // namespace

const void* gpu_probe_kernel(ProbeWay way, std::span<const int>) {
  switch (way) {
    case ProbeWay::store_thread:
      return address<ProbeWay::store_thread>();
    case ProbeWay::store_warp:
      return address<ProbeWay::store_warp>();
    case ProbeWay::store_block:
      return address<ProbeWay::store_block>();
    case ProbeWay::bulk:
      return address<ProbeWay::bulk>();
    case ProbeWay::packets:
      return address<ProbeWay::packets>();
    case ProbeWay::get:
      return address<ProbeWay::get>();
  }
  return nullptr;
}

const void* gpu_pattern_kernel(std::span<const int>) {
  return reinterpret_cast<const void*>(pattern);
}

void launch_nothing(gpuStream_t stream) {
  nothing<<<1, 32, 0, stream>>>();
  gpu::check(gpuGetLastError(), "launch of a kernel that does nothing");
}

void launch_reading(const double* values, std::int64_t count, double* sum, gpuStream_t stream) {
  reading<<<kReadingBlocks, kReadingThreads, 0, stream>>>(values, count, sum);
  gpu::check(gpuGetLastError(), "launch of a kernel that reads");
}

void launch_product(const ProductArgs& args, int blocks, gpuStream_t stream) {
  tile_product<<<static_cast<unsigned>(blocks), kTileThreads, 0, stream>>>(args);
  gpu::check(gpuGetLastError(), "launch of a kernel that multiplies");
}

}  // namespace cpufree
