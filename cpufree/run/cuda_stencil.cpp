#include "cpufree/run/cuda_stencil.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/engines/cuda_p2p/bootstrap.hpp"
#include "cpufree/engines/cuda_p2p/memory.hpp"
#include "cpufree/run/cuda_devices.hpp"
#include "cpufree/run/cuda_run.hpp"
#include "cpufree/run/cuda_stencil_kernel.hpp"
#include "cpufree/run/grid_span.hpp"
#include "cpufree/run/role_plan.hpp"
#include "cpufree/run/stencil_heap.hpp"

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

// A grid laid out, with the kernel for it.
struct Chosen {
  StencilLayout layout;
  std::optional<StreamLayout> streams;  // where values stay in memory
  CudaKernel kernel;
};

// What the kernels say of themselves, for a grid and a spec.
template <class T>
class Chooser {
 public:
  Chooser(const Grid& grid, const StencilSpec& spec, const StencilRun& run, bool source,
          const std::vector<int>& devices)
      : grid_(grid), spec_(spec), run_(run), source_(source), devices_(devices) {
    if (blocks_ = spec.blocks; blocks_ == 0)
      blocks_ = cuda_p2p::attribute(cudaDevAttrMultiProcessorCount, devices[0]);
  }

  // The first way that the spec allows, and the grid.
  Chosen choose() {
    Chosen chosen;
    if (spec_.roles != Roles::tiles) {
      with_roles(chosen);
      return chosen;
    }
    if (allowed(Sweep::registers) && in_registers(chosen)) return chosen;
    if (allowed(Sweep::bricks) && in_bricks(chosen)) return chosen;
    if (allowed(Sweep::streams) && in_memory(chosen)) return chosen;
    if (!allowed(Sweep::wavefront))
      throw InvalidInput("this grid, with these options, is not for the sweep asked for");
    by_wavefront(chosen);
    return chosen;
  }

 private:
  bool allowed(Sweep sweep) const {
    return spec_.sweep == sweep || spec_.sweep == Sweep::automatic;
  }
  // The kernel of a sweep, as the study that the spec asks for.
  const void* kernel(Sweep sweep, StencilKernel wanted) const {
    wanted.dims = grid_.dims;
    wanted.source = source_;
    switch (spec_.study) {
      case Study::no_compute:
        return kernel_of<Study::no_compute>(sweep, wanted);
      case Study::no_comm:
        return kernel_of<Study::no_comm>(sweep, wanted);
      default:
        return kernel_of<Study::none>(sweep, wanted);
    }
  }
  template <Study S>
  static const void* kernel_of(Sweep sweep, const StencilKernel& wanted) {
    if (sweep == Sweep::registers) return cuda_registers_kernel<S, T>(wanted);
    if (sweep == Sweep::bricks) return cuda_bricks_kernel<S, T>(wanted);
    if (sweep == Sweep::streams) return cuda_streams_kernel<S, T>(wanted);
    return cuda_wavefront_kernel<S, T>(wanted);
  }
  WarpKernels kernels(const void* function) const {
    return {register_shapes(sizeof(T)), stream_layers(grid_.dims), kCudaStencilThreads / 32,
            function == nullptr ? 0 : fast_memory_limit(function, devices_, blocks_),
            brick_shapes(sizeof(T))};
  }

  bool in_registers(Chosen& chosen) const {
    const RegisterShape& any = register_shapes(sizeof(T)).back();
    const auto found = lay_out_registers(grid_, spec_, run_, blocks_, sizeof(T), source_,
                                         kernels(kernel(Sweep::registers, {.shape = any})));
    if (!found) return false;
    chosen.layout = found->layout;
    chosen.kernel.function = kernel(Sweep::registers, {.shape = found->shape});
    chosen.kernel.threads = 32 * found->warps;
    return true;
  }

  bool in_bricks(Chosen& chosen) const {
    const BrickShape& any = brick_shapes(sizeof(T)).back();
    const auto found = lay_out_bricks(grid_, spec_, run_, blocks_, sizeof(T), source_,
                                      kernels(kernel(Sweep::bricks, {.brick = any})));
    if (!found) return false;
    chosen.layout = found->layout;
    chosen.kernel.function = kernel(Sweep::bricks, {.brick = found->shape});
    chosen.kernel.threads = 32 * found->warps;
    return true;
  }

  bool in_memory(Chosen& chosen) const {
    chosen.streams =
        lay_out_streams(grid_, spec_, run_, blocks_, sizeof(T), source_, kernels(nullptr));
    if (!chosen.streams) return false;
    chosen.layout = chosen.streams->layout;
    chosen.kernel.function = kernel(Sweep::streams, {.layers = chosen.layout.plan.layers});
    chosen.kernel.threads = kCudaStencilThreads;
    return true;
  }

