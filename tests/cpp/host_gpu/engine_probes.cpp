// The probes' kernels on the host.
#include "cpufree/probes/kernel.hpp"
#include "cpufree/systems/probes/gpu/kernel.hpp"
#include "host_ports.hpp"

namespace cpufree {

namespace {

template <ProbeWay W>
const void* address() {
  return host_engine::kernel_of<host_engine::Crossing<warp_rig::Port>, ProbeArgs>(
      [](auto& port, const ProbeArgs& args) { probe_kernel<W>(port, args); });
}

}  // namespace

const void* gpu_probe_kernel(ProbeWay way) {
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
