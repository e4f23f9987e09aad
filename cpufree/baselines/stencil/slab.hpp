// The slab of a grid that one GPU owns: planes of axis 0 with a ghost plane on either side, twice,
// and what it launches.
#pragma once

#include <gpu_launch.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "cpufree/baselines/gpu.hpp"
#include "cpufree/problem/grid.hpp"

namespace cpufree::baselines {

// How all slabs of a grid lie in memory, and which planes are whose. Rows begin on lines of memory.
struct SlabLayout {
  Grid grid;
  int pes = 1;
  std::int64_t row = 0, plane = 0;  // values from one to the next

  SlabLayout(const Grid& g, int parts, std::size_t value_bytes) : grid(g), pes(parts) {
    const auto line = static_cast<std::int64_t>(128 / value_bytes);
    row = (g.n[2] + line - 1) / line * line;
    plane = row * g.n[1];
  }
  // First plane of a PE, in numbers of the grid.
  std::int64_t first(int pe) const { return grid.first(0) + grid.updated(0) * pe / pes; }
  std::int64_t planes(int pe) const { return first(pe + 1) - first(pe); }
  // The PE that owns the planes before (side 0) or after (side 1); -1: none.
  int beside(int pe, int side) const {
    const int other = side == 0 ? pe - 1 : pe + 1;
    if (other >= 0 && other < pes) return other;
    return grid.periodic[0] ? (other + pes) % pes : -1;
  }
};

enum class Part { all, edges, inner };

// Chunks as deep as leaves six blocks for each multiprocessor, and no deeper than 32 planes.
template <int D, class T>
StepTiles tiles_for(const SlabLayout& layout, std::int64_t planes, int multiprocessors, int depth) {
  const std::int64_t packs = (layout.grid.n[2] + kStepColumns<T> - 1) / kStepColumns<T>;
  StepTiles tiles;
  tiles.wide = static_cast<std::int32_t>(
      std::min<std::int64_t>(std::bit_ceil(at(packs)), D == 3 ? 32 : kThreads));
  const std::int64_t lines = kThreads / tiles.wide;
  const std::int64_t groups = (layout.grid.updated(1) + kStepRows<D> - 1) / kStepRows<D>;
  tiles.across = static_cast<std::int32_t>((packs + tiles.wide - 1) / tiles.wide);
  if (D == 3) tiles.down = static_cast<std::int32_t>((groups + lines - 1) / lines);
  tiles.depth = depth > 0 ? depth : 32;
  const auto blocks = [&] {
    const std::int64_t chunks = (planes + tiles.depth - 1) / tiles.depth;
    return tiles.across * (D == 3 ? tiles.down * chunks : (chunks + lines - 1) / lines);
  };
  while (depth == 0 && tiles.depth > 1 && blocks() < 6 * std::int64_t{multiprocessors})
    tiles.depth /= 2;
  return tiles;
}

// Chunks of a part of a slab, and the blocks that compute them.
template <int D>
std::int32_t cut_part(StepTiles& tiles, std::int64_t planes, Part part) {
  const auto edges = static_cast<std::int32_t>(std::min<std::int64_t>(planes, 2));
  const auto inner = static_cast<std::int32_t>((planes - edges + tiles.depth - 1) / tiles.depth);
  tiles.first = part == Part::inner ? edges : 0;
  tiles.chunks = (part == Part::inner ? 0 : edges) + (part == Part::edges ? 0 : inner);
  const std::int32_t lines = kThreads / tiles.wide;
  return tiles.across * (D == 3 ? tiles.down * tiles.chunks : (tiles.chunks + lines - 1) / lines);
}

template <class T>
struct Slab {
  // `bare`: the caller gives memory for its values.
  Slab(const SlabLayout& where, int number, int on, int chunk_depth, bool bare = false)
      : layout(where),
        pe(number),
        device(on),
        planes(where.planes(number)),
        depth(chunk_depth),
        compute(on),
        edge(on, true),
        side(on, true),
        inner_done(on),
        edge_done(on) {
    for (DeviceArray<T>& copy : values)
      if (!bare) copy = DeviceArray<T>(compute, at((planes + 2) * layout.plane));
    for (int k = 0; k < 2; ++k) {
      if (const int other = layout.beside(pe, k); other >= 0 && layout.pes > 1)
        sides.push_back({k, other});
      for (std::vector<Event>& events : {std::ref(done), std::ref(moved[0]), std::ref(moved[1])})
        events.emplace_back(on);
      marks.emplace_back(on);
    }
  }

  // Plane k of a copy; -1 and `planes` are ghosts.
  T* at_plane(std::uint64_t copy, std::int64_t k) const {
    return values[copy % 2].data() + (k + 1) * layout.plane;
  }
  // Where this slab keeps the copy of a plane of the neighbour on one side.
  T* ghost(std::uint64_t copy, int on_side) const {
    return at_plane(copy, on_side == 0 ? -1 : planes);
  }
  // The plane that the neighbour on one side has a copy of.
  T* edge_plane(std::uint64_t copy, int on_side) const {
    return at_plane(copy, on_side == 0 ? 0 : planes - 1);
  }

