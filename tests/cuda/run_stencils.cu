// Jacobi stencils on the GPUs that are there: bit for bit what the reference computes, and how long
// iterations take. Usage: run_stencils [GPUS [checks|times|boxes|specialized [GRID]]]: with GRID,
// times of grids alone in whose name it occurs, such as 512^3. Ends by itself: all waits are
// bounded.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/launch/gpu/gpus.hpp"
#include "cpufree/reference/jacobi.hpp"
#include "cpufree/stencils/gpu/stencil.hpp"

namespace {

using namespace cpufree;

int failures = 0, cases = 0;
std::string only;  // part of the names of the grids that are measured

double seconds_since_start() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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

StencilSpec spec_of(int gpus, Sweep sweep, int layers, int rows = 0, int blocks = 0) {
  StencilSpec spec;
  spec.engine = Engine::cuda_p2p;
  spec.pes = gpus;
  spec.blocks = blocks;
  spec.sweep = sweep;
  spec.layers = layers;
  spec.rows = rows;
  return spec;
}

StencilSpec registers_3d(int gpus, int planes = 0, int blocks = 0) {
  return spec_of(gpus, Sweep::registers_3d, 0, planes, blocks);
}

void report_wrong(const Grid& grid, const StencilPlan& plan, const char* what) {
  ++failures;
  std::printf(
      "WRONG: %s: %lld x %lld x %lld periodic %d%d%d on %d x %d blocks (%s of %d), %s, %d "
      "layers, %d x %d a thread, %s\n",
      what, static_cast<long long>(grid.n[0]), static_cast<long long>(grid.n[1]),
      static_cast<long long>(grid.n[2]), grid.periodic[0], grid.periodic[1], grid.periodic[2],
      plan.pes, plan.blocks, text_of(plan.division.blocks, 3).c_str(), plan.threads,
      plan.sweep.c_str(), plan.layers, plan.rows, plan.columns, plan.halo.c_str());
}

// One problem, and what the reference makes of it.
template <class T>
struct Checked {
  Grid grid;
  std::vector<T> start, source, expected, out;
  StencilRun how;

