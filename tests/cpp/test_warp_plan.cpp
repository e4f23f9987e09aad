// Which kernels of blocks of warps a grid gets, and how it falls to them.
#include "cpufree/run/warp_plan.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"

using namespace stencil_rig;

namespace {

constexpr RegisterShape kShapes[] = {{1, 1}, {1, 2}, {1, 4}, {2, 4}, {4, 4}, {4, 8}, {4, 16}};
constexpr int kLayers2d[] = {1, 2, 4, 8};
constexpr int kLayers3d[] = {1};

WarpKernels kernels(int dims) {
  return {kShapes, dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d),
          16, 227 << 10};
}

auto in_registers(const Grid& grid, const StencilSpec& spec = {}, const StencilRun& run = {}) {
  return lay_out_registers(grid, spec, run, 132, sizeof(float), false, kernels(grid.dims));
}
auto in_memory(const Grid& grid, const StencilSpec& spec = {}) {
  return lay_out_streams(grid, spec, {}, 132, sizeof(float), false, kernels(grid.dims));
}

std::int64_t widest_part(const StreamLayout& streams) {
  std::int64_t most = 0;
  for (const auto& pe : streams.pes)
    for (const StreamPart& part : pe.parts)
      most = std::max<std::int64_t>(most, part.hi[2] - part.lo[2]);
  return most;
}

}  // namespace

TEST(small_grids_stay_in_registers_and_large_ones_in_memory) {
  CHECK(in_registers(grid2d(256, 256)).has_value());
  CHECK(!in_registers(grid2d(2048, 2048)).has_value());
  CHECK_EQ(in_memory(grid2d(2048, 2048))->layout.plan.layers, 4);
  CHECK_EQ(in_memory(grid2d(8192, 8192))->layout.plan.layers, 4);
}

TEST(registers_serve_large_grids_where_every_iteration_is_exchanged_or_looked_at) {
  StencilSpec every;
  every.layers = 1;
  CHECK(in_registers(grid2d(2048, 2048), every).has_value());
  StencilRun looked;
  looked.check_every = 1;
  CHECK(in_registers(grid2d(2048, 2048), {}, looked).has_value());
}

TEST(halo_steps_without_a_kernel_become_fewer) {
  StencilSpec spec;
  spec.layers = 3;
  CHECK_EQ(in_memory(grid2d(2048, 2048), spec)->layout.plan.layers, 2);
  spec.layers = 64;
  CHECK_EQ(in_memory(grid2d(2048, 2048), spec)->layout.plan.layers, 8);
  CHECK_EQ(in_memory(grid3d(64, 64, 64, 0), spec)->layout.plan.layers, 1);
}

TEST(boxes_fall_to_whole_windows) {
  for (const int n : {256, 512}) {
    const auto streams = in_memory(grid3d(n, n, n, 0));
    const StencilPlan& plan = streams->layout.plan;
    CHECK_EQ(plan.blocks, 128);
    CHECK_EQ(widest_part(*streams) % 128, 0);
    CHECK(plan.fast_bytes > 0 && plan.fast_bytes <= 227 << 10);
  }
}
