#include "cpufree/stencils/gpu/stencil.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/device/value_packet.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/launch/gpu/heaps.hpp"
#include "cpufree/launch/gpu/trace.hpp"
#include "cpufree/stencils/gpu/choice.hpp"
#include "cpufree/stencils/host/stencil_heap.hpp"
#include "cpufree/stencils/host/stencil_team.hpp"

namespace cpufree {

namespace {

using gpu::DeviceArray;

// One GPU's memory.
template <class T>
struct Pe {
  DeviceArray<T> start, source, out, tiles;
  DeviceArray<TileEdge> edges;
  DeviceArray<TileArgs<T>> views;
  DeviceArray<TimeTilePart> parts;
  DeviceArray<GhostCopy> ghosts;
  DeviceArray<double> updates;
};

// The tiles of a PE: their edges, and the wavefront's values where they do not stay on chip.
template <class T>
void place_tiles(Pe<T>& pe, int device, const std::vector<Tile>& tiles, const StencilPlan& plan,
                 bool source) {
  const bool wavefront = plan.sweep == "wavefront";
  const bool in_memory = wavefront && !plan.in_fast_memory;
  source = source && wavefront;
  std::vector<TileEdge> edges;
  std::int64_t values = 0;
  for (const Tile& tile : tiles) {
    edges.insert(edges.end(), tile.sends.begin(), tile.sends.end());
    edges.insert(edges.end(), tile.receives.begin(), tile.receives.end());
    if (in_memory) values += tile.shape.values();
    if (source) values += tile.shape.source_values();
  }
  pe.edges = {device, edges};
  pe.tiles = DeviceArray<T>::uninitialised(device, at(values));
  const TileEdge* next_edge = pe.edges.data();
  T* next = pe.tiles.data();
  const auto take = [&](const TileShape& s, std::int64_t count) {
    T* const here = next + s.lead;
    next += count;
    return here;
  };
  std::vector<TileArgs<T>> views;
  for (const Tile& tile : tiles) {
    TileArgs<T>& view = views.emplace_back();
    view.shape = tile.shape;
    view.edges = static_cast<std::int32_t>(tile.sends.size());
    view.sends = next_edge;
    view.receives = next_edge + view.edges;
    next_edge += 2 * view.edges;
    if (in_memory) view.values = take(tile.shape, tile.shape.values());
    if (source) view.source = take(tile.shape, tile.shape.source_values());
  }
  pe.views = {device, views};
}

// Copies the values of a box to the device.
template <class T>
void copy_to(int device, T* to, const std::vector<T>& from) {
  gpu::copy_to_device(device, to, from.data(), from.size() * sizeof(T));
}

}  // namespace

template <class T>
struct GpuStencil<T>::State {
  State(const StencilProblem<T>& problem, const StencilSpec& spec, const StencilRun& how)
      : grid(problem.grid),
        team(spec.team),
        devices(devices_of(spec)),
        locks(devices),
        run(connected(devices, how)),
        traced(spec.study == Study::trace ? std::optional(spec.trace) : std::nullopt),
        chosen(choose_cuda_stencil<T>(grid, spec, run, !problem.source.empty(), devices)),
        own(OwnPes::of(team.get(), chosen.layout.plan.pes)),
        heap(chosen.layout.tiling, chosen.layout.packets,
             chosen.time_tiles ? chosen.time_tiles->box.values : 0,
             sizeof(typename ValuePacket<T>::Type)) {
    if (team) require_all_pes(spec, chosen.layout);
    devices.resize(at(own.here));
    heaps = team ? std::make_unique<GpuHeaps>(
                       *team, remote::Choice{engine_name(spec.engine), spec.remote_library},
                       devices[0], heap.bytes, NodeTable(own.all))  // all reach one another
                 : std::make_unique<GpuHeaps>(devices, heap.bytes);
    runner.emplace(devices, chosen.kernel.blocks);
    runner->load(chosen.kernel);
    require_residency(chosen.kernel, devices);
    outcome = DeviceArray<StencilOutcome>(devices[0], std::size_t{1});
    pes.resize(devices.size());
    args.resize(devices.size());
    for (std::size_t k = 0; k < pes.size(); ++k) place(k, problem);
  }