  Checked(const Grid& g, bool with_source, std::int64_t iterations)
      : grid(g), start(rough<T>(g, 1)), out(start.size()) {
    if (with_source) source = rough<T>(g, 2);
    how.iterations = iterations;
    how.limits.wait_limit = 5.0;
    expected = reference::jacobi<T>(start, with_source ? source.data() : nullptr, g, iterations);
  }
  // Where the sweep is for this grid at all.
  void check(const StencilSpec& spec) {
    std::ranges::fill(out, T{-7});
    try {
      const StencilResult result = run_cuda_stencil<T>({grid, start, source, out}, spec, how, {});
      ++cases;
      if (std::memcmp(out.data(), expected.data(), out.size() * sizeof(T)) != 0)
        report_wrong(grid, result.plan, "values");
    } catch (const InvalidInput&) {
    }
  }
};

// All ways to compute one grid.
template <class T>
void check_grid(const Grid& grid, int gpus, int blocks, bool with_source) {
  Checked<T> c(grid, with_source, 23);
  if (grid.dims == 3)
    for (const int planes : {4, 8, 16}) c.check(registers_3d(gpus, planes, blocks));
  for (const int layers : {1, 2, 4, 8})
    if (grid.dims == 2 || layers <= 2) c.check(spec_of(gpus, Sweep::time_tiles, layers, 0, blocks));
  StencilSpec wavefront = spec_of(gpus, Sweep::wavefront, 1 + cases % 4, 0, blocks);
  wavefront.halo = cases % 2;
  c.check(wavefront);
}

void check_awkward(int gpus) {
  constexpr std::int64_t sizes[][2] = {{3, 3}, {5, 9}, {16, 33}, {67, 129}, {300, 41}, {41, 300}};
  for (const int blocks : {1, 7, 0})
    for (unsigned periodic = 0; periodic < 8; ++periodic) {
      const bool odd = (periodic + static_cast<unsigned>(blocks)) % 2 != 0;
      if ((periodic & 2U) == 0)
        for (const auto& [n0, n2] : sizes) {
          check_grid<float>(grid_of(2, n0, 1, n2, periodic), gpus, blocks, odd);
          if ((n0 + n2) % 2 == 0)
            check_grid<double>(grid_of(2, n0, 1, n2, periodic), gpus, blocks, !odd);
        }
      check_grid<float>(grid_of(3, 19, 35, 40, periodic), gpus, blocks, odd);
      check_grid<double>(grid_of(3, 40, 9, 66, periodic), gpus, blocks, !odd);
      check_grid<float>(grid_of(3, 3, 4, 5, periodic), gpus, blocks, !odd);
      check_grid<float>(grid_of(3, 11, 14, 301, periodic), gpus, blocks, odd);
    }
}

// As large as what they are made for.
void check_large(int gpus) {
  Checked<float> registers(grid_of(2, 2048, 1, 2045, 5), false, 25);
  registers.check(spec_of(gpus, Sweep::automatic, 0));
  registers.check(spec_of(gpus, Sweep::time_tiles, 8));
  Checked<float> sourced(grid_of(2, 1111, 1, 1500), true, 16);
  sourced.check(spec_of(gpus, Sweep::automatic, 0));
  Checked<float> memory(grid_of(2, 4001, 1, 3999, 4), false, 17);
  for (const int layers : {1, 2, 4, 8}) memory.check(spec_of(gpus, Sweep::time_tiles, layers));
  Checked<double> twice(grid_of(2, 1999, 1, 1313, 1), true, 17);
  for (const int layers : {2, 4, 8}) twice.check(spec_of(gpus, Sweep::time_tiles, layers));
  for (const unsigned periodic : {2U, 5U}) {
    Checked<float> box(grid_of(3, 130, 140, 150, periodic), false, 9);
    box.check(spec_of(gpus, Sweep::time_tiles, 0));
    box.check(registers_3d(gpus));
  }
  Checked<float> tile3d(grid_of(3, 128, 128, 128), true, 24);
  Checked<float> full_tile3d(grid_of(3, 128, 128, 128, 7), false, 24);  // all faces of all tiles
  Checked<double> twice_tile3d(grid_of(3, 128, 128, 64, 4), false, 24);
  tile3d.check(registers_3d(gpus));
  full_tile3d.check(registers_3d(gpus));
  twice_tile3d.check(registers_3d(gpus));
}

// The iteration at which the reference stops, where it looks every `period`.
template <class T>
std::int64_t reference_stop(const Checked<T>& c, double tolerance, std::int64_t period) {
  std::vector<T> now = c.start;
  for (std::int64_t k = 1;; ++k) {
    const std::vector<T> next = reference::jacobi<T>(now, nullptr, c.grid, 1);
    double most = 0.0;
    for (std::size_t i = 0; i < now.size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(next[i]) - static_cast<double>(now[i])));
    now = next;
    if (k % period == 0 && most <= tolerance) return k;
  }
}

// Each spec must stop where the reference does.
void check_stops(Checked<float>& c, std::int64_t period, const std::vector<StencilSpec>& specs) {
  const std::int64_t stop = reference_stop(c, 1e-3, period);
  c.expected = reference::jacobi<float>(c.start, nullptr, c.grid, stop);
  StencilRun how = c.how;
  how.iterations = 100000;
  how.tolerance = 1e-3;
  how.check_every = period;
  for (const StencilSpec& spec : specs) {
    const StencilResult result =
        run_cuda_stencil<float>({c.grid, c.start, {}, c.out}, spec, how, {});
    ++cases;
    if (result.outcome.iterations != stop || result.outcome.reason != StencilReason::converged ||
        !(result.update <= 1e-3) ||
        std::memcmp(c.out.data(), c.expected.data(), c.out.size() * sizeof(float)) != 0)
      report_wrong(c.grid, result.plan, "stopping");
  }
}

void check_stopping(int gpus) {
  Checked<float> flat(grid_of(2, 70, 1, 90), false, 1), box(grid_of(3, 35, 30, 40), false, 1);
  for (const std::int64_t period : {7, 16}) {
    check_stops(flat, period,
                {spec_of(gpus, Sweep::time_tiles, 1), spec_of(gpus, Sweep::time_tiles, 4),
                 spec_of(gpus, Sweep::wavefront, 2)});
    check_stops(box, period, {registers_3d(gpus)});
  }
}

