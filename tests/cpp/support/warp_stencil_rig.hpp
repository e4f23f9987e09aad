// Runs of the stencil kernels for blocks of warps on fibers, thread by thread under random
// schedules.
#pragma once

#include <cstdio>
#include <vector>

#include "cpufree/stencils/host/host_stencil.hpp"
#include "cpufree/stencils/host/specialized_plan.hpp"
#include "cpufree/stencils/registers_3d.hpp"
#include "cpufree/stencils/time_tiles.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"
#include "warp_rig.hpp"

namespace warp_stencils {

using namespace stencil_rig;

inline constexpr int kIterations = 6;
inline constexpr std::size_t kFastBytes = 1 << 20;

struct Setup {
  int pes = 1, blocks = 2;
  bool source = false;
  double tolerance = -1.0;
  std::int64_t check_every = 1000;
  std::int64_t most = kIterations, expected = kIterations;
  bool specialized = false;
  int boundary_blocks = 0;
};

// What has come of a run. One that does not fit has not run.
template <class T>
struct Ran {
  Case<T> c;
  bool fits = false, ended = false;
  StencilOutcome outcome = {};

  // -1: it does not fit; else whether it ended with the bits of the reference.
  int verdict(const Setup& setup) const {
    if (!fits) return -1;
    const std::int64_t iterations = outcome.iterations;
    return ended && iterations == setup.expected && same_bits(c.out, c.expected(iterations)) ? 1
                                                                                             : 0;
  }
};

template <class T>
Ran<T> case_of(const Grid& grid, const Setup& setup) {
  Ran<T> ran{Case<T>(grid, setup.most, setup.source)};
  ran.c.spec.pes = setup.pes;
  ran.c.run.check_every = setup.check_every;
  ran.c.run.tolerance = setup.tolerance;
  return ran;
}

// Calls kernel<with or without a source>(port).
template <Study S, class F>
void run_kernel(warp_rig::Port& port, bool source, F&& kernel) {
  run_as<S>(port, [&](auto& p) {
    source ? kernel.template operator()<true>(p) : kernel.template operator()<false>(p);
  });
}

// Runs a case in registers, in three dimensions: Z planes and C columns a thread. A run that hangs
// ends after some ten times the steps of the longest that ends.
template <class T, int C, int Z, Study S = Study::none>
Ran<T> in_registers_3d(const Grid& grid, const Setup& setup, std::uint64_t seed,
                       warp_rig::Mishap* mishap = nullptr) {
  warp_rig::Mishap none{{}, 40'000'000};
  Ran<T> ran = case_of<T>(grid, setup);
  const Tile3dShape shapes[] = {{C, Z}};
  auto found = lay_out_registers_3d(grid, ran.c.spec, ran.c.run, setup.blocks, sizeof(T),
                                    setup.source, {{}, 4, kFastBytes, shapes});
  if (ran.fits = found.has_value(); !ran.fits) return ran;
  StencilLayout& layout = found->layout;
  layout.plan.threads = 32 * found->warps;
  CHECK_EQ(layout.plan.fast_bytes, (Tile3dRoom<T, C, Z>::bytes(found->warps, setup.source)));
  HostStencil<T> stencil(ran.c.problem(), layout, ran.c.run);
  ran.ended = warp_rig::run(
      layout.plan.pes, layout.plan.blocks, layout.plan.threads, at(layout.plan.fast_bytes),
      stencil.heaps(), seed,
      [&](warp_rig::Port& port, int pe) {
        run_kernel<S>(port, setup.source, [&]<bool kSource>(auto& p) {
          tile3d_kernel<C, Z, kSource>(p, stencil.args(pe));
        });
      },
      mishap != nullptr ? mishap : &none);
  ran.outcome = stencil.result(0.0).outcome;
  return ran;
}

// The boxes of a case with values in memory, and the kernel's arguments that tell of them.
template <class T>
struct Boxes {
  std::vector<std::vector<T>> sources;
  std::vector<double> updates;

