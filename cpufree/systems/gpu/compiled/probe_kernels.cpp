// The kernels of probes, compiled on this machine when they are first wanted.
#include "cpufree/base/error.hpp"
#include "cpufree/systems/gpu/compiled/kernel_source.hpp"
#include "cpufree/systems/gpu/compiled/store.hpp"
#include "cpufree/systems/probes/gpu/kernel.hpp"

namespace cpufree {

namespace {

const char* name_of(ProbeWay way) {
  switch (way) {
    case ProbeWay::store_thread:
      return "store_thread";
    case ProbeWay::store_warp:
      return "store_warp";
    case ProbeWay::store_block:
      return "store_block";
    case ProbeWay::packets:
      return "packets";
    case ProbeWay::get:
      return "get";
  }
  throw InvalidInput("unknown way of communicating");
}

}  // namespace

const void* gpu_probe_kernel(ProbeWay way, std::span<const int> devices) {
  return only_kernel(compiled_code({probe_source(name_of(way))}, devices)[0]);
}

}  // namespace cpufree
