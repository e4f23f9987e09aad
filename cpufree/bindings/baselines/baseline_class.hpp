// The Python class of a baseline, for the modules cpufree._baselines and cpufree._baselines_mpi. No
// logic: arrays in, arrays out, errors translated.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/baselines/drivers/solvers.hpp"
#include "cpufree/bindings/arrays.hpp"
#include "cpufree/bindings/errors.hpp"

// Hidden, as nanobind's types are.
namespace cpufree {
namespace [[gnu::visibility("hidden")]] python {

namespace nb = nanobind;

template <class T>
using Writable = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The path of NCCL's library: as given, or where Python finds it.
inline std::string nccl_path(const std::string& given) {
  if (!given.empty()) return given;
  return nb::cast<std::string>(nb::module_::import_("cpufree.bench.nccl").attr("find")());
}

inline BaselineSpec spec_of(const std::string& kind, int pes, const std::vector<int>& gpus,
                            const std::string& preconditioner, const nb::dict& options) {
  BaselineSpec spec;
  spec.kind = kind;
  spec.pes = pes;
  spec.gpus = gpus;
  spec.preconditioner = preconditioner_from_name(preconditioner);
  for (const auto& [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    if (name == "spmv")
      spec.spmv = nb::cast<std::string>(value);
    else if (name == "threads")
      spec.threads = nb::cast<bool>(value);
    else if (name == "unroll")
      spec.unroll = nb::cast<int>(value);
    else if (name == "lag")
      spec.lag = nb::cast<int>(value);
    else if (name == "wait_limit")
      spec.wait_limit = nb::cast<double>(value);
    else if (name == "gpu_aware")
      spec.gpu_aware = nb::cast<bool>(value);
    else if (name == "nccl_library")
      spec.nccl_library = nb::cast<std::string>(value);
    else if (name == "nvshmem_library")
      spec.nvshmem_library = nb::cast<std::string>(value);
    else if (name == "nvshmem_id")
      spec.nvshmem_id = nb::cast<std::string>(value);
    else if (name == "rank")
      spec.rank = nb::cast<int>(value);
    else
      throw InvalidInput("unknown option '" + name +
                         "'; there are spmv, threads, unroll, lag, wait_limit, gpu_aware, "
                         "nccl_library, nvshmem_library");
  }
  spec.nccl_library = nccl_path(spec.nccl_library);
  return spec;
}

inline nb::dict dict_of(const BaselineFacts& facts) {
  nb::dict d, versions, trials;
  for (const auto& [name, version] : facts.versions) versions[name.c_str()] = version;
  for (const auto& [name, seconds] : facts.spmv_seconds) trials[name.c_str()] = seconds;
  d["kind"] = facts.kind;
  d["pes"] = facts.pes;
  d["staging"] = facts.staging;
  d["spmv"] = facts.spmv;
  d["spmv_seconds"] = trials;
  d["versions"] = versions;
  d["notes"] = facts.notes;
  d["setup_seconds"] = facts.setup_seconds;
  return d;
}

class PyBaseline {
 public:
  PyBaseline(const std::string& kind, const Vector<std::int64_t>& indptr, const Rows& indices,
             const nb::object& data, const std::optional<Rows>& part,
             const std::optional<Rows>& order, int pes, const std::vector<int>& gpus,
             const std::string& preconditioner, const nb::dict& options) {
    const BaselineSpec spec = spec_of(kind, pes, gpus, preconditioner, options);
    require(indptr.size() >= 1, "indptr must not be empty");
    if (Vector<double> doubles; nb::try_cast(data, doubles, false))
      make(indptr, indices, doubles, part, order, spec);
    else if (Vector<float> singles; nb::try_cast(data, singles, false))
      make(indptr, indices, singles, part, order, spec);
    else
      throw InvalidInput("data must be a contiguous array of float64 or float32");
  }

  nb::dict facts() const {
    return std::visit([](const auto& baseline) { return dict_of(baseline->facts()); }, baseline_);
  }

  nb::dict solve(const nb::object& b, const std::string& method, double rtol,
                 std::int64_t max_iterations, bool exact_iterations, const std::string& variant,
                 const nb::object& x_out) {
    require(max_iterations >= 0, "max_iterations must not be negative");
    const BaselineSolve how{method_from_name(method), variant, rtol, max_iterations,
                            exact_iterations ? max_iterations : -1};
    const BaselineResult result =
        std::visit([&](auto& baseline) { return solve_with(*baseline, b, x_out, how); }, baseline_);
    nb::dict d;
    d["seconds"] = result.seconds;
    d["iterations"] = result.iterations;
    d["reason"] = result.reason;
    d["residual"] = result.residual;
    return d;
  }

 private:
  template <class T>
  void make(const Vector<std::int64_t>& indptr, const Rows& indices, const Vector<T>& values,
            const std::optional<Rows>& part, const std::optional<Rows>& order,
            const BaselineSpec& spec) {
    const CsrView<T> matrix = matrix_of(indptr, indices, values);
    const nb::gil_scoped_release release;
    baseline_ = make_baseline(matrix, span_of(part), span_of(order), spec);
  }

  template <class T>
  static BaselineResult solve_with(Baseline<T>& baseline, const nb::object& b,
                                   const nb::object& x_out, const BaselineSolve& how) {
    Vector<T> rhs;
    require(nb::try_cast(b, rhs, false), "b must be a contiguous vector of the matrix's type");
    Writable<T> x;
    require(x_out.is_none() || nb::try_cast(x_out, x, false),
            "x_out must be a contiguous vector of the matrix's type that may be written");
    const std::span<T> out = x_out.is_none() ? std::span<T>() : std::span<T>(x.data(), x.size());
    const nb::gil_scoped_release release;
    return baseline.solve(span_of(rhs), out, how);
  }

  std::variant<std::unique_ptr<Baseline<double>>, std::unique_ptr<Baseline<float>>> baseline_;
};

inline void define_baseline(nb::module_& m) {
  nb::register_exception_translator(translate_error);
  nb::class_<PyBaseline>(m, "Baseline")
      .def(nb::init<const std::string&, const Vector<std::int64_t>&, const Rows&, const nb::object&,
                    const std::optional<Rows>&, const std::optional<Rows>&, int,
                    const std::vector<int>&, const std::string&, const nb::dict&>(),
           nb::arg("kind"), nb::arg("indptr"), nb::arg("indices"), nb::arg("data"),
           nb::arg("part").none(), nb::arg("order").none(), nb::arg("pes"),
           nb::arg("gpus") = std::vector<int>(), nb::arg("preconditioner") = "jacobi",
           nb::arg("options") = nb::dict())
      .def("facts", &PyBaseline::facts)
      .def("solve", &PyBaseline::solve, nb::arg("b"), nb::arg("method") = "cg",
           nb::arg("rtol") = 1e-5, nb::arg("max_iterations") = 100'000,
           nb::arg("exact_iterations") = false, nb::arg("variant") = "full",
           nb::arg("x_out").none() = nb::none());
}

}  // namespace python
}  // namespace cpufree
