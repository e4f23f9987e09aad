#include "cpufree/bindings/core/system.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cpufree/bindings/argument.hpp"
#include "cpufree/bindings/arrays.hpp"
#include "cpufree/bindings/columns.hpp"
#include "cpufree/bindings/core/system_report.hpp"
#include "cpufree/bindings/errors.hpp"
#include "cpufree/bindings/options.hpp"
#include "cpufree/bindings/team.hpp"
#include "cpufree/bindings/trace.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"
#include "cpufree/solvers/host/setup.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

// Vectors of shape (rows, modes), and the node of each row, if rows are not nodes.
std::shared_ptr<const multigrid::NearNullSpace> near_null_space(const nb::dict& tuning) {
  using Modes = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  if (!tuning.contains("near_nullspace")) return nullptr;
  const auto vectors = nb::cast<Modes>(tuning["near_nullspace"]);
  const auto node = tuning.contains("node") ? nb::cast<Rows>(tuning["node"]) : Rows();
  return std::make_shared<multigrid::NearNullSpace>(multigrid::NearNullSpace::of(
      {vectors.data(), vectors.size()}, static_cast<std::int32_t>(vectors.shape(1)),
      {node.data(), node.size()}));
}

// Rows, columns and values, and how many columns.
multigrid::SparseMatrix sparse_matrix(const nb::handle& given, const std::string& what) {
  const auto arrays = nb::cast<nb::tuple>(given);
  const auto take = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
  multigrid::SparseMatrix p;
  take(p.row_ptr, span_of(nb::cast<Vector<std::int64_t>>(arrays[0])));
  take(p.col, span_of(nb::cast<Vector<std::int32_t>>(arrays[1])));
  take(p.val, span_of(nb::cast<Vector<double>>(arrays[2])));
  p.columns = nb::cast<std::int32_t>(arrays[3]);
  require(!p.row_ptr.empty() && p.nonzeros() == std::ssize(p.col) && p.col.size() == p.val.size(),
          what + " has one column and one value for each entry");
  return p;
}

// Of levels from outside, one for each but the last.
std::shared_ptr<const std::vector<multigrid::SparseMatrix>> prolongators(const nb::dict& tuning) {
  if (!tuning.contains("prolongators")) return nullptr;
  auto all = std::make_shared<std::vector<multigrid::SparseMatrix>>();
  for (const nb::handle given : nb::cast<nb::list>(tuning["prolongators"]))
    all->push_back(sparse_matrix(given, "a prolongator"));
  return all;
}

}  // namespace

SystemSpec spec_of(int pes, int blocks, const std::string& engine, const std::vector<int>& gpus,
                   const nb::dict& tuning) {
  require_known(tuning, {"machine",          "threads",        "halo",
                         "residency",        "ring",           "lanes_log2",
                         "compress",         "layout",         "inspect",
                         "single_values",    "remote_library", "remote_kernels",
                         "several_machines", "node_size",      "pc",
                         "pc_level",         "near_nullspace", "node",
                         "prolongators",     "pairs",          "factor",
                         "first_method",     "first_pc"});
  SystemSpec spec;
  spec.engine = engine_from_name(engine);
  spec.pes = pes;
  spec.blocks = blocks;
  spec.gpus = gpus;
  spec.machine = machine_of(tuning);
  spec.threads = option(tuning, "threads", spec.threads);
  spec.halo = option(tuning, "halo", spec.halo);
  spec.compress = option(tuning, "compress", spec.compress);
  spec.residency = option(tuning, "residency", spec.residency);
  spec.ring = option(tuning, "ring", spec.ring);
  spec.lanes_log2 = option(tuning, "lanes_log2", spec.lanes_log2);
  spec.pairs = option(tuning, "pairs", spec.pairs);
  spec.layout = option(tuning, "layout", spec.layout);
  spec.inspect = option(tuning, "inspect", spec.inspect);
  spec.single_values = option(tuning, "single_values", spec.single_values);
  spec.node_size = option(tuning, "node_size", spec.node_size);
  spec.remote_library = option(tuning, "remote_library", spec.remote_library);
  spec.remote_kernels = option(tuning, "remote_kernels", spec.remote_kernels);
  spec.several_machines = option(tuning, "several_machines", spec.several_machines);
  spec.first.method = method_from_name(option<std::string>(tuning, "first_method", "prcg"));
  spec.first.preconditioner =
      preconditioner_from_name(option<std::string>(tuning, "first_pc", "jacobi"));
  if (tuning.contains("pc")) {
    spec.factors.kind = preconditioner_from_name(option<std::string>(tuning, "pc", "none"));
    spec.factors.level = option(tuning, "pc_level", spec.factors.level);
    spec.factors.near = near_null_space(tuning);
    spec.factors.prolongators = prolongators(tuning);
    if (tuning.contains("factor"))
      spec.factors.given =
          std::make_shared<multigrid::SparseMatrix>(sparse_matrix(tuning["factor"], "the factor"));
  }
  return spec;
}

