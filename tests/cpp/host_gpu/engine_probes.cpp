// The probes' kernels on the host.
#include <numeric>

#include "cpufree/gpu/error.hpp"
#include "cpufree/probes/gpu/kernel.hpp"
#include "cpufree/probes/kernel.hpp"
#include "cpufree/probes/patterns.hpp"
#include "host_ports.hpp"

namespace cpufree {

namespace {

// A machine of fibers finds waits that can never end: nothing has been stored since all have
// looked. It does not see what GPUs on other threads store. A PE that begins with a wait stores
// something itself before, after which not all of its threads have looked.
template <class P>
void store_something(P& port) {
  static thread_local double nothing = 0.0;
  port.put(&nothing, port.pe(), 0.0);
}

// Stores that are on their way when all threads of a machine have ended are lost: another GPU may
// wait for the last of them. Each step delivers some.
template <class P>
void let_stores_arrive(P& port) {
  auto wait = port.start_wait();
  for (int step = 0; step < 400; ++step)
    if (!port.keep_waiting(wait)) return;
}

template <ProbeWay W>
const void* address() {
  return host_engine::kernel_of<host_engine::Crossing<warp_rig::Port>, ProbeArgs>(
      [](auto& port, const ProbeArgs& args) {
        store_something(port);
        probe_kernel<W>(port, args);
        let_stores_arrive(port);
      });
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
  return host_engine::kernel_of<host_engine::Crossing<warp_rig::Port>, PatternArgs>(
      [](auto& port, const PatternArgs& args) {
        store_something(port);
        pattern_kernel(port, args);
        let_stores_arrive(port);
      });
}

void launch_nothing(gpuStream_t stream) {
  gpu::check(host_gpu::launch(stream, {{}, [] {}, {}, 0, {}, {}}), "launch of nothing");
}

void launch_reading(const double* values, std::int64_t count, double* sum, gpuStream_t stream) {
  const auto read = [=] { *sum = std::accumulate(values, values + count, 0.0); };
  gpu::check(host_gpu::launch(stream, {{}, read, {}, 0, {}, {}}), "launch of a kernel that reads");
}

void launch_product(const ProductArgs& args, int, gpuStream_t stream) {
  const auto multiply = [t = args] {
    for (std::int64_t row = 0; row < t.rows; ++row)
      for (std::int64_t column = 0; column < t.rows; ++column) {
        double& sum = t.c[row * t.rows + column];
        sum = t.first ? 0.0 : sum;
        for (std::int64_t k = 0; k < t.rows; ++k)
          sum += t.a[row * t.rows + k] * t.b[k * t.rows + column];
      }
  };
  gpu::check(host_gpu::launch(stream, {{}, multiply, {}, 0, {}, {}}),
             "launch of a kernel that multiplies");
}

}  // namespace cpufree
