// Stencils from Python: arrays in, arrays out.
#include "cpufree/bindings/stencil.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <vector>

#include "cpufree/bindings/grid.hpp"
#include "cpufree/bindings/options.hpp"
#include "cpufree/run/stencil.hpp"

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

StencilSpec spec_of(const nb::dict& options) {
  StencilSpec spec;
  spec.engine = engine_from_name(option<std::string>(options, "engine", "cpu_threads"));
  spec.pes = option(options, "pes", spec.pes);
  spec.blocks = option(options, "blocks", spec.blocks);
  spec.gpus = option(options, "gpus", spec.gpus);
  spec.layers = option(options, "halo_steps", spec.layers);
  spec.thickness = option(options, "thickness", spec.thickness);
  spec.halo = option(options, "halo", spec.halo);
  spec.sweep = sweep_from_name(option<std::string>(options, "sweep", "auto"));
  spec.rows = option(options, "rows", spec.rows);
  spec.roles = roles_from_name(option<std::string>(options, "roles", "tiles"));
  spec.boundary_blocks = option(options, "boundary_blocks", spec.boundary_blocks);
  spec.study = study_from_name(option<std::string>(options, "study", "none"));
  return spec;
}

StencilRun run_of(const nb::dict& options) {
  StencilRun run;
  run.iterations = option(options, "iterations", run.iterations);
  run.tolerance = option(options, "tol", run.tolerance);
  run.check_every = option(options, "check_every", run.check_every);
  run.limits.time_limit = option(options, "time_limit", run.limits.time_limit);
  run.limits.wait_limit = option(options, "wait_limit", run.limits.wait_limit);
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
  d["roles"] = plan.roles;
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
    problem.start = {start.data(), start.size()};
    if (source.is_valid()) problem.source = {source.data(), source.size()};
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

nb::dict jacobi(const nb::object& start, const nb::object& source, const nb::object& out,
                const std::vector<bool>& periodic, const nb::dict& options,
                const nb::object& progress) {
  require_known(options, {"engine", "pes", "blocks", "gpus", "halo_steps", "thickness", "halo",
                          "iterations", "tol", "check_every", "time_limit", "wait_limit", "study",
                          "roles", "boundary_blocks", "sweep", "rows"});
  const StencilSpec spec = spec_of(options);
  const StencilRun run = run_of(options);
  Progress tell;
  if (!progress.is_none())
    tell = [&](std::int64_t iteration, double update) {
      const nb::gil_scoped_acquire acquire;
      return nb::cast<bool>(progress(iteration, update));
    };
  return with_arrays(start, source, out, [&](const auto& arrays) {
    const auto problem = arrays.problem(periodic);
    StencilResult result;
    {
      const nb::gil_scoped_release release;
      result = run_stencil(problem, spec, run, tell);
    }
    return dict_of(result, problem.grid.dims);
  });
}

void jacobi_reference(const nb::object& start, const nb::object& source, const nb::object& out,
                      const std::vector<bool>& periodic, std::int64_t iterations) {
  with_arrays(start, source, out, [&](const auto& arrays) {
    const auto problem = arrays.problem(periodic);
    const nb::gil_scoped_release release;
    run_reference(problem, iterations);
  });
}

}  // namespace

void bind_stencils(nb::module_& m) {
  m.def("jacobi", &jacobi, nb::arg("start"), nb::arg("source").none(), nb::arg("out"),
        nb::arg("periodic"), nb::arg("options"), nb::arg("progress").none());
  m.def("jacobi_reference", &jacobi_reference, nb::arg("start"), nb::arg("source").none(),
        nb::arg("out"), nb::arg("periodic"), nb::arg("iterations"));
}

}  // namespace cpufree
