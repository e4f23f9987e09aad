// The Python class of a stencil's baseline, for the module cpufree._baselines. No logic: arrays in,
// arrays out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cpufree/baselines/drivers/stencil.hpp"
#include "cpufree/bindings/baselines/baseline_class.hpp"
#include "cpufree/bindings/grid.hpp"
#include "cpufree/bindings/options.hpp"

// Hidden, as nanobind's types are.
namespace cpufree {
namespace [[gnu::visibility("hidden")]] python {

inline StencilBaselineSpec stencil_spec_of(const nb::dict& options) {
  require_known(options, {"threads", "unroll", "depth", "wait_limit", "nccl_library",
                          "nvshmem_library", "exchange", "rank", "nvshmem_id"});
  StencilBaselineSpec spec;
  spec.threads = option(options, "threads", spec.threads);
  spec.unroll = option(options, "unroll", spec.unroll);
  spec.depth = option(options, "depth", spec.depth);
  spec.wait_limit = option(options, "wait_limit", spec.wait_limit);
  spec.nccl_library = nccl_path(option(options, "nccl_library", spec.nccl_library));
  spec.nvshmem_library = option(options, "nvshmem_library", spec.nvshmem_library);
  spec.exchange = option(options, "exchange", spec.exchange);
  spec.rank = option(options, "rank", spec.rank);
  spec.nvshmem_id = option(options, "nvshmem_id", spec.nvshmem_id);
  return spec;
}

class PyStencilBaseline {
 public:
  PyStencilBaseline(const std::string& kind, const std::vector<std::int64_t>& shape,
                    const std::vector<bool>& periodic, const std::string& precision, int pes,
                    const std::vector<int>& gpus, const nb::dict& options) {
    StencilBaselineSpec spec = stencil_spec_of(options);
    spec.kind = kind;
    spec.grid = grid_of(shape, periodic);
    spec.pes = pes;
    spec.gpus = gpus;
    require(precision == "double" || precision == "single",
            "unknown precision '" + precision + "'; choose one of: double, single");
    const nb::gil_scoped_release release;
    if (precision == "double")
      baseline_ = make_stencil_baseline<double>(spec);
    else
      baseline_ = make_stencil_baseline<float>(spec);
  }

  nb::dict facts() const {
    const StencilBaselineFacts& facts =
        std::visit([](const auto& b) -> const auto& { return b->facts(); }, baseline_);
    nb::dict d, versions, trials;
    for (const auto& [name, seconds] : facts.exchange_seconds) trials[name.c_str()] = seconds;
    for (const auto& [name, version] : facts.versions) versions[name.c_str()] = version;
    d["kind"] = facts.kind;
    d["pes"] = facts.pes;
    d["staging"] = facts.staging;
    d["planes"] = facts.planes;
    d["depth"] = facts.depth;
    d["halo_bytes"] = facts.halo_bytes;
    if (!facts.exchange.empty()) {
      d["exchange"] = facts.exchange;
      d["exchange_seconds"] = trials;
    }
    d["versions"] = versions;
    d["notes"] = facts.notes;
    d["setup_seconds"] = facts.setup_seconds;
    return d;
  }

  double run(std::int64_t iterations, const std::string& variant, const nb::object& start,
             const nb::object& out) {
    return std::visit([&](auto& b) { return run_with(*b, iterations, variant, start, out); },
                      baseline_);
  }

 private:
  template <class T>
  static double run_with(StencilBaseline<T>& baseline, std::int64_t iterations,
                         const std::string& variant, const nb::object& start,
                         const nb::object& out) {
    nb::ndarray<const T, nb::c_contig, nb::device::cpu> from;
    nb::ndarray<T, nb::c_contig, nb::device::cpu> to;
    require((start.is_none() || nb::try_cast(start, from, false)) &&
                (out.is_none() || nb::try_cast(out, to, false)),
            "start and out must be contiguous arrays of the baseline's precision");
    const auto first = start.is_none() ? std::span<const T>() : std::span(from.data(), from.size());
    const auto last = out.is_none() ? std::span<T>() : std::span(to.data(), to.size());
    const nb::gil_scoped_release release;
    return baseline.run(first, last, iterations, variant);
  }

  std::variant<std::unique_ptr<StencilBaseline<double>>, std::unique_ptr<StencilBaseline<float>>>
      baseline_;
};

inline void define_stencil_baseline(nb::module_& m) {
  nb::class_<PyStencilBaseline>(m, "StencilBaseline")
      .def(nb::init<const std::string&, const std::vector<std::int64_t>&, const std::vector<bool>&,
                    const std::string&, int, const std::vector<int>&, const nb::dict&>(),
           nb::arg("kind"), nb::arg("shape"), nb::arg("periodic"), nb::arg("precision"),
           nb::arg("pes"), nb::arg("gpus") = std::vector<int>(), nb::arg("options") = nb::dict())
      .def("facts", &PyStencilBaseline::facts)
      .def("run", &PyStencilBaseline::run, nb::arg("iterations"), nb::arg("variant") = "full",
           nb::arg("start").none() = nb::none(), nb::arg("out").none() = nb::none());
}

}  // namespace python
}  // namespace cpufree
