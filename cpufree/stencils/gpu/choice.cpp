#include "cpufree/stencils/gpu/choice.hpp"

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/stencils/gpu/kernel.hpp"
#include "cpufree/stencils/host/specialized_plan.hpp"

namespace cpufree {

namespace {

// Of an H200; to be measured again once the kernels run there (docs/design/stencils.md).
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

// What the kernels say of themselves, for a grid and a spec. With a team, whose GPUs may differ,
// all members ask in the same order: what they ask next follows from what they have agreed on.
template <class T>
class Chooser {
 public:
  Chooser(const Grid& grid, const StencilSpec& spec, const StencilRun& run, bool source,
          const std::vector<int>& devices)
      : grid_(grid), spec_(spec), run_(run), source_(source), devices_(devices) {
    if (blocks_ = spec.blocks; blocks_ == 0) blocks_ = multiprocessors_of_pe(devices);
    if (spec.team) blocks_ = least(*spec.team, "number of blocks", blocks_);
  }

  ChosenStencil choose() {
    ChosenStencil chosen;
    if (spec_.sweep == Sweep::specialized_blocks) {
      by_specialized_blocks(chosen);
      return chosen;
    }
    if (allowed(Sweep::registers_3d) && in_registers_3d(chosen)) return chosen;
    if (allowed(Sweep::time_tiles) && in_memory(chosen)) return chosen;
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
    wanted.devices = devices_;
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
    if (sweep == Sweep::registers_3d) return cuda_registers_3d_kernel<S, T>(wanted);
    if (sweep == Sweep::time_tiles) return cuda_time_tiles_kernel<S, T>(wanted);
    return cuda_wavefront_kernel<S, T>(wanted);
  }
  // Room of a block on chip, on every GPU.
  std::size_t room_of(const void* function) const {
    const std::size_t room = fast_memory_limit(function, devices_, blocks_);
    return spec_.team ? least(*spec_.team, "memory on chip", room) : room;
  }
  WarpKernels kernels(const void* function) const {
    return {time_tile_layers(grid_.dims), kCudaStencilThreads / 32,
            function == nullptr ? 0 : room_of(function), tile3d_shapes(sizeof(T))};
  }

  // The kernels for all shapes take as much of a block's memory for themselves. Where kernels are
  // compiled when first used, the smallest is soonest there, and none is for other dimensions.
  bool in_registers_3d(ChosenStencil& chosen) const {
    if (grid_.dims != 3) return false;
    const auto kernel_for = [&](const Tile3dShape& shape) {
      return kernel(Sweep::registers_3d, {.tile3d = shape});
    };
    const auto found = lay_out_registers_3d(grid_, spec_, run_, blocks_, sizeof(T), source_,
                                            kernels(kernel_for(tile3d_shapes(sizeof(T)).front())));
    if (!found) return false;
    chosen.layout = found->layout;
    chosen.kernel.function = kernel_for(found->shape);
    chosen.kernel.threads = 32 * found->warps;
    return true;
  }

  bool in_memory(ChosenStencil& chosen) const {
    chosen.time_tiles =
        lay_out_time_tiles(grid_, spec_, run_, blocks_, sizeof(T), source_, kernels(nullptr));
    if (!chosen.time_tiles) return false;
    chosen.layout = chosen.time_tiles->layout;
    chosen.kernel.function = kernel(Sweep::time_tiles, {.layers = chosen.layout.plan.layers});
    chosen.kernel.threads = time_tile_threads(grid_.dims);
    return true;
  }

  void by_specialized_blocks(ChosenStencil& chosen) const {
    chosen.time_tiles =
        lay_out_specialized(grid_, spec_, run_, blocks_, sizeof(T), source_, kernels(nullptr));
    chosen.layout = chosen.time_tiles->layout;
    chosen.kernel.threads = time_tile_threads(grid_.dims);
    chosen.kernel.function = kernel(Sweep::time_tiles, {.layers = chosen.layout.plan.layers});
  }

  void by_wavefront(ChosenStencil& chosen) const {
    chosen.kernel.function = kernel(Sweep::wavefront, {});
    chosen.kernel.threads = kCudaStencilThreads;
    chosen.layout = lay_out_stencil(grid_, spec_, run_, blocks_, sizeof(T), source_,
                                    costs_of(room_of(chosen.kernel.function)));
  }

  const Grid& grid_;
  const StencilSpec& spec_;
  const StencilRun& run_;
  bool source_;
  const std::vector<int>& devices_;
  int blocks_;
};

}  // namespace

template <class T>
ChosenStencil choose_cuda_stencil(const Grid& grid, const StencilSpec& spec, const StencilRun& run,
                                  bool source, const std::vector<int>& devices) {
  ChosenStencil chosen = Chooser<T>(grid, spec, run, source, devices).choose();
  chosen.kernel.blocks = chosen.layout.plan.blocks;
  chosen.kernel.dynamic_bytes = at(chosen.layout.plan.fast_bytes);
  return chosen;
}

template ChosenStencil choose_cuda_stencil<float>(const Grid&, const StencilSpec&,
                                                  const StencilRun&, bool, const std::vector<int>&);
template ChosenStencil choose_cuda_stencil<double>(const Grid&, const StencilSpec&,
                                                   const StencilRun&, bool,
                                                   const std::vector<int>&);

}  // namespace cpufree
