// Parameters, messages and copies that all baselines of stencils share.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "cpufree/baselines/drivers/check.hpp"
#include "cpufree/baselines/drivers/stencil.hpp"
#include "cpufree/baselines/stencil/drive.hpp"

namespace cpufree::baselines {

struct StencilKind {
  const char* name;
  bool peers;  // this process connects the GPUs
  bool nccl;
  bool graphs;
  const char* needs;
};
inline constexpr const char* kPeers = "GPUs that reach one another's memory";
inline constexpr const char* kNccl = "NCCL (libnccl.so.2)";
inline constexpr StencilKind kStencilKinds[] = {
    {"copy", true, false, false, kPeers},
    {"overlap", true, false, false, kPeers},
    {"p2p", true, false, false, kPeers},
    {"nccl", false, true, false, kNccl},
    {"nccl_graph", false, true, true, kNccl},
    {"flags_graph", true, false, true, kPeers},
    {"nvshmem", false, false, false, "NVSHMEM (libnvshmem_host.so.3)"},
};

inline const StencilKind& stencil_kind(const std::string& name) {
  return find_kind(kStencilKinds, name, "stencil baseline");
}

inline SlabVariant slab_variant(const std::string& name) {
  switch (variant_of(name)) {
    case Variant::full:
      return SlabVariant::full;
    case Variant::no_compute:
      return SlabVariant::no_compute;
    default:
      return SlabVariant::no_comm;
  }
}

inline void check_spec(const StencilBaselineSpec& spec, const StencilKind& kind) {
  check(spec.grid);
  require(spec.pes >= 1 && spec.pes <= kMaxPes, "stencil baselines run on 1 to " +
                                                    std::to_string(kMaxPes) + " GPUs; pes is " +
                                                    std::to_string(spec.pes));
  require(spec.grid.updated() > 0,
          "the grid has no points to update: along an axis that is not "
          "periodic it needs 3 or more");
  require(spec.grid.updated(0) >= spec.pes,
          "slabs are planes of the first axis, and only " + std::to_string(spec.grid.updated(0)) +
              " of them are updated, for " + std::to_string(spec.pes) + " PEs; use fewer PEs");
  require(SlabLayout(spec.grid, 1, 4).plane <= INT32_MAX,
          "a plane of the grid has more than 2^31 points, with those that fill up its rows");
  require(spec.unroll >= 2 && spec.unroll <= 1024 && spec.unroll % 2 == 0,
          "unroll must be an even number from 2 to 1024, not " + std::to_string(spec.unroll));
  require(spec.depth >= 0 && spec.depth <= 1 << 20, "depth must lie between 0 and 2^20 planes");
  require(
      spec.threads || !kind.graphs,
      std::string(kind.name) + " records graphs, each by a thread of its own: leave threads on");
  require(spec.wait_limit > 0.0 && spec.wait_limit <= 1e6,
          "wait_limit must lie between 0 (excluded) and 1e6 seconds: every wait is bounded");
}

template <class T>
void check_run(const StencilBaselineSpec& spec, std::span<const T> start, std::span<T> out,
               std::int64_t iterations, const std::string& variant) {
  require(iterations >= 0, "iterations must not be negative");
  const std::size_t points = at(spec.grid.points());
  require(start.empty() || start.size() == points, "start must have the points of the grid");
  require(out.empty() || (out.size() == points && !start.empty()),
          "out must have the points of the grid, and needs start");
  if (variant == "no-compute" && spec.pes == 1)
    throw Unsupported("on one PE nothing is left of a stencil without computing");
}

// What all kinds say of themselves.
template <class T>
StencilBaselineFacts facts_of(const StencilBaselineSpec& spec, const SlabLayout& layout) {
  StencilBaselineFacts facts;
  facts.kind = spec.kind;
  facts.pes = spec.pes;
  facts.staging = spec.pes == 1 ? "none" : "peer";
  for (int pe = 0; pe < spec.pes; ++pe) facts.planes = std::max(facts.planes, layout.planes(pe));
  if (spec.pes > 1) facts.halo_bytes = layout.plane * static_cast<std::int64_t>(sizeof(T));
  return facts;
}

// Both copies of each slab: what keeps its values is never stored.
template <class T>
void scatter(const SlabLayout& layout, const typename SlabComm<T>::Slabs& slabs,
             std::span<const T> start) {
  const Grid& g = layout.grid;
  for (const auto& slab : slabs) {
    std::vector<T> box(slab->values[0].size());
    for (std::int64_t k = -1; k <= slab->planes; ++k) {
      const std::int64_t z = (layout.first(slab->pe) + k + g.n[0]) % g.n[0];
      for (std::int64_t y = 0; y < g.n[1]; ++y)
        std::memcpy(box.data() + (k + 1) * layout.plane + y * layout.row,
                    start.data() + (z * g.n[1] + y) * g.n[2], at(g.n[2]) * sizeof(T));
    }
    for (const DeviceArray<T>& copy : slab->values) {
      copy.upload(slab->compute, box.data(), box.size());
      slab->compute.drain(Deadline(kCopyLimit), "a copy to the GPU");
    }
  }
}

// The planes of the slabs, and no others.
template <class T>
void gather(const SlabLayout& layout, const typename SlabComm<T>::Slabs& slabs, std::span<T> out,
            std::uint64_t copy) {
  const Grid& g = layout.grid;
  for (const auto& slab : slabs) {
    const DeviceArray<T>& values = slab->values[copy % 2];
    std::vector<T> box(values.size());
    values.download(slab->compute, box.data(), box.size());
    for (std::int64_t k = 0; k < slab->planes; ++k)
      for (std::int64_t y = 0; y < g.n[1]; ++y)
        std::memcpy(out.data() + ((layout.first(slab->pe) + k) * g.n[1] + y) * g.n[2],
                    box.data() + (k + 1) * layout.plane + y * layout.row, at(g.n[2]) * sizeof(T));
  }
}

}  // namespace cpufree::baselines
