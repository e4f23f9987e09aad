#include "cpufree/run/cuda_stencil.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cuda_p2p/bootstrap.hpp"
#include "cpufree/engines/cuda_p2p/memory.hpp"
#include "cpufree/run/cuda_devices.hpp"
#include "cpufree/run/cuda_run.hpp"
#include "cpufree/run/cuda_stencil_kernel.hpp"
#include "cpufree/run/stencil_heap.hpp"
#include "cpufree/run/stencil_plan.hpp"

namespace cpufree {

namespace {

using cuda_p2p::DeviceArray;

// Of an H200; to be measured anew once the kernels run there (docs/design/stencils.md).
StencilCosts costs_of(std::size_t fast_bytes) {
  StencilCosts costs;
  for (double& face : costs.face.axis) face = 8.0;  // a packet sent and one received
  costs.point = 0.1e-9;
  costs.byte = 132.0 / 4.3e12;
  costs.exchange = 1.2e-6;
  costs.near_bytes = static_cast<double>(fast_bytes);
  costs.fast_bytes = fast_bytes;
  costs.front_points = 8192.0;
  costs.most_packets = 8192;
  return costs;
}

template <class T>
const void* kernel_for(const Grid& grid, bool source) {
  if (grid.dims == 2)
    return source ? cuda_stencil_kernel<2, true, T>() : cuda_stencil_kernel<2, false, T>();
  return source ? cuda_stencil_kernel<3, true, T>() : cuda_stencil_kernel<3, false, T>();
}

// A box of the grid in memory of its own; numbers outside a periodic grid stand for those inside.
struct Span3 {
  std::int64_t lo[3], hi[3];

  std::int64_t extent(int a) const { return hi[a] - lo[a]; }
  std::int64_t points() const { return extent(0) * extent(1) * extent(2); }
  void join(const TileShape& s, const std::int32_t (&from)[3], const std::int32_t (&to)[3]) {
    for (int a = 0; a < 3; ++a) {
      lo[a] = std::min(lo[a], s.origin[a] + from[a]);
      hi[a] = std::max(hi[a], s.origin[a] + to[a]);
    }
  }
  template <class T>
  GridView<T> view(const Grid& grid, T* data) const {
    GridView<T> v;
    v.data = data;
    for (int a = 0; a < 3; ++a) {
      v.origin[a] = lo[a];
      v.extent[a] = extent(a);
      v.n[a] = grid.n[a];
    }
    v.row = extent(2);
    v.plane = v.row * extent(1);
    return v;
  }
  // f(place in the box, place in the grid) for all points.
  template <class F>
  void each(const Grid& grid, F&& f) const {
    const auto wrapped = [&](int a, std::int64_t i) {
      return (i % grid.n[a] + grid.n[a]) % grid.n[a];
    };
    std::size_t k = 0;
    for (std::int64_t i0 = lo[0]; i0 < hi[0]; ++i0)
      for (std::int64_t i1 = lo[1]; i1 < hi[1]; ++i1) {
        const std::int64_t row = (wrapped(0, i0) * grid.n[1] + wrapped(1, i1)) * grid.n[2];
        for (std::int64_t i2 = lo[2]; i2 < hi[2]; ++i2) f(k++, at(row + wrapped(2, i2)));
      }
  }
};

Span3 span_of(const std::vector<Tile>& tiles, bool stored) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  Span3 span{{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}};
  for (const Tile& tile : tiles) {
    const TileShape& s = tile.shape;
    stored ? span.join(s, s.grid_lo, s.grid_hi) : span.join(s, s.out_lo, s.out_hi);
  }
  return span;
}

// One GPU's memory.
template <class T>
struct Pe {
  DeviceArray<T> start, source, out, tiles;
  DeviceArray<TileEdge> edges;
  DeviceArray<TileArgs<T>> views;
  DeviceArray<double> updates;
  DeviceArray<std::byte> heap;
};

template <class T>
DeviceArray<T> upload(int device, const Grid& grid, const Span3& box, std::span<const T> from) {
  std::vector<T> values(at(box.points()));
  box.each(grid, [&](std::size_t k, std::size_t i) { values[k] = from[i]; });
  return {device, values};
}

// The tiles of a PE: their edges, and their values where they do not stay on chip.
template <class T>
void place_tiles(Pe<T>& pe, int device, const std::vector<Tile>& tiles, bool on_chip, bool source) {
  std::vector<TileEdge> edges;
  std::int64_t values = 0;
  for (const Tile& tile : tiles) {
    edges.insert(edges.end(), tile.sends.begin(), tile.sends.end());
    edges.insert(edges.end(), tile.receives.begin(), tile.receives.end());
    if (!on_chip) values += tile.shape.values();
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
    if (!on_chip) view.values = take(tile.shape, tile.shape.values());
    if (source) view.source = take(tile.shape, tile.shape.source_values());
  }
  pe.views = {device, views};
}

template <class T>
std::vector<cuda_p2p::Shared> shared_of(const std::vector<Pe<T>>& pes, const StencilHeap<T>& heap) {
  std::vector<cuda_p2p::Shared> all(pes.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    all[k].pe = static_cast<int>(k);
    all[k].pes = static_cast<int>(all.size());
    for (std::size_t other = 0; other < all.size(); ++other)
      all[k].heaps[other] = pes[other].heap.data();
    all[k].leave = heap.leave.at(pes[k].heap.data());
  }
  return all;
}

}  // namespace