SolveSpec spec_of_solve(const nb::dict& options) {
  require_known(options, {"method", "pc", "rtol", "atol", "maxiter", "time_limit", "wait_limit",
                          "replace_every", "chebyshev_degree", "study", "trace", "gather"});
  SolveSpec spec;
  spec.method = method_from_name(option<std::string>(options, "method", "prcg"));
  spec.preconditioner = preconditioner_from_name(option<std::string>(options, "pc", "jacobi"));
  spec.rtol = option(options, "rtol", spec.rtol);
  spec.atol = option(options, "atol", spec.atol);
  spec.maxiter = option(options, "maxiter", spec.maxiter);
  spec.time_limit = option(options, "time_limit", spec.time_limit);
  spec.wait_limit = option(options, "wait_limit", spec.wait_limit);
  spec.replace_every = option(options, "replace_every", spec.replace_every);
  spec.chebyshev_degree = option(options, "chebyshev_degree", spec.chebyshev_degree);
  spec.gather = option(options, "gather", spec.gather);
  spec.study = study_from_name(option<std::string>(options, "study", "none"));
  if (options.contains("trace")) spec.trace = trace_spec_of(nb::cast<nb::dict>(options["trace"]));
  return spec;
}

Progress progress_of(const nb::object& progress) {
  if (progress.is_none()) return {};
  return [&progress](std::int64_t iteration, double residual) {
    const nb::gil_scoped_acquire acquire;
    return nb::cast<bool>(progress(iteration, residual));
  };
}

namespace {

// The share of this rank, once planned; a System takes it away.
class PySlabPlan {
 public:
  PySlabPlan(std::int64_t first, std::int64_t all_rows, const Vector<std::int64_t>& indptr,
             const Vector<std::int64_t>& indices, const nb::object& data, double tolerance,
             const std::string& wanted, const nb::object& team)
      : team_(team_of(team)) {
    require(team_ != nullptr, "rows of a part of a matrix are planned in a team");
    const EntryRule rule = {tolerance, wanted == "symmetric" ? Wanted::symmetric
                                       : wanted == "finite"  ? Wanted::finite
                                                             : Wanted::positive_diagonal};
    if (Vector<double> values; nb::try_cast(data, values, false))
      make<double>({first, all_rows, span_of(indptr), span_of(indices), span_of(values)}, rule);
    else if (Vector<float> singles; nb::try_cast(data, singles, false))
      make<float>({first, all_rows, span_of(indptr), span_of(indices), span_of(singles)}, rule);
    else
      throw InvalidInput("data must be a contiguous array of float64 or float32");
  }

  double asymmetry() const {
    return std::visit([](const auto& plan) { return plan.asymmetry; }, plan_);
  }
  std::int64_t nnz() const {
    return std::visit([](const auto& plan) { return plan.plan.local.at(0).row_ptr.back(); }, plan_);
  }
  auto take() { return std::exchange(plan_, {}); }

 private:
  template <class T>
  void make(const RowSlab<T>& slab, const EntryRule& rule) {
    const nb::gil_scoped_release release;
    plan_ = plan_slab(slab, *team_, rule);
  }

  std::shared_ptr<Team> team_;
  std::variant<SlabPlan<double>, SlabPlan<float>> plan_;
};

class PySystem {
 public:
  // Freeing a system may wait for another thread's solve, whose progress function needs the GIL.
  ~PySystem() {
    const nb::gil_scoped_release release;
    system_ = {};
  }
  PySystem(const PySystem&) = delete;
  PySystem& operator=(const PySystem&) = delete;