  void with_roles(Chosen& chosen) const {
    if (spec_.roles == Roles::two_kernels && source_)
      throw Unsupported("roles 'two_kernels' are there for stencils without a source term alone");
    chosen.streams =
        lay_out_roles(grid_, spec_, run_, blocks_, sizeof(T), source_, kernels(nullptr));
    chosen.layout = chosen.streams->layout;
    const StencilPlan& plan = chosen.layout.plan;
    chosen.kernel.threads = kCudaStencilThreads;
    chosen.kernel.function = kernel(Sweep::streams, {.layers = plan.layers});
    if (spec_.roles != Roles::two_kernels) return;
    chosen.kernel.first_blocks = plan.boundary_blocks;
    chosen.kernel.function =
        cuda_streams_part_kernel<T>({.dims = grid_.dims, .layers = plan.layers});
  }

  void by_wavefront(Chosen& chosen) const {
    chosen.kernel.function = kernel(Sweep::wavefront, {});
    chosen.kernel.threads = kCudaStencilThreads;
    const std::size_t fast = fast_memory_limit(chosen.kernel.function, devices_, blocks_);
    chosen.layout =
        lay_out_stencil(grid_, spec_, run_, blocks_, sizeof(T), source_, costs_of(fast));
  }

  const Grid& grid_;
  const StencilSpec& spec_;
  const StencilRun& run_;
  bool source_;
  const std::vector<int>& devices_;
  int blocks_;
};

// One GPU's memory.
template <class T>
struct Pe {
  DeviceArray<T> start, source, out, tiles;
  DeviceArray<TileEdge> edges;
  DeviceArray<TileArgs<T>> views;
  DeviceArray<StreamPart> parts;
  DeviceArray<GhostCopy> ghosts;
  DeviceArray<double> updates;
  DeviceArray<std::byte> heap;
};

template <class T>
DeviceArray<T> upload(int device, const Grid& grid, const GridSpan& box, std::span<const T> from) {
  std::vector<T> values(at(box.points()));
  box.each(grid, [&](std::size_t k, std::size_t i) { values[k] = from[i]; });
  return {device, values};
}

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

// Copies the values of a box to the device.
template <class T>
void copy_to(int device, T* to, const std::vector<T>& from) {
  const cuda_p2p::OnDevice here(device);
  cuda_p2p::check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice),
                  "cudaMemcpy to the device");
  cuda_p2p::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

}  // namespace

template <class T>
struct CudaStencil<T>::State {
  State(const StencilProblem<T>& problem, const StencilSpec& spec, const StencilRun& how)
      : grid(problem.grid),
        devices(choose_devices(spec.pes, spec.gpus)),
        locks(devices),
        run(connected(devices, how)),
        chosen(Chooser<T>(grid, spec, run, !problem.source.empty(), devices).choose()),
        heap(chosen.layout.tiling, chosen.layout.packets,
             chosen.streams ? chosen.streams->box.values : 0) {
    devices.resize(at(chosen.layout.plan.pes));
    chosen.kernel.blocks = chosen.layout.plan.blocks;
    chosen.kernel.dynamic_bytes = at(chosen.layout.plan.fast_bytes);
    runner.emplace(devices, chosen.kernel.blocks);
    runner->load(chosen.kernel);
    require_residency(chosen.kernel, devices);
    outcome = DeviceArray<StencilOutcome>(devices[0], std::size_t{1});
    pes.resize(devices.size());
    args.resize(devices.size());
    for (std::size_t k = 0; k < pes.size(); ++k) place(k, problem);
  }

  // All devices reach one another before kernels are asked for what fits there.
  static const StencilRun& connected(const std::vector<int>& devices, const StencilRun& how) {
    cuda_p2p::connect(devices);
    return how;
  }

