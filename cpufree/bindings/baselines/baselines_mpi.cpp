// The Python extension cpufree._baselines_mpi: the baseline of MPI, one process for each GPU.
#include "cpufree/baselines/drivers/mpi.hpp"
#include "cpufree/bindings/baselines/baseline_class.hpp"

NB_MODULE(_baselines_mpi, m) {
  namespace nb = nanobind;
  cpufree::python::define_baseline(m);
  m.def("rank", [] { return cpufree::mpi_place().rank; });
  m.def("size", [] { return cpufree::mpi_place().size; });
  m.def("broadcast", &cpufree::mpi_broadcast, nb::arg("text"),
        nb::call_guard<nb::gil_scoped_release>());
  m.def("abort", &cpufree::mpi_abort, nb::arg("status"));
}
