// The stencil kernels for blocks of warps, thread by thread under random schedules: bit for bit
// what the reference computes.
#include <cstdio>

#include "cpufree/run/host_stencil.hpp"
#include "cpufree/run/warp_plan.hpp"
#include "cpufree/stencils/registers.hpp"
#include "cpufree/stencils/streams.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"
#include "warp_rig.hpp"

using namespace stencil_rig;

namespace {

constexpr int kIterations = 6;
constexpr std::size_t kFastBytes = 1 << 20;

struct Setup {
  int pes = 1, blocks = 2;
  bool source = false;
  double tolerance = -1.0;
  std::int64_t check_every = 1000;
  std::int64_t most = kIterations, expected = kIterations;
};

template <class T>
Case<T> case_of(const Grid& grid, const Setup& setup) {
  Case<T> c(grid, setup.most, setup.source);
  c.spec.pes = setup.pes;
  c.run.check_every = setup.check_every;
  c.run.tolerance = setup.tolerance;
  return c;
}

// Runs a case in registers, R rows and C columns a thread. -1: it does not fit; else whether it
// ended with the bits of the reference.
template <class T, int C, int R>
int in_registers(const Grid& grid, const Setup& setup, std::uint64_t seed) {
  auto c = case_of<T>(grid, setup);
  const RegisterShape shapes[] = {{C, R}};
  c.spec.rows = R;
  auto found = lay_out_registers(grid, c.spec, c.run, setup.blocks, sizeof(T), setup.source,
                                 {shapes, {}, 4, kFastBytes});
  if (!found) return -1;
  StencilLayout& layout = found->layout;
  layout.plan.threads = 32 * found->warps;
  CHECK_EQ(layout.plan.fast_bytes, (RegisterRoom<T, C, R>::bytes(found->warps, setup.source)));
  HostStencil<T> stencil(c.problem(), layout, c.run);
  const bool ended = warp_rig::run(
      layout.plan.pes, layout.plan.blocks, layout.plan.threads, at(layout.plan.fast_bytes),
      stencil.heaps(), seed, [&](warp_rig::Port& port, int pe) {
        setup.source ? register_kernel<C, R, true>(port, stencil.args(pe))
                     : register_kernel<C, R, false>(port, stencil.args(pe));
      });
  const std::int64_t iterations = stencil.result(0.0).outcome.iterations;
  return ended && iterations == setup.expected && same_bits(c.out, c.expected(iterations)) ? 1 : 0;
}

// A case with values in memory, K iterations a pass.
template <class T, int D, int K>
int in_memory(const Grid& grid, const Setup& setup, std::uint64_t seed) {
  auto c = case_of<T>(grid, setup);
  constexpr int threads = 64;
  const int layers[] = {K};
  c.spec.layers = K;
  auto found = lay_out_streams(grid, c.spec, c.run, setup.blocks, sizeof(T), setup.source,
                               {{}, layers, threads / 32, 0});
  if (!found) return -1;
  StencilPlan& plan = found->layout.plan;
  const StencilHeap<T> heap(found->layout.tiling, false, found->box.values);
  const cpu_threads::SymmetricHeaps heaps(plan.pes, heap.bytes);
  HostStencil<T> stencil(c.problem(), found->layout, c.run);
  std::vector<std::vector<T>> sources(at(plan.pes));
  std::vector<double> updates(at(plan.pes * plan.blocks * threads));
  for (int pe = 0; pe < plan.pes; ++pe) {
    JacobiArgs<T>& args = stencil.args(pe);
    heap.place(args, heaps.base(pe));
    args.updates = updates.data() + pe * plan.blocks * threads;
    args.stream = stream_arguments<T>(grid, *found, at(pe));
    args.stream.parts = found->pes[at(pe)].parts.data();
    args.stream.ghosts = found->pes[at(pe)].ghosts.data();
    for (int copy = 0; copy < 2; ++copy) {
      T* const box = heap.boxes[copy].at(heaps.base(pe));
      fill_box<T>(grid, *found, at(pe), c.start, box);
      args.stream.values[copy] = box + found->box.first;
    }
    if (!setup.source) continue;
    sources[at(pe)].resize(at(found->box.values) + 8);
    T* box = sources[at(pe)].data();
    while (reinterpret_cast<std::uintptr_t>(box) % 16 != 0) ++box;
    fill_box<T>(grid, *found, at(pe), c.source, box);
    args.stream.source = box + found->box.first;
  }
  const bool ended = warp_rig::run(plan.pes, plan.blocks, threads, at(plan.fast_bytes),
                                   heaps.bases(), seed, [&](warp_rig::Port& port, int pe) {
                                     setup.source
                                         ? stream_kernel<D, K, true>(port, stencil.args(pe))
                                         : stream_kernel<D, K, false>(port, stencil.args(pe));
                                   });
  const std::int64_t iterations = stencil.result(0.0).outcome.iterations;
  return ended && iterations == setup.expected && same_bits(c.out, c.expected(iterations)) ? 1 : 0;
}

struct Count {
  int right = 0, wrong = 0;
  void add(int result, const Grid& grid, const Setup& setup, const char* what) {
    right += result == 1 ? 1 : 0;
    wrong += result == 0 ? 1 : 0;
    if (result == 0)
      std::printf("wrong: %s, %ld x %ld x %ld, periodic %d%d%d, %d PEs, %d blocks\n", what,
                  static_cast<long>(grid.n[0]), static_cast<long>(grid.n[1]),
                  static_cast<long>(grid.n[2]), grid.periodic[0], grid.periodic[1],
                  grid.periodic[2], setup.pes, setup.blocks);
  }
};

}  // namespace