  PySystem(const Vector<std::int64_t>& indptr, const Rows& indices, const nb::object& data,
           const std::optional<Rows>& part, const std::optional<Rows>& order, int pes, int blocks,
           const std::string& engine, const std::vector<int>& gpus, const nb::dict& tuning,
           const nb::object& team) {
    SystemSpec spec = spec_of(pes, blocks, engine, gpus, tuning);
    spec.team = team_of(team);
    require(indptr.size() >= 1, "indptr must not be empty");
    if (Vector<double> values; nb::try_cast(data, values, false))
      make(indptr, indices, values, part, order, spec);
    else if (Vector<float> singles; nb::try_cast(data, singles, false))
      make(indptr, indices, singles, part, order, spec);
    else
      throw InvalidInput("data must be a contiguous array of float64 or float32");
  }

  PySystem(PySlabPlan& slab, int pes, int blocks, const std::string& engine,
           const std::vector<int>& gpus, const nb::dict& tuning, const nb::object& team) {
    SystemSpec spec = spec_of(pes, blocks, engine, gpus, tuning);
    spec.team = team_of(team);
    const nb::gil_scoped_release release;
    std::visit([&](auto plan) { system_ = make_system(std::move(plan), spec); }, slab.take());
  }

  // Of a matrix on GPU `device`: addresses there of arrays that outlive this call.
  PySystem(std::int32_t n, std::uintptr_t indptr, bool wide, std::uintptr_t indices,
           std::uintptr_t data, bool singles, int device, int blocks, const std::vector<int>& gpus,
           const nb::dict& tuning) {
    const SystemSpec spec = spec_of(1, blocks, "cuda_p2p", gpus, tuning);
    const nb::gil_scoped_release release;
    const auto make_of = [&]<class T>(const T* values) {
      system_ = gpu_engine().of<T>().from_given(
          {n, reinterpret_cast<const void*>(indptr), wide,
           reinterpret_cast<const std::int32_t*>(indices), values, device},
          spec);
    };
    if (singles)
      make_of(reinterpret_cast<const float*>(data));
    else
      make_of(reinterpret_cast<const double*>(data));
  }

  nb::dict plan() const {
    return std::visit([](const auto& system) { return dict_of(system->plan()); }, system_);
  }

  bool update(const Vector<std::int64_t>& indptr, const Rows& indices, const nb::object& data) {
    require(indptr.size() >= 1, "indptr must not be empty");
    return std::visit(
        [&](const auto& system) { return update_with(*system, indptr, indices, data); }, system_);
  }
  bool usable() const {
    return std::visit([](const auto& system) { return system->usable(); }, system_);
  }

  nb::list solve_columns(const nb::list& b, const nb::object& x0, const nb::object& out,
                         const nb::dict& options, const nb::object& progress) {
    return std::visit(
        [&](const auto& system) {
          return solve_columns_with(*system, ColumnObjects{b, x0, out}, spec_of_solve(options),
                                    progress_of(progress), [&](SolveResult result, const auto& x) {
                                      return dict_of(std::move(result), x, system->plan());
                                    });
        },
        system_);
  }
  std::string refuses_columns() const {
    return std::visit([](const auto& system) { return system->refuses_columns(); }, system_);
  }

  nb::dict solve(const nb::object& b, const nb::object& x0, const nb::object& out,
                 const nb::dict& options, const nb::object& progress) {
    return std::visit(
        [&](const auto& system) {
          return solve_with(*system, b, x0, out, spec_of_solve(options), progress);
        },
        system_);
  }

 private:
  template <class T>
  void make(const Vector<std::int64_t>& indptr, const Rows& indices, const Vector<T>& values,
            const std::optional<Rows>& part, const std::optional<Rows>& order,
            const SystemSpec& spec) {
    const CsrView<T> matrix = matrix_of(indptr, indices, values);
    const nb::gil_scoped_release release;
    system_ = make_system(matrix, span_of(part), span_of(order), spec);
  }

