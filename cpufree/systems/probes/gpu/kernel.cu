// The kernels of probes as CUDA launches them, one for each way: each has registers of its own.
#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/probes/kernel.hpp"
#include "cpufree/systems/probes/gpu/kernel.hpp"

namespace cpufree {

namespace {

template <ProbeWay W>
__global__ void __launch_bounds__(1024, 1)
    probe(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ ProbeArgs args) {
  gpu_p2p::Port port(shared, nullptr);
  probe_kernel<W>(port, args);
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
    case ProbeWay::packets:
      return address<ProbeWay::packets>();
    case ProbeWay::get:
      return address<ProbeWay::get>();
  }
  return nullptr;
}

}  // namespace cpufree