  // Those of the PEs of this process.
  static std::vector<int> devices_of(const StencilSpec& spec) {
    require_reach(spec.pes);
    auto all = choose_devices(spec.team ? 1 : spec.pes, spec.gpus);
    if (spec.team) gpu::stay_on(all[0]);  // the GPU of this process, as NVSHMEM wants it
    return all;
  }

  // All devices reach one another before kernels are asked for what fits there.
  static const StencilRun& connected(const std::vector<int>& devices, const StencilRun& how) {
    gpu_p2p::connect(devices);
    return how;
  }

  std::size_t number(std::size_t k) const { return at(own.first) + k; }  // of PE k of this process
  const std::vector<Tile>& tiles_of(std::size_t k) const {
    return chosen.layout.tiling.tiles[number(k)];
  }
  std::byte* heap_of(std::size_t k) const { return heaps->base(static_cast<int>(number(k))); }

  // Lays out the memory of PE k of this process.
  void place(std::size_t k, const StencilProblem<T>& problem) {
    const bool source = !problem.source.empty();
    const int device = devices[k];
    const std::vector<Tile>& tiles = tiles_of(k);
    const GridSpan stored = span_of(tiles, true);
    const GridSpan written = span_of(tiles, false);
    Pe<T>& pe = pes[k];
    pe.out = DeviceArray<T>::uninitialised(device, at(written.points()));
    pe.updates = DeviceArray<double>(device, at(chosen.kernel.blocks * chosen.kernel.threads));
    place_tiles(pe, device, tiles, chosen.layout.plan, source);
    JacobiArgs<T>& a = args[k];
    a = arguments_of<T>(chosen.layout, run);
    a.tiles = pe.views.data();
    a.out = written.view(grid, pe.out.data());
    a.updates = pe.updates.data();
    a.outcome = outcome.data();
    heap.place(a, heap_of(k));
    if (chosen.time_tiles) {
      place_box(k, problem);
      return;
    }
    pe.start = {device, problem.start.copy(grid, stored)};
    a.start = stored.view<const T>(grid, pe.start.data());
    if (!source) return;
    pe.source = {device, problem.source.copy(grid, stored)};
    a.source = stored.view<const T>(grid, pe.source.data());
  }

  // The values of PE k of this process that stay in memory.
  void place_box(std::size_t k, const StencilProblem<T>& problem) {
    const int device = devices[k];
    const TimeTileLayout& time_tiles = *chosen.time_tiles;
    Pe<T>& pe = pes[k];
    pe.parts = {device, time_tiles.pes[number(k)].parts};
    pe.ghosts = {device, time_tiles.pes[number(k)].ghosts};
    TimeTileArgs<T>& a = args[k].time_tile;
    a = time_tile_arguments<T>(grid, time_tiles, number(k));
    a.parts = pe.parts.data();
    a.ghosts = pe.ghosts.data();
    std::vector<T> values(at(time_tiles.box.values));
    fill_box<T>(grid, time_tiles, number(k), problem.start, values.data());
    for (int copy = 0; copy < 2; ++copy) {
      T* const box = heap.boxes[copy].at(heap_of(k));
      copy_to(device, box, values);
      a.values[copy] = box + time_tiles.box.first;
    }
    if (problem.source.empty()) return;
    fill_box<T>(grid, time_tiles, number(k), problem.source, values.data());
    pe.source = {device, values};
    a.source = pe.source.data() + time_tiles.box.first;
  }

  std::vector<gpu_p2p::Shared> shared() const {
    std::vector<gpu_p2p::Shared> all(pes.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      all[k].pe = static_cast<int>(number(k));
      all[k].pes = own.all;
      for (int pe = 0; pe < own.all; ++pe) all[k].heaps[pe] = heaps->base(pe);
      all[k].leave = heap.leave.at(heap_of(k));
    }
    return all;
  }