  template <class T>
  static bool update_with(System<T>& system, const Vector<std::int64_t>& indptr,
                          const Rows& indices, const nb::object& data) {
    Vector<T> values;
    require(nb::try_cast(data, values, false),
            "data must be a contiguous array of the type of the system");
    const CsrView<T> matrix = matrix_of(indptr, indices, values);
    const nb::gil_scoped_release release;
    return system.update(matrix);
  }

  template <class T>
  static nb::dict solve_with(System<T>& system, const nb::object& b, const nb::object& x0,
                             const nb::object& out, const SolveSpec& spec,
                             const nb::object& progress) {
    const Argument<const T> rhs(b, "b");
    const Argument<const T> guess(x0, "x0");
    Argument<T> target(out, "out");
    require(!b.is_none(), "b must be a vector");
    nb::object x = nb::none();
    if (out.is_none()) {
      require(rhs.view.on_host(), "b lies on a GPU: give out, an array there for the solution");
      auto array = new_numpy<T>(static_cast<std::size_t>(system.rows()));
      target.view = {array.data(), array.size()};
      x = nb::cast(array);
    }
    const Progress tell = progress_of(progress);
    SolveResult result;
    {
      const nb::gil_scoped_release release;
      result = system.solve(rhs.view, guess.view, target.view, spec, tell);
    }
    return dict_of(std::move(result), x, system.plan());
  }

  std::variant<std::unique_ptr<System<double>>, std::unique_ptr<System<float>>> system_;
};

}  // namespace

void bind_systems(nb::module_& m) {
  m.attr("most_block_halo_nonzeros") = kMostBlockHaloNonzeros;
  m.attr("least_gpu_layout_nonzeros") = kLeastGpuLayoutNonzeros;
  nb::class_<PySlabPlan>(m, "SlabPlan")
      .def(nb::init<std::int64_t, std::int64_t, const Vector<std::int64_t>&,
                    const Vector<std::int64_t>&, const nb::object&, double, const std::string&,
                    const nb::object&>(),
           nb::arg("first"), nb::arg("all_rows"), nb::arg("indptr"), nb::arg("indices"),
           nb::arg("data"), nb::arg("tolerance"), nb::arg("wanted"), nb::arg("team"))
      .def_prop_ro("asymmetry", &PySlabPlan::asymmetry)
      .def_prop_ro("nnz", &PySlabPlan::nnz);
  nb::class_<PySystem>(m, "System")
      .def(nb::init<const Vector<std::int64_t>&, const Rows&, const nb::object&,
                    const std::optional<Rows>&, const std::optional<Rows>&, int, int,
                    const std::string&, const std::vector<int>&, const nb::dict&,
                    const nb::object&>(),
           nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("part").none(),
           nb::arg("order").none(), nb::arg("pes"), nb::arg("blocks"), nb::arg("engine"),
           nb::arg("gpus") = std::vector<int>(), nb::arg("tuning") = nb::dict(),
           nb::arg("team") = nb::none())
      .def(nb::init<std::int32_t, std::uintptr_t, bool, std::uintptr_t, std::uintptr_t, bool, int,
                    int, const std::vector<int>&, const nb::dict&>(),
           nb::arg("n"), nb::arg("indptr"), nb::arg("wide"), nb::arg("indices"), nb::arg("data"),
           nb::arg("singles"), nb::arg("device"), nb::arg("blocks"), nb::arg("gpus"),
           nb::arg("tuning"))
      .def(nb::init<PySlabPlan&, int, int, const std::string&, const std::vector<int>&,
                    const nb::dict&, const nb::object&>(),
           nb::arg("slab"), nb::arg("pes"), nb::arg("blocks"), nb::arg("engine"), nb::arg("gpus"),
           nb::arg("tuning"), nb::arg("team"))
      .def("plan", &PySystem::plan)
      .def("update", &PySystem::update, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"))
      .def("usable", &PySystem::usable)
      .def("solve", &PySystem::solve, nb::arg("b"), nb::arg("x0").none(), nb::arg("out").none(),
           nb::arg("options"), nb::arg("progress").none())
      .def("solve_columns", &PySystem::solve_columns, nb::arg("b"), nb::arg("x0").none(),
           nb::arg("out").none(), nb::arg("options"), nb::arg("progress").none())
      .def("refuses_columns", &PySystem::refuses_columns);
}

}  // namespace cpufree
