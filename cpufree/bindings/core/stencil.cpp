// Stencils from Python: arrays in, arrays out.
#include "cpufree/bindings/core/stencil.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "cpufree/bindings/grid.hpp"
#include "cpufree/bindings/options.hpp"
#include "cpufree/bindings/team.hpp"
#include "cpufree/bindings/trace.hpp"
#include "cpufree/stencils/host/stencil.hpp"
#include "cpufree/stencils/host/stencil_plan.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

template <class T>
using Values = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class T>
Grid grid_of(const Values<T>& values, const std::vector<bool>& periodic) {
  std::vector<std::int64_t> shape;
  for (std::size_t k = 0; k < values.ndim(); ++k)
    shape.push_back(static_cast<std::int64_t>(values.shape(k)));
  return cpufree::grid_of(shape, periodic);
}

StencilSpec stencil_spec_of(const nb::dict& options) {
  StencilSpec spec;
  spec.engine = engine_from_name(option<std::string>(options, "engine", "cpu_threads"));
  spec.pes = option(options, "pes", spec.pes);
  spec.blocks = option(options, "blocks", spec.blocks);
  spec.gpus = option(options, "gpus", spec.gpus);
  spec.remote_library = option(options, "remote_library", spec.remote_library);
  spec.machine = machine_of(options);
  spec.cores = option(options, "cores", spec.cores);
  spec.layers = option(options, "halo_steps", spec.layers);
  spec.thickness = option(options, "thickness", spec.thickness);
  spec.halo = option(options, "halo", spec.halo);
  spec.sweep = sweep_from_name(option<std::string>(options, "sweep", "auto"));
  spec.rows = option(options, "rows", spec.rows);
  spec.boundary_blocks = option(options, "boundary_blocks", spec.boundary_blocks);
  spec.study = study_from_name(option<std::string>(options, "study", "none"));
  if (options.contains("trace")) spec.trace = trace_spec_of(nb::cast<nb::dict>(options["trace"]));
  return spec;
}

StencilRun run_of(const nb::dict& options) {
  StencilRun run;
  run.iterations = option(options, "iterations", run.iterations);
  run.tolerance = option(options, "tol", run.tolerance);
  run.check_every = option(options, "check_every", run.check_every);
  run.limits.time_limit = option(options, "time_limit", run.limits.time_limit);
  run.limits.wait_limit = option(options, "wait_limit", run.limits.wait_limit);
  run.gather = option(options, "gather", run.gather);
  return run;
}

nb::dict dict_of(const StencilResult& result, int dims) {
  const StencilPlan& plan = result.plan;
  nb::dict d;
  d["reason"] = reason_name(result.outcome.reason);
  d["iterations"] = result.outcome.iterations;
  d["exchanges"] = result.outcome.exchanges;
  d["checks"] = result.outcome.checks;
  d["update"] = result.update;
  d["seconds"] = result.seconds;
  d["trace"] = dict_of_trace(result.trace ? &*result.trace : nullptr);
  d["engine"] = plan.engine;
  d["pes"] = plan.pes;
  d["blocks"] = plan.blocks;
  d["threads"] = plan.threads;
  d["pe_grid"] = text_of(plan.division.pes, dims);
  d["block_grid"] = text_of(plan.division.blocks, dims);
  d["halo_steps"] = plan.layers;
  d["thickness"] = plan.thickness;
  d["check_every"] = plan.check_every;
  d["tile_points"] = plan.tile_points;
  d["halo_points"] = plan.halo_points;
  d["pe_halo_points"] = plan.pe_halo_points;
  d["halo"] = plan.halo;
  d["in_fast_memory"] = plan.in_fast_memory;
  d["sweep"] = plan.sweep;
  d["rows"] = plan.rows;
  d["columns"] = plan.columns;
  d["boundary_blocks"] = plan.boundary_blocks;
  return d;
}

// The arrays of a call, of one type and shape.
template <class T>
struct Arrays {
  Values<const T> start, source;
  Values<T> out;

  // False: the values are of another type.
  bool take(const nb::object& from, const nb::object& f, const nb::object& to) {
    if (!nb::try_cast(from, start, false)) return false;
    require(nb::try_cast(to, out, false) && (f.is_none() || nb::try_cast(f, source, false)),
            "start, source and out must be contiguous arrays of the same type");
    return true;
  }
  StencilProblem<T> problem(const std::vector<bool>& periodic) const {
    StencilProblem<T> problem;
    problem.grid = grid_of(start, periodic);
    problem.start = std::span<const T>(start.data(), start.size());
    if (source.is_valid()) problem.source = std::span<const T>(source.data(), source.size());
    problem.out = {out.data(), out.size()};
    return problem;
  }
};

// f(arrays) for the type that the values have.
template <class F>
auto with_arrays(const nb::object& start, const nb::object& source, const nb::object& out, F&& f) {
  if (Arrays<double> arrays; arrays.take(start, source, out)) return f(arrays);
  if (Arrays<float> arrays; arrays.take(start, source, out)) return f(arrays);
  throw InvalidInput("values must be a contiguous array of float64 or float32");
}