  // Lays out the memory of PE k.
  void place(std::size_t k, const StencilProblem<T>& problem) {
    const bool source = !problem.source.empty();
    const int device = devices[k];
    const std::vector<Tile>& tiles = chosen.layout.tiling.tiles[k];
    const GridSpan stored = span_of(tiles, true);
    const GridSpan written = span_of(tiles, false);
    Pe<T>& pe = pes[k];
    pe.out = DeviceArray<T>::uninitialised(device, at(written.points()));
    pe.updates = DeviceArray<double>(device, at(chosen.kernel.blocks * chosen.kernel.threads));
    pe.heap = DeviceArray<std::byte>(device, heap.bytes);
    place_tiles(pe, device, tiles, chosen.layout.plan, source);
    JacobiArgs<T>& a = args[k];
    a = arguments_of<T>(chosen.layout, run);
    a.tiles = pe.views.data();
    a.out = written.view(grid, pe.out.data());
    a.updates = pe.updates.data();
    a.outcome = outcome.data();
    heap.place(a, pe.heap.data());
    if (chosen.streams) {
      place_box(k, problem);
      return;
    }
    pe.start = upload(device, grid, stored, problem.start);
    a.start = stored.view<const T>(grid, pe.start.data());
    if (!source) return;
    pe.source = upload(device, grid, stored, problem.source);
    a.source = stored.view<const T>(grid, pe.source.data());
  }

  // The values of PE k that stay in memory.
  void place_box(std::size_t k, const StencilProblem<T>& problem) {
    const int device = devices[k];
    const StreamLayout& streams = *chosen.streams;
    Pe<T>& pe = pes[k];
    pe.parts = {device, streams.pes[k].parts};
    pe.ghosts = {device, streams.pes[k].ghosts};
    StreamArgs<T>& a = args[k].stream;
    a = stream_arguments<T>(grid, streams, k);
    a.parts = pe.parts.data();
    a.ghosts = pe.ghosts.data();
    std::vector<T> values(at(streams.box.values));
    fill_box<T>(grid, streams, k, problem.start, values.data());
    for (int copy = 0; copy < 2; ++copy) {
      T* const box = heap.boxes[copy].at(pe.heap.data());
      copy_to(device, box, values);
      a.values[copy] = box + streams.box.first;
    }
    if (problem.source.empty()) return;
    fill_box<T>(grid, streams, k, problem.source, values.data());
    pe.source = {device, values};
    a.source = pe.source.data() + streams.box.first;
  }

  Grid grid;
  std::vector<int> devices;
  cuda_p2p::DeviceLocks locks;
  StencilRun run;
  Chosen chosen;
  StencilHeap<T> heap;
  std::optional<CudaRunner> runner;
  DeviceArray<StencilOutcome> outcome;
  std::vector<Pe<T>> pes;
  std::vector<JacobiArgs<T>> args;
  bool fresh = true;
};

template <class T>
CudaStencil<T>::CudaStencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                            const StencilRun& run)
    : state_(std::make_unique<State>(problem, spec, run)) {}
template <class T>
CudaStencil<T>::~CudaStencil() = default;
template <class T>
CudaStencil<T>::CudaStencil(CudaStencil&&) noexcept = default;

template <class T>
StencilResult CudaStencil<T>::run(const Progress& progress) {
  State& s = *state_;
  for (std::size_t k = 0; !s.fresh && k < s.pes.size(); ++k) {  // channels begin with zeros
    const cuda_p2p::OnDevice here(s.devices[k]);
    cuda_p2p::check(cudaMemset(s.pes[k].heap.data(), 0, s.heap.channel_bytes), "cudaMemset");
    cuda_p2p::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  s.fresh = false;
  std::vector<const void*> pointers;
  for (const JacobiArgs<T>& a : s.args) pointers.push_back(&a);
  StencilResult result;
  result.plan = s.chosen.layout.plan;
  result.plan.threads = s.chosen.kernel.threads;
  result.seconds =
      s.runner->run(s.chosen.kernel, shared_of(s.pes, s.heap), pointers, s.run.limits, progress);
  result.outcome = s.outcome.download()[0];
  for (const Pe<T>& pe : s.pes)
    result.update = largest_update(pe.updates.download(), result.update);
  return result;
}

template <class T>
void CudaStencil<T>::download(std::span<T> out) const {
  for (std::size_t k = 0; k < state_->pes.size(); ++k) {
    const std::vector<T> values = state_->pes[k].out.download();
    span_of(state_->chosen.layout.tiling.tiles[k], false)
        .each(state_->grid, [&](std::size_t from, std::size_t to) { out[to] = values[from]; });
  }
}

template <class T>
StencilResult run_cuda_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                               const StencilRun& run, const Progress& progress) {
  CudaStencil<T> stencil(problem, spec, run);
  const StencilResult result = stencil.run(progress);
  stencil.download(problem.out);
  return result;
}

template class CudaStencil<float>;
template class CudaStencil<double>;
template StencilResult run_cuda_stencil(const StencilProblem<float>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);
template StencilResult run_cuda_stencil(const StencilProblem<double>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);

}  // namespace cpufree
