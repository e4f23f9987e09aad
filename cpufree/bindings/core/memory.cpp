#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "cpufree/bindings/arrays.hpp"
#include "cpufree/bindings/core/system.hpp"
#include "cpufree/solvers/gpu/plan/memory.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

nb::dict dict_of(const GpuMemory& memory) {
  nb::dict all;
  all["matrix"] = memory.matrix;
  all["vectors"] = memory.vectors;
  all["halo"] = memory.halo;
  all["factors"] = memory.factors;
  all["levels"] = memory.levels;
  all["kept"] = memory.kept;
  all["pages"] = memory.pages;
  all["peak"] = memory.peak;
  return all;
}

// Of each of `pes` GPUs with `free` bytes, 0: as many as it takes.
nb::list estimate(const Vector<std::int64_t>& indptr, const Rows& indices, const nb::object& data,
                  const std::optional<Rows>& part, const std::optional<Rows>& order, int pes,
                  std::int64_t maxiter, double free, const nb::dict& tuning) {
  SystemSpec spec = spec_of(pes, 0, "cuda_p2p", {}, tuning);
  spec.first.maxiter = maxiter;
  GpuFacts gpu;
  gpu.multiprocessors = static_cast<int>(spec.machine.gpu_multiprocessors);
  std::vector<GpuMemory> found;
  const auto find = [&]<class T>(const Vector<T>& values) {
    const CsrView<T> matrix = matrix_of(indptr, indices, values);
    const nb::gil_scoped_release release;
    found = estimate_memory<T>(matrix, span_of(part), span_of(order), spec, gpu, free);
  };
  if (Vector<double> values; nb::try_cast(data, values, false))
    find(values);
  else if (Vector<float> singles; nb::try_cast(data, singles, false))
    find(singles);
  else
    throw InvalidInput("data must be a contiguous array of float64 or float32");
  nb::list list;
  for (const GpuMemory& memory : found) list.append(dict_of(memory));
  return list;
}

}  // namespace

void bind_memory(nb::module_& m) {
  m.def("estimate_memory", &estimate, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"),
        nb::arg("part").none(), nb::arg("order").none(), nb::arg("pes"), nb::arg("maxiter"),
        nb::arg("free"), nb::arg("tuning"));
}

}  // namespace cpufree