TEST(tiles_in_registers_equal_the_reference) {
  Count count;
  std::uint64_t seed = 1;
  for (unsigned periodic = 0; periodic < 4; ++periodic)
    for (const auto& [ny, nx] : {std::pair{3, 3}, {5, 9}, {9, 35}, {13, 23}, {17, 63}})
      for (const int pes : {1, 2}) {
        const Grid grid = grid2d(ny, nx, (periodic & 1U) != 0, (periodic & 2U) != 0);
        const Setup setup{pes, 1 + static_cast<int>(seed % 3), seed % 2 == 0};
        count.add(in_registers<double, 1, 1>(grid, setup, seed), grid, setup, "1 x 1");
        count.add(in_registers<float, 1, 4>(grid, setup, seed), grid, setup, "1 x 4");
        count.add(in_registers<double, 2, 2>(grid, setup, seed), grid, setup, "2 x 2");
        count.add(in_registers<float, 4, 8>(grid, setup, seed), grid, setup, "4 x 8");
        ++seed;
      }
  CHECK_EQ(count.wrong, 0);
  CHECK(count.right > 40);
  std::printf("%d right\n", count.right);
}

TEST(passes_over_memory_in_two_dimensions_equal_the_reference) {
  Count count;
  std::uint64_t seed = 1;
  for (unsigned periodic = 0; periodic < 4; ++periodic)
    for (const auto& [ny, nx] : {std::pair{3, 3}, {5, 9}, {19, 35}, {13, 131}, {40, 24}})
      for (const int pes : {1, 2}) {
        const Grid grid = grid2d(ny, nx, (periodic & 1U) != 0, (periodic & 2U) != 0);
        const Setup setup{pes, 1 + static_cast<int>(seed % 3), seed % 2 == 0};
        count.add(in_memory<float, 2, 1>(grid, setup, seed), grid, setup, "K 1");
        count.add(in_memory<double, 2, 2>(grid, setup, seed), grid, setup, "K 2");
        count.add(in_memory<float, 2, 4>(grid, setup, seed), grid, setup, "K 4");
        count.add(in_memory<double, 2, 4>(grid, setup, seed), grid, setup, "K 4 double");
        count.add(in_memory<float, 2, 8>(grid, setup, seed), grid, setup, "K 8");
        ++seed;
      }
  CHECK_EQ(count.wrong, 0);
  CHECK(count.right > 100);
  std::printf("%d right\n", count.right);
}

TEST(passes_over_memory_in_three_dimensions_equal_the_reference) {
  Count count;
  std::uint64_t seed = 1;
  for (unsigned periodic = 0; periodic < 8; ++periodic)
    for (const auto& [nz, ny, nx] : {std::tuple{3, 3, 3}, {5, 7, 9}, {4, 13, 131}, {31, 5, 6}}) {
      const Grid grid = grid3d(nz, ny, nx, periodic);
      const Setup setup{1 + static_cast<int>(seed % 2), 1 + static_cast<int>(seed % 3),
                        seed % 2 == 0};
      count.add(in_memory<float, 3, 1>(grid, setup, seed), grid, setup, "float");
      count.add(in_memory<double, 3, 1>(grid, setup, seed), grid, setup, "double");
      ++seed;
    }
  CHECK_EQ(count.wrong, 0);
  CHECK(count.right > 50);
  std::printf("%d right\n", count.right);
}

TEST(tolerance_stops_blocks_of_warps_where_it_stops_others) {
  Case<double> c(grid2d(9, 11), 10000);
  c.run.tolerance = 0.05;
  c.run.check_every = 2;
  const std::int64_t iterations = c.go().outcome.iterations;
  CHECK(iterations > 4 && iterations < 100);
  Count count;
  const Setup setup{1, 2, false, 0.05, 2, 10000, iterations};
  count.add(in_registers<double, 1, 2>(c.grid, setup, 3), c.grid, setup, "registers");
  count.add(in_memory<double, 2, 2>(c.grid, setup, 3), c.grid, setup, "memory");
  CHECK_EQ(count.wrong, 0);
}