  // The rings of a run, where it is to be traced.
  std::optional<GpuTrace> trace() const {
    if (!traced) return std::nullopt;
    std::vector<std::byte*> bases;
    for (std::size_t k = 0; k < pes.size(); ++k) bases.push_back(heap_of(k));
    const GpuKernel& kernel = chosen.kernel;
    return GpuTrace(*traced,
                    TraceShape::of(own.all, kernel.blocks, kernel.threads, gpu_p2p::kWarp,
                                   traced->events, traced->kinds, traced->every),
                    devices, bases, own.first);
  }

  Grid grid;
  std::shared_ptr<Team> team;  // none: all PEs are in this process
  std::vector<int> devices;    // of the PEs of this process
  gpu_p2p::DeviceLocks locks;
  StencilRun run;
  std::optional<TraceSpec> traced;
  ChosenStencil chosen;
  OwnPes own;
  StencilHeap<T> heap;
  std::unique_ptr<GpuHeaps> heaps;
  std::optional<GpuRunner> runner;
  DeviceArray<StencilOutcome> outcome;
  std::vector<Pe<T>> pes;
  std::vector<JacobiArgs<T>> args;
  bool fresh = true;
};

template <class T>
GpuStencil<T>::GpuStencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                          const StencilRun& run)
    : state_(std::make_unique<State>(problem, spec, run)) {}
template <class T>
GpuStencil<T>::~GpuStencil() = default;
template <class T>
GpuStencil<T>::GpuStencil(GpuStencil&&) noexcept = default;

template <class T>
StencilResult GpuStencil<T>::run(const Progress& progress) {
  State& s = *state_;
  for (std::size_t k = 0; !s.fresh && k < s.pes.size(); ++k)  // channels begin with zeros
    gpu::clear(s.devices[k], s.heap_of(k), s.heap.channel_bytes);
  s.fresh = false;
  // No kernel may send to a PE whose memory is not laid out yet, nor wait for one that is not. None
  // runs now, in any process: each has told the others of the end of its last one (report_waits).
  if (s.team) barrier(*s.team, "grids are there");
  std::optional<GpuTrace> trace = s.trace();
  std::vector<const void*> pointers;
  for (std::size_t k = 0; k < s.args.size(); ++k) {
    s.args[k].traces = trace ? trace->rings(k) : nullptr;
    pointers.push_back(&s.args[k]);
  }
  StencilResult result;
  result.plan = s.chosen.layout.plan;
  result.plan.threads = s.chosen.kernel.threads;
  result.seconds = launch_traced(trace, [&] {
    return s.runner->run(s.chosen.kernel, s.shared(), pointers, s.run.limits,
                         watched(progress, trace ? trace->watch() : nullptr), s.team.get());
  });
  if (trace) result.trace = trace->report(s.team.get());
  result.outcome = s.outcome.download()[0];
  for (const Pe<T>& pe : s.pes)
    result.update = largest_update(pe.updates.download(), result.update);
  if (s.team) share_end(*s.team, result);
  return result;
}

template <class T>
void GpuStencil<T>::download(const StencilProblem<T>& problem) const {
  const State& s = *state_;
  if (s.team) {
    deliver(problem, *s.team, s.run, s.chosen.layout.tiling, s.pes[0].out.download());
    return;
  }
  for (std::size_t k = 0; k < s.pes.size(); ++k) {
    const std::vector<T> values = s.pes[k].out.download();
    span_of(s.tiles_of(k), false).each(s.grid, [&](std::size_t from, std::size_t to) {
      problem.out[to] = values[from];
    });
  }
}

template <class T>
StencilResult run_cuda_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                               const StencilRun& run, const Progress& progress) {
  GpuStencil<T> stencil(problem, spec, run);
  const StencilResult result = stencil.run(progress);
  stencil.download(problem);
  return result;
}

template class GpuStencil<float>;
template class GpuStencil<double>;
template StencilResult run_cuda_stencil(const StencilProblem<float>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);
template StencilResult run_cuda_stencil(const StencilProblem<double>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);

}  // namespace cpufree