// Runs a problem without the GIL, which its functions take for themselves.
template <class T>
nb::dict run_problem(const StencilProblem<T>& problem, const StencilSpec& spec,
                     const nb::dict& options, const nb::object& progress) {
  require_known(options, {"engine",     "pes",        "blocks",     "gpus",  "halo_steps",
                          "thickness",  "halo",       "iterations", "tol",   "check_every",
                          "time_limit", "wait_limit", "study",      "trace", "boundary_blocks",
                          "sweep",      "rows",       "gather",     "cores", "remote_library",
                          "machine"});
  const StencilRun run = run_of(options);
  Progress tell;
  if (!progress.is_none())
    tell = [&](std::int64_t iteration, double update) {
      const nb::gil_scoped_acquire acquire;
      return nb::cast<bool>(progress(iteration, update));
    };
  StencilResult result;
  {
    const nb::gil_scoped_release release;
    result = run_stencil(problem, spec, run, tell);
  }
  return dict_of(result, problem.grid.dims);
}

nb::dict jacobi(const nb::object& start, const nb::object& source, const nb::object& out,
                const std::vector<bool>& periodic, const nb::dict& options,
                const nb::object& progress) {
  return with_arrays(start, source, out, [&](const auto& arrays) {
    return run_problem(arrays.problem(periodic), stencil_spec_of(options), options, progress);
  });
}

// Functions of Python that are asked for boxes of a grid: f(lo, hi) for the numbers of the points
// along each axis returns an array.
class Boxes {
 public:
  explicit Boxes(int dims) : dims_(dims) {}

  template <class T>
  GridValues<T> values(const nb::object& f) const {
    if (f.is_none()) return {};
    return GridValues<T>::by_boxes([this, &f](const GridSpan& box, T* to) {
      const nb::gil_scoped_acquire acquire;
      const auto array = ask<const T>(f, box);
      std::copy_n(array.data(), array.size(), to);
    });
  }
  // `kept` holds the array until the GIL is held again.
  template <class T>
  auto room(const nb::object& f, Values<T>& kept) const {
    return [this, &f, &kept](const GridSpan& box) {
      const nb::gil_scoped_acquire acquire;
      kept = ask<T>(f, box);
      return kept.data();
    };
  }

 private:
  template <class T>
  Values<T> ask(const nb::object& f, const GridSpan& box) const {
    std::vector<std::int64_t> lo, hi;
    for (int a = 0; a < 3; ++a) {
      if (dims_ == 2 && a == 1) continue;
      lo.push_back(box.lo[a]);
      hi.push_back(box.hi[a]);
    }
    Values<T> array;
    require(nb::try_cast(f(lo, hi), array, false) && array.ndim() == lo.size(),
            "values of a box must be a contiguous array of the type of the grid");
    for (std::size_t a = 0; a < lo.size(); ++a)
      require(static_cast<std::int64_t>(array.shape(a)) == hi[a] - lo[a],
              "values of a box must have its shape");
    return array;
  }

  int dims_;
};

template <class T>
nb::dict run_by_boxes(const Grid& grid, const nb::object& start, const nb::object& source,
                      const nb::object& room, const StencilSpec& spec, const nb::dict& options,
                      const nb::object& progress) {
  const Boxes boxes(grid.dims);
  Values<T> kept;
  StencilProblem<T> problem{grid, boxes.values<T>(start), boxes.values<T>(source), {}};
  problem.room = boxes.room<T>(room, kept);
  return run_problem(problem, spec, options, progress);
}

nb::dict jacobi_by_boxes(const std::vector<std::int64_t>& shape, bool single,
                         const nb::object& start, const nb::object& source, const nb::object& room,
                         const std::vector<bool>& periodic, const nb::dict& options,
                         const nb::object& progress, const nb::object& team) {
  const Grid grid = cpufree::grid_of(shape, periodic);
  StencilSpec spec = stencil_spec_of(options);
  spec.team = team_of(team);
  return single ? run_by_boxes<float>(grid, start, source, room, spec, options, progress)
                : run_by_boxes<double>(grid, start, source, room, spec, options, progress);
}

void jacobi_reference(const nb::object& start, const nb::object& source, const nb::object& out,
                      const std::vector<bool>& periodic, std::int64_t iterations) {
  with_arrays(start, source, out, [&](const auto& arrays) {
    const auto problem = arrays.problem(periodic);
    const nb::gil_scoped_release release;
    run_reference(problem, iterations);
  });
}

bool in_registers_3d(const std::vector<std::int64_t>& shape, const std::vector<bool>& periodic,
                     bool single, bool source, int pes, int blocks) {
  return fits_registers_3d(cpufree::grid_of(shape, periodic), pes, blocks, single ? 4 : 8, source);
}

}  // namespace

void bind_stencils(nb::module_& m) {
  m.def("jacobi", &jacobi, nb::arg("start"), nb::arg("source").none(), nb::arg("out"),
        nb::arg("periodic"), nb::arg("options"), nb::arg("progress").none());
  m.def("jacobi_by_boxes", &jacobi_by_boxes, nb::arg("shape"), nb::arg("single"), nb::arg("start"),
        nb::arg("source").none(), nb::arg("room"), nb::arg("periodic"), nb::arg("options"),
        nb::arg("progress").none(), nb::arg("team").none());
  m.def("fits_registers_3d", &in_registers_3d, nb::arg("shape"), nb::arg("periodic"),
        nb::arg("single"), nb::arg("source"), nb::arg("pes"), nb::arg("blocks"));
  m.def("jacobi_reference", &jacobi_reference, nb::arg("start"), nb::arg("source").none(),
        nb::arg("out"), nb::arg("periodic"), nb::arg("iterations"));
}

}  // namespace cpufree