  // Iteration m of a part of the slab.
  void launch(const Stream& stream, std::uint64_t m, Part part, const StepCopies<T>& copies = {},
              const StepSync& sync = {}) const {
    layout.grid.dims == 2 ? launch_step_of<2>(stream, m, part, copies, sync)
                          : launch_step_of<3>(stream, m, part, copies, sync);
  }
  // What is left of it without computing, where kernels send.
  void send(const Stream& stream, std::uint64_t m, const StepCopies<T>& copies,
            StepSync sync = {}) const {
    const std::int64_t packs = layout.plane / kStepColumns<T>;
    const auto blocks = static_cast<std::int32_t>((packs + kThreads - 1) / kThreads);
    if (sync.sides > 0) sync.blocks = blocks;
    check(launch_step(stream, blocks,
                      SendEdges<T>{at_plane(m + 1, 0), layout.plane,
                                   static_cast<std::int32_t>(planes), copies, sync}),
          "launch of a kernel that sends");
  }

  // The depth of chunks in use.
  int depth_in_use() const {
    const int processors = compute.multiprocessors();
    return layout.grid.dims == 2 ? tiles_for<2, T>(layout, planes, processors, depth).depth
                                 : tiles_for<3, T>(layout, planes, processors, depth).depth;
  }
  // Tries depths, and takes the one whose kernel is fastest, the rule's where none is by 3 %.
  void choose_depth() {
    int best = depth_in_use();
    double least = 0.97 * measure(best);
    for (int trial = 1; trial <= std::min<std::int64_t>(planes, 128); trial *= 2) {
      const double seconds = measure(trial);
      if (seconds < least) best = trial, least = seconds;
    }
    depth = best;
  }

  // Launches every kernel without anything to do.
  void load_kernels() const {
    SendEdges<T> send;
    check(launch_step(compute, 1, send), "launch of a kernel that sends");
    layout.grid.dims == 2 ? load<2>() : load<3>();
  }

  SlabLayout layout;
  int pe, device;
  std::int64_t planes;
  int depth;
  struct Side {
    int number;  // 0: before, 1: after
    int pe;
  };
  std::vector<Side> sides;  // with another slab; in the order of their numbers

  Stream compute;
  Stream edge;  // edges, and what goes to the neighbour before
  Stream side;  // what goes to the neighbour after
  Event inner_done, edge_done;
  // Of even and odd iterations. `moved`: on each side.
  std::vector<Event> done, moved[2], marks;
  DeviceArray<T> values[2];

  // Iterations that this slab's thread has launched, and those that it has waited for.
  std::atomic<std::uint64_t> launched = 0, ended = 0;

 private:
  // Seconds of an iteration with chunks of some depth, without edges.
  double measure(int trial) {
    constexpr int kRounds = 3, kIterations = 8;
    const OnDevice here(device);
    const Event begin(device, true), end(device, true);
    const int before = std::exchange(depth, trial);
    double least = HUGE_VAL;
    for (int round = 0; round < kRounds; ++round) {
      compute.record(begin);
      for (std::uint64_t m = 0; m < kIterations; ++m) launch(compute, m, Part::all);
      compute.record(end);
      end.wait(Deadline(kCopyLimit), "a trial of a step");
      least = std::min(least, begin.seconds_until(end) / kIterations);
    }
    depth = before;
    return least;
  }
  template <int D>
  void load() const {
    check(launch_step(compute, 1, JacobiStep<D, T>{}), "launch of a step");
  }
  template <int D>
  void launch_step_of(const Stream& stream, std::uint64_t m, Part part, const StepCopies<T>& copies,
                      const StepSync& sync) const {
    const Grid& grid = layout.grid;
    JacobiStep<D, T> step;
    step.from = at_plane(m, 0);
    step.to = at_plane(m + 1, 0);
    step.plane = layout.plane;
    step.row = static_cast<std::int32_t>(layout.row);
    step.planes = static_cast<std::int32_t>(planes);
    step.row_begin = static_cast<std::int32_t>(grid.first(1));
    step.row_end = static_cast<std::int32_t>(grid.end(1));
    step.columns = static_cast<std::int32_t>(grid.n[2]);
    step.wraps_rows = grid.periodic[1];
    step.wraps_columns = grid.periodic[2];
    step.copies = copies;
    step.sync = sync;
    step.tiles = tiles_for<D, T>(layout, planes, compute.multiprocessors(), depth);
    if (sync.sides > 0) step.sync.blocks = cut_part<D>(step.tiles, planes, Part::edges);
    const std::int32_t blocks = cut_part<D>(step.tiles, planes, part);
    if (blocks == 0) return;
    check(launch_step(stream, blocks, step), "launch of a step");
  }
};

}  // namespace cpufree::baselines