  Boxes(HostStencil<T>& stencil, const TimeTileLayout& found, const StencilHeap<T>& heap,
        const cpu_threads::SymmetricHeaps& heaps, const Case<T>& c, int threads)
      : sources(found.pes.size()),
        updates(found.pes.size() * at(found.layout.plan.blocks * threads)) {
    for (int pe = 0; pe < found.layout.plan.pes; ++pe) {
      JacobiArgs<T>& args = stencil.args(pe);
      heap.place(args, heaps.base(pe));
      args.updates = updates.data() + pe * found.layout.plan.blocks * threads;
      args.time_tile = time_tile_arguments<T>(c.grid, found, at(pe));
      args.time_tile.parts = found.pes[at(pe)].parts.data();
      args.time_tile.ghosts = found.pes[at(pe)].ghosts.data();
      for (int copy = 0; copy < 2; ++copy) {
        T* const box = heap.boxes[copy].at(heaps.base(pe));
        fill_box<T>(c.grid, found, at(pe), c.start, box);
        args.time_tile.values[copy] = box + found.box.first;
      }
      if (c.source.empty()) continue;
      sources[at(pe)].resize(at(found.box.values) + 8);
      T* box = sources[at(pe)].data();
      while (reinterpret_cast<std::uintptr_t>(box) % 16 != 0) ++box;
      fill_box<T>(c.grid, found, at(pe), c.source, box);
      args.time_tile.source = box + found.box.first;
    }
  }
};

// Runs a case with values in memory, K iterations a pass.
template <class T, int D, int K, Study S = Study::none>
Ran<T> in_memory(const Grid& grid, const Setup& setup, std::uint64_t seed) {
  constexpr int warps = 2, threads = 32 * (warps + rim_warps(D));
  Ran<T> ran = case_of<T>(grid, setup);
  const int layers[] = {K};
  const WarpKernels kernels{layers, warps, 0};
  ran.c.spec.layers = K;
  ran.c.spec.boundary_blocks = setup.boundary_blocks;
  const auto lay_out = [&]() -> std::optional<TimeTileLayout> {
    const Case<T>& c = ran.c;
    if (!setup.specialized)
      return lay_out_time_tiles(grid, c.spec, c.run, setup.blocks, sizeof(T), setup.source,
                                kernels);
    return lay_out_specialized(grid, c.spec, c.run, setup.blocks, sizeof(T), setup.source, kernels);
  };
  const auto found = lay_out();
  if (ran.fits = found.has_value(); !ran.fits) return ran;
  const StencilPlan& plan = found->layout.plan;
  const StencilHeap<T> heap(found->layout.tiling, false, found->box.values);
  const cpu_threads::SymmetricHeaps heaps(plan.pes, heap.bytes);
  HostStencil<T> stencil(ran.c.problem(), found->layout, ran.c.run);
  const Boxes<T> boxes(stencil, *found, heap, heaps, ran.c, threads);
  ran.ended = warp_rig::run(plan.pes, plan.blocks, threads, at(plan.fast_bytes), heaps.bases(),
                            seed, [&](warp_rig::Port& port, int pe) {
                              run_kernel<S>(port, setup.source, [&]<bool kSource>(auto& p) {
                                time_tile_kernel<D, K, kSource>(p, stencil.args(pe));
                              });
                            });
  ran.outcome = stencil.result(0.0).outcome;
  return ran;
}

struct Count {
  int right = 0, wrong = 0;
  template <class T>
  void add(const Ran<T>& ran, const Grid& grid, const Setup& setup, const char* what) {
    const int result = ran.verdict(setup);
    right += result == 1 ? 1 : 0;
    wrong += result == 0 ? 1 : 0;
    if (result == 0)
      std::printf("wrong: %s, %ld x %ld x %ld, periodic %d%d%d, %d PEs, %d blocks\n", what,
                  static_cast<long>(grid.n[0]), static_cast<long>(grid.n[1]),
                  static_cast<long>(grid.n[2]), grid.periodic[0], grid.periodic[1],
                  grid.periodic[2], setup.pes, setup.blocks);
  }
};

}  // namespace warp_stencils
