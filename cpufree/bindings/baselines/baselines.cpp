// The Python extension cpufree._baselines: the host-driven baselines of one process.
#include "cpufree/bindings/baselines/baseline_class.hpp"
#include "cpufree/bindings/baselines/baseline_stencil.hpp"

namespace nb = nanobind;

namespace {

nb::list list_of(const std::vector<cpufree::BaselineKind>& found) {
  nb::list kinds;
  for (const cpufree::BaselineKind& kind : found) {
    nb::dict d;
    d["name"] = kind.name;
    d["methods"] = kind.methods;
    d["needs"] = kind.needs;
    d["available"] = kind.available;
    d["why_not"] = kind.why_not;
    kinds.append(d);
  }
  return kinds;
}

nb::list list_kinds(const std::string& nccl_library) {
  return list_of(cpufree::baseline_kinds(cpufree::python::nccl_path(nccl_library)));
}
nb::list list_stencil_kinds(const std::string& nccl_library) {
  return list_of(cpufree::stencil_baseline_kinds(cpufree::python::nccl_path(nccl_library)));
}

}  // namespace

NB_MODULE(_baselines, m) {
  cpufree::python::define_baseline(m);
  cpufree::python::define_stencil_baseline(m);
  m.def("kinds", list_kinds, nb::arg("nccl_library") = "");
  m.def("stencil_kinds", list_stencil_kinds, nb::arg("nccl_library") = "");
  m.def("nvshmem_version", &cpufree::shmem_version, nb::arg("library"));
  m.def("nvshmem_id", &cpufree::make_shmem_id, nb::arg("library"));
}