// Specialized blocks, which there are on several GPUs.
void check_specialized(int gpus) {
  if (gpus < 2) return;
  for (unsigned periodic = 0; periodic < 8; periodic += 5)
    for (const int boundary : {0, 1, 9}) {
      const bool source = boundary == 1;
      Checked<float> flat(grid_of(2, 300, 1, 1111, periodic), source, 23);
      Checked<double> box(grid_of(3, 67, 90, 140, periodic), source, 11);
      for (const int layers : {1, 2, 4, 8}) {
        StencilSpec spec = spec_of(gpus, Sweep::specialized_blocks, layers);
        spec.boundary_blocks = boundary;
        flat.check(spec);
        if (layers == 1) box.check(spec);
      }
    }
}

void check_all(int gpus) {
  const int before = cases;
  check_specialized(gpus);
  check_stopping(gpus);
  check_awkward(gpus);
  check_large(gpus);
  std::printf("%d GPUs: %d cases, %d failures, %.1f s so far\n", gpus, cases - before, failures,
              seconds_since_start());
}

// --- Times ---

std::string boundary_text(const StencilPlan& plan) {
  if (plan.boundary_blocks == 0) return "";
  return "  " + std::to_string(plan.boundary_blocks) + " for the boundary";
}

// Microseconds of an iteration: the median of three runs after one that does not count.
template <class T>
void measure(const char* what, const Grid& grid, const std::vector<T>& start,
             const StencilSpec& spec, std::int64_t iterations) {
  if (std::string(what).find(only) == std::string::npos) return;
  StencilRun how;
  how.iterations = iterations;
  how.limits.wait_limit = 5.0;
  try {
    GpuStencil<T> stencil({grid, start, {}, {}}, spec, how);
    std::vector<double> times;
    StencilPlan plan;
    for (int k = 0; k < 4; ++k) {
      const StencilResult result = stencil.run({});
      if (k > 0) times.push_back(1e6 * result.seconds / static_cast<double>(iterations));
      plan = result.plan;
    }
    std::ranges::sort(times);
    std::printf(
        "%d GPUs  %-34s %-6s %-18s %-7s k %d  %2d x %d a thread, %3d threads, blocks %-12s"
        " %9.2f us  (%.2f to %.2f)%s\n",
        plan.pes, what, sizeof(T) == 4 ? "float" : "double", plan.sweep.c_str(), plan.halo.c_str(),
        plan.layers, plan.rows, plan.columns, plan.threads,
        text_of(plan.division.blocks, 3).c_str(), times[1], times.front(), times.back(),
        boundary_text(plan).c_str());
  } catch (const InvalidInput&) {
  }
}

