// The Python extension cpufree._core. No logic: arrays in, arrays out, errors translated.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <vector>

#include "cpufree/base/cores.hpp"
#include "cpufree/bindings/core/gpus.hpp"
#include "cpufree/bindings/core/kernels.hpp"
#include "cpufree/bindings/core/matrix.hpp"
#include "cpufree/bindings/core/probe.hpp"
#include "cpufree/bindings/core/program.hpp"
#include "cpufree/bindings/core/simulate.hpp"
#include "cpufree/bindings/core/stencil.hpp"
#include "cpufree/bindings/core/system.hpp"
#include "cpufree/bindings/errors.hpp"
#include "cpufree/bindings/trace.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const WaitTimeout& e) {
    raise("WaitTimeoutError",
          nb::make_tuple(e.what(), list_of(e.blocks(), false), list_of(e.blocks(), true),
                         dict_of_trace(e.trace.get())));
  } catch (...) {
    translate_error(error, nullptr);
  }
}

}  // namespace
}  // namespace cpufree

NB_MODULE(_core, m) {
  nb::register_exception_translator(cpufree::translate);
  m.attr("__version__") = CPUFREE_VERSION;
  m.attr("compiler") = CPUFREE_COMPILER;
  m.def("available_cores", &cpufree::available_cores);
  cpufree::bind_kernels(m);
  cpufree::bind_systems(m);
  cpufree::bind_many(m);
  cpufree::bind_memory(m);
  cpufree::bind_gpus(m);
  cpufree::bind_matrix(m);
  cpufree::bind_matrix_text(m);
  cpufree::bind_programs(m);
  cpufree::bind_gpu_programs(m);
  cpufree::bind_stencils(m);
  cpufree::bind_probes(m);
  cpufree::bind_simulate(m);
}
