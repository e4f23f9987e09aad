#include "cpufree/solvers/gpu/place.hpp"

#include <algorithm>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/launch/gpu/heaps.hpp"

namespace cpufree {

namespace {

// A block with fewer rows has nothing to do for most of its threads.
constexpr std::int64_t kRowsPerBlock = 32;

// Which PEs are a node: as many as are asked for, or those that NVSHMEM says.
NodeTable choose_nodes(const GpuPlace& place, std::int64_t rows, std::size_t value_bytes) {
  const SystemSpec& spec = place.spec;
  if (in_nodes(spec)) return NodeTable::of_size(spec.pes, spec.node_size);
  if (spec.node_size != 0 || !spec.several_machines) return NodeTable(spec.pes);
  gpu::stay_on(place.devices[0]);
  const gpu_p2p::DeviceLocks locks(place.devices);
  // Before it is known what is needed: vectors of twice the mean length.
  const std::size_t values = 8 * (at(rows) / at(spec.pes) + 1);
  return nodes_of(*place.team(), spec.nvshmem_library, place.devices[0], values * value_bytes);
}

// Levels exchange by stores, and rows of A are to be in the threads that have them on level 0.
void prepare_for_multigrid(GpuPlace& place) {
  if (place.several_nodes())
    throw Unsupported("the preconditioner amg is for PEs of one node; choose another");
  const auto only = [](int& tuning, const char* name) {
    require(tuning <= 0, std::string("with the preconditioner amg, leave out ") + name);
    tuning = 0;
  };
  only(place.spec.halo, "halo"), only(place.spec.lanes_log2, "lanes_log2");
  only(place.spec.ring, "ring");
}
}  // namespace

GpuPlace place_on_gpus(const SystemSpec& spec, std::int64_t rows, std::size_t value_bytes) {
  check(spec);
  GpuPlace place{spec, OwnPes::of(spec.team.get(), spec.pes), {}, NodeTable(spec.pes)};
  place.devices = choose_devices(place.own.here, spec.gpus);
  place.nodes = choose_nodes(place, rows, value_bytes);
  require(!place.several_nodes() || spec.halo <= 0,
          "halos between nodes do not travel as packets: leave out halo");
  if (spec.factors.multigrid()) prepare_for_multigrid(place);
  if (place.several_nodes() && spec.nvshmem_kernels.empty())
    throw Unsupported(
        "ranks are on several nodes, between which kernels call NVSHMEM, and those have not been "
        "built: pip install nvidia-nvshmem-cu13, then build with tools/build_gpu.sh or CMake");
  require_reach(place.nodes.largest());
  return place;
}

int default_blocks(const GpuPlace& place, std::size_t rows) {
  const int multiprocessors = place.least("multiprocessors", multiprocessors_of_pe(place.devices));
  const auto wanted = (static_cast<std::int64_t>(rows) + kRowsPerBlock - 1) / kRowsPerBlock;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, multiprocessors));
}

}  // namespace cpufree
