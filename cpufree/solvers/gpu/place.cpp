#include "cpufree/solvers/gpu/place.hpp"

#include <algorithm>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/engines/gpu_p2p/launch.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/launch/gpu/heaps.hpp"
#include "cpufree/solvers/gpu/plan/host_layout.hpp"

namespace cpufree {

namespace {

// Which PEs are a node: as many as are asked for, or those that the library says.
NodeTable choose_nodes(const GpuPlace& place, std::int64_t rows, std::size_t value_bytes) {
  const SystemSpec& spec = place.spec;
  if (in_nodes(spec)) return NodeTable::of_size(spec.pes, spec.node_size);
  if (spec.node_size != 0 || !spec.several_machines) return NodeTable(spec.pes);
  gpu::stay_on(place.devices[0]);
  const gpu_p2p::DeviceLocks locks(place.devices);
  // Before it is known what is needed: vectors of twice the mean length.
  const std::size_t values = 8 * (at(rows) / at(spec.pes) + 1);
  return nodes_of(*place.team(), {engine_name(spec.engine), spec.remote_library}, place.devices[0],
                  values * value_bytes);
}

}  // namespace

GpuPlace place_on_gpus(const SystemSpec& spec, std::int64_t rows, std::size_t value_bytes) {
  check(spec);
  GpuPlace place{spec, OwnPes::of(spec.team.get(), spec.pes), {}, {}, NodeTable(spec.pes)};
  place.devices = choose_devices(place.own.here, spec.gpus);
  for (const int device : place.devices)
    place.gpus.push_back({gpu::multiprocessors(device), gpu_p2p::pes_on(place.devices, device),
                          gpu::shared_memory_of_block(device)});
  place.nodes = choose_nodes(place, rows, value_bytes);
  require(!place.several_nodes() || spec.halo <= 0,
          "halos between nodes do not travel as packets: leave out halo");
  if (spec.factors.multigrid()) prepare_for_multigrid(place);
  if (place.several_nodes() && spec.remote_kernels.empty()) {
    const std::string engine = engine_name(spec.engine);
    throw Unsupported("ranks are on several nodes, between which kernels of engine '" + engine +
                      "' call its library, and those have not been built: pip install nvidia-" +
                      engine + "-cu13, then build with tools/build_gpu.sh or CMake");
  }
  require_reach(place.nodes.largest());
  return place;
}

}  // namespace cpufree
