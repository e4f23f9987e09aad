// The Python extension cpufree._mpi_messages: messages of MPI, of processes that mpirun starts.
#include "cpufree/baselines/messages/mpi_messages.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cpufree/bindings/errors.hpp"

NB_MODULE(_mpi_messages, m) {
  namespace nb = nanobind;
  using cpufree::baselines::MpiMessages;
  nb::register_exception_translator(cpufree::translate_error);
  nb::class_<MpiMessages>(m, "MpiMessages")
      .def(nb::init<const std::string&, const std::vector<int>&, std::int64_t>(), nb::arg("kind"),
           nb::arg("gpus"), nb::arg("bytes"))
      .def_prop_ro("rank", &MpiMessages::rank)
      .def_static("broadcast", &MpiMessages::broadcast, nb::arg("text"),
                  nb::call_guard<nb::gil_scoped_release>())
      .def_static("finish", &MpiMessages::finish)
      .def_static("abort", &MpiMessages::abort, nb::arg("status"))
      .def("times", &MpiMessages::times, nb::arg("mode"), nb::arg("bytes"), nb::arg("messages"),
           nb::arg("warm_ups"), nb::arg("repeats"), nb::call_guard<nb::gil_scoped_release>());
}
