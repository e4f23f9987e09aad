// Jacobi stencils on the GPUs that are there: bit for bit what the reference computes, and how long
// iterations take. Usage: run_stencils [GPUS [checks|times]]. Ends by itself: all waits are
// bounded.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/reference/jacobi.hpp"
#include "cpufree/run/cuda_engine.hpp"
#include "cpufree/run/cuda_stencil.hpp"

namespace {

using namespace cpufree;

int failures = 0;

Grid grid_of(int dims, std::int64_t n0, std::int64_t n1, std::int64_t n2, unsigned periodic = 0) {
  Grid grid{dims, {n0, dims == 3 ? n1 : 1, n2}, {}};
  for (unsigned a = 0; a < 3; ++a)
    grid.periodic[a] = grid.active(static_cast<int>(a)) && ((periodic >> a) & 1U) != 0;
  return grid;
}

template <class T>
std::vector<T> rough(const Grid& grid, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(grid.points()));
  std::uint32_t state = 2463534242U + seed;
  for (T& value : values) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    value = static_cast<T>(state) / static_cast<T>(3000000000.0) - T{0.5};
  }
  return values;
}

template <class T>
StencilResult run(const Grid& grid, const std::vector<T>& start, const std::vector<T>& source,
                  std::vector<T>& out, const StencilSpec& spec, std::int64_t iterations) {
  StencilRun how;
  how.iterations = iterations;
  how.limits.wait_limit = 5.0;
  return run_cuda_stencil<T>({grid, start, source, out}, spec, how, {});
}

// All ways to exchange, on one grid.
template <class T>
void check_grid(const Grid& grid, int gpus, int blocks, bool with_source) {
  constexpr std::int64_t kIterations = 23;
  const auto start = rough<T>(grid, 1);
  const auto source = with_source ? rough<T>(grid, 2) : std::vector<T>{};
  const auto expected =
      reference::jacobi<T>(start, with_source ? source.data() : nullptr, grid, kIterations);
  for (const int layers : {1, 2, 4})
    for (const int halo : {0, 1}) {
      StencilSpec spec;
      spec.engine = Engine::cuda_p2p;
      spec.pes = gpus;
      spec.blocks = blocks;
      spec.layers = layers;
      spec.halo = halo;
      std::vector<T> out(start.size());
      const StencilResult result = run(grid, start, source, out, spec, kIterations);
      const bool right = std::memcmp(out.data(), expected.data(), out.size() * sizeof(T)) == 0;
      failures += right ? 0 : 1;
      if (!right)
        std::printf("WRONG: %lld x %lld x %lld on %d x %d blocks, %d layers, %s\n",
                    static_cast<long long>(grid.n[0]), static_cast<long long>(grid.n[1]),
                    static_cast<long long>(grid.n[2]), result.plan.pes, result.plan.blocks,
                    result.plan.layers, result.plan.halo.c_str());
    }
}

void check_all(int gpus) {
  for (const int blocks : {1, 7, 0})
    for (unsigned periodic = 0; periodic < 8; periodic += 3) {
      check_grid<float>(grid_of(2, 67, 1, 129, periodic), gpus, blocks, true);
      check_grid<double>(grid_of(2, 300, 1, 41, periodic), gpus, blocks, false);
      check_grid<float>(grid_of(3, 19, 35, 40, periodic), gpus, blocks, false);
      check_grid<double>(grid_of(3, 40, 9, 66, periodic), gpus, blocks, true);
    }
  check_grid<float>(grid_of(2, 2500, 1, 2500), gpus, 0, false);  // larger than what is on chip
}

// Microseconds of an iteration: the median of five runs.
void measure(const char* what, const Grid& grid, int gpus, std::int64_t iterations) {
  const auto start = rough<float>(grid, 1);
  std::vector<float> out(start.size());
  for (const int layers : {1, 2, 4, 8}) {
    StencilSpec spec;
    spec.engine = Engine::cuda_p2p;
    spec.pes = gpus;
    spec.layers = layers;
    std::vector<double> times;
    StencilPlan plan;
    for (int k = 0; k < 5; ++k) {
      const StencilResult result = run<float>(grid, start, {}, out, spec, iterations);
      times.push_back(1e6 * result.seconds / static_cast<double>(iterations));
      plan = result.plan;
    }
    std::sort(times.begin(), times.end());
    std::printf("%d GPUs  %-14s %2d layers  %-8s %-7s %9.2f us\n", gpus, what, plan.layers,
                plan.in_fast_memory ? "on chip" : "memory", plan.halo.c_str(), times[2]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int found = static_cast<int>(list_gpus().size());
  if (found == 0) {
    std::printf("skipped: no GPU here\n");
    return 0;
  }
  const std::string what = argc > 2 ? argv[2] : "";
  const int most = argc > 1 ? std::min(std::atoi(argv[1]), found) : found;
  try {
    for (int gpus = 1; gpus <= most; gpus *= 2) {
      if (what != "times") check_all(gpus);
      if (what == "checks") continue;
      for (const std::int64_t n : {256, 2048, 8192})
        measure(("2D " + std::to_string(n) + "^2 each").c_str(), grid_of(2, n * gpus, 1, n), gpus,
                n == 8192 ? 200 : 5000);
      measure("3D 256^3", grid_of(3, 256, 256, 256), gpus, 5000);
    }
  } catch (const Error& e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