template <class T>
StencilResult run_cuda_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                               const StencilRun& run, const Progress& progress) {
  const Grid& grid = problem.grid;
  const bool source = !problem.source.empty();
  std::vector<int> devices = choose_devices(spec.pes, spec.gpus);
  const cuda_p2p::DeviceLocks locks(devices);
  cuda_p2p::connect(devices);
  int blocks = spec.blocks;
  if (blocks == 0) blocks = cuda_p2p::attribute(cudaDevAttrMultiProcessorCount, devices[0]);
  CudaKernel kernel;
  kernel.function = kernel_for<T>(grid, source);
  kernel.threads = kCudaStencilThreads;
  const std::size_t fast = fast_memory_limit(kernel.function, devices, blocks);
  const StencilLayout layout =
      lay_out_stencil(grid, spec, run, blocks, sizeof(T), source, costs_of(fast));
  devices.resize(at(layout.plan.pes));
  kernel.blocks = layout.plan.blocks;
  kernel.dynamic_bytes = at(layout.plan.fast_bytes);
  CudaRunner runner(devices, kernel.blocks);
  runner.load(kernel);
  require_residency(kernel, devices);

  const StencilHeap<T> heap(layout.tiling, layout.packets);
  DeviceArray<StencilOutcome> outcome(devices[0], std::size_t{1});
  std::vector<Pe<T>> pes(devices.size());
  std::vector<JacobiArgs<T>> args(devices.size());
  for (std::size_t k = 0; k < pes.size(); ++k) {
    const std::vector<Tile>& tiles = layout.tiling.tiles[k];
    const Span3 stored = span_of(tiles, true);
    const Span3 written = span_of(tiles, false);
    Pe<T>& pe = pes[k];
    pe.start = upload(devices[k], grid, stored, problem.start);
    if (source) pe.source = upload(devices[k], grid, stored, problem.source);
    pe.out = DeviceArray<T>::uninitialised(devices[k], at(written.points()));
    pe.updates = DeviceArray<double>(devices[k], at(kernel.blocks * kernel.threads));
    pe.heap = DeviceArray<std::byte>(devices[k], heap.bytes);
    place_tiles(pe, devices[k], tiles, layout.plan.in_fast_memory, source);
    JacobiArgs<T>& a = args[k];
    a = arguments_of<T>(layout, run);
    a.tiles = pe.views.data();
    a.start = stored.view<const T>(grid, pe.start.data());
    if (source) a.source = stored.view<const T>(grid, pe.source.data());
    a.out = written.view(grid, pe.out.data());
    a.updates = pe.updates.data();
    a.outcome = outcome.data();
    heap.place(a, pe.heap.data());
  }
  std::vector<const void*> pointers;
  for (const JacobiArgs<T>& a : args) pointers.push_back(&a);
  StencilResult result;
  result.plan = layout.plan;
  result.plan.threads = kernel.threads;
  result.seconds = runner.run(kernel, shared_of(pes, heap), pointers, run.limits, progress);
  result.outcome = outcome.download()[0];
  for (std::size_t k = 0; k < pes.size(); ++k) {
    const std::vector<T> values = pes[k].out.download();
    span_of(layout.tiling.tiles[k], false).each(grid, [&](std::size_t from, std::size_t to) {
      problem.out[to] = values[from];
    });
    result.update = largest_update(pes[k].updates.download(), result.update);
  }
  return result;
}

template StencilResult run_cuda_stencil(const StencilProblem<float>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);
template StencilResult run_cuda_stencil(const StencilProblem<double>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);

}  // namespace cpufree