template <class T>
std::vector<T> smooth(const Grid& grid) {
  std::vector<T> values(static_cast<std::size_t>(grid.points()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(i & 1023U) * static_cast<T>(1e-3);
  return values;
}

void times_of_small(int gpus) {
  const Grid small = grid_of(2, 256 * gpus, 1, 256), medium = grid_of(2, 2048 * gpus, 1, 2048);
  const auto a = smooth<float>(small), b = smooth<float>(medium);
  for (const int layers : {1, 2, 4})
    measure<float>("2D 256^2 each", small, a, spec_of(gpus, Sweep::time_tiles, layers), 10000);
  measure<float>("2D 256^2 each", small, a, spec_of(gpus, Sweep::wavefront, 4), 5000);
  for (const int layers : {1, 2, 4, 8})
    measure<float>("2D 2048^2 each", medium, b, spec_of(gpus, Sweep::time_tiles, layers), 2000);
  for (const std::int64_t n : {512, 1024}) {
    const Grid between = grid_of(2, n * gpus, 1, n);
    const auto values = smooth<float>(between);
    const std::string what = "2D " + std::to_string(n) + "^2 each";
    measure<float>(what.c_str(), between, values, spec_of(gpus, Sweep::time_tiles, 4), 5000);
  }
  const auto c = smooth<double>(medium);
  for (const int layers : {1, 2, 4, 8})
    measure<double>("2D 2048^2 each", medium, c, spec_of(gpus, Sweep::time_tiles, layers), 2000);
}

template <class T>
void times_of_large(int gpus) {
  const Grid large = grid_of(2, 8192 * gpus, 1, 8192);
  const auto start = smooth<T>(large);
  for (const int layers : {1, 2, 4, 8})
    measure<T>("2D 8192^2 each", large, start, spec_of(gpus, Sweep::time_tiles, layers), 240);
}

// 3-D tiles, as a whole and without computing; passes over memory.
template <class T>
void times_of_box(const char* what, const Grid& grid, int gpus, std::int64_t iterations) {
  const auto start = smooth<T>(grid);
  StencilSpec spec = registers_3d(gpus);
  measure<T>(what, grid, start, spec, iterations);
  spec.study = Study::no_compute;
  measure<T>((std::string(what) + ", no computing").c_str(), grid, start, spec, iterations);
  for (const int layers : {1, 2})
    measure<T>(what, grid, start, spec_of(gpus, Sweep::time_tiles, layers), iterations);
}

void times_of_boxes(int gpus) {
  const Grid fixed = grid_of(3, 256, 256, 256), box = grid_of(3, 512 * gpus, 512, 512);
  for (const std::int64_t n : {64, 128, 160}) {  // 128: what each of 8 GPUs has of 256^3
    const Grid small = grid_of(3, n * gpus, n, n);
    const std::string what = "3D " + std::to_string(n) + "^3 each";
    times_of_box<float>(what.c_str(), small, gpus, 4000);
    times_of_box<double>(what.c_str(), small, gpus, 4000);
  }
  const Grid half = grid_of(3, 128 * gpus, 128, 256);  // what each of 4 GPUs has
  times_of_box<float>("3D 128x128x256 each", half, gpus, 4000);
  times_of_box<float>("3D 256^3 in all", fixed, gpus, 600);  // 3-D tiles: on 4 GPUs or more
  measure<float>("3D 256^3 in all", fixed, smooth<float>(fixed), spec_of(gpus, Sweep::wavefront, 0),
                 60);
  for (const int layers : {1, 2}) {
    const StencilSpec spec = spec_of(gpus, Sweep::time_tiles, layers);
    measure<float>("3D 512^3 each", box, smooth<float>(box), spec, 100);
    measure<double>("3D 512^3 each", box, smooth<double>(box), spec, 100);
  }
}

// Specialized blocks, by the thesis' formula and in other numbers, beside tiles.
template <class T>
void times_of_specialized(const char* what, const Grid& grid, int gpus, int layers,
                          std::int64_t iterations) {
  const auto start = smooth<T>(grid);
  measure<T>(what, grid, start, spec_of(gpus, Sweep::time_tiles, layers), iterations);
  StencilSpec spec = spec_of(gpus, Sweep::specialized_blocks, layers);
  for (const int boundary : {0, 1, 2, 4, 8, 16, 32}) {
    spec.boundary_blocks = boundary;
    measure<T>(what, grid, start, spec, iterations);
  }
}

void times_of_specialized_blocks(int gpus) {
  if (gpus < 2) return;
  for (const int layers : {1, 4})
    times_of_specialized<float>("2D 2048^2 each", grid_of(2, 2048 * gpus, 1, 2048), gpus, layers,
                                2000);
  times_of_specialized<float>("2D 8192^2 each", grid_of(2, 8192 * gpus, 1, 8192), gpus, 4, 240);
  times_of_specialized<float>("3D 256^3 in all", grid_of(3, 256, 256, 256), gpus, 1, 600);
  times_of_specialized<float>("3D 512^3 each", grid_of(3, 512 * gpus, 512, 512), gpus, 1, 60);
}

void time_all(int gpus, bool boxes) {
  if (boxes) return times_of_boxes(gpus);
  times_of_small(gpus);
  times_of_large<float>(gpus);
  times_of_large<double>(gpus);
  times_of_boxes(gpus);
  std::printf("%d GPUs: %.1f s so far\n", gpus, seconds_since_start());
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  seconds_since_start();
  const int found = static_cast<int>(list_gpus().size());
  if (found == 0) {
    std::printf("skipped: no GPU here\n");
    return 0;
  }
  const int most = argc > 1 ? std::min(std::atoi(argv[1]), found) : found;
  const std::string what = argc > 2 ? argv[2] : "";
  if (argc > 3) only = argv[3];
  try {
    for (int gpus = 1; gpus <= most; gpus *= 2) {
      if (what == "specialized") {
        check_specialized(gpus);
        times_of_specialized_blocks(gpus);
        continue;
      }
      if (what != "times" && what != "boxes") check_all(gpus);
      if (what != "checks") time_all(gpus, what == "boxes");
    }
  } catch (const Error& e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
