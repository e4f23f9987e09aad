// Triggered operations from Python: domains of PEs on CPU threads.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "cpufree/bindings/errors.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/bindings/trace.hpp"
#include "cpufree/bindings/triggered/triggered.hpp"
#include "cpufree/triggered/back_ends.hpp"
#include "cpufree/triggered/jacobi.hpp"
#include "cpufree/triggered/studies.hpp"

namespace nb = nanobind;

namespace cpufree::triggered {
namespace {

class PyDomain : public DomainBinding<Domain> {
 public:
  PyDomain(const nb::dict& sizes, const std::string& back_end, double wait_limit, bool times,
           std::int64_t trace_events)
      : DomainBinding(config_of(sizes, wait_limit, times, trace_events), nics_named(back_end)) {}
  nb::object trace() const {
    const TraceReport report = domain_.trace();
    return dict_of_trace(&report);
  }
  std::byte* memory(int pe, std::uint64_t offset) const { return domain_.memory(pe, offset); }
};

// A view of a buffer on a PE; it keeps the domain.
nb::object view(const nb::object& self, int pe, std::uint64_t offset, std::size_t bytes) {
  auto* first = reinterpret_cast<std::uint8_t*>(nb::cast<PyDomain&>(self).memory(pe, offset));
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(first, {bytes}, self));
}

template <class T>
using Plane = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Iterates in place; returns seconds.
template <class T>
double iterate(const Plane<T>& u, std::uint32_t iterations, int pes, int blocks, bool by_host,
               const std::string& back_end, double wait_limit) {
  JacobiRun run;
  run.way = by_host ? JacobiWay::host : JacobiWay::triggered;
  run.rows = static_cast<std::int64_t>(u.shape(0));
  require(u.shape(1) < std::size_t{1} << 31, "a row of the grid has fewer than 2^31 points");
  run.columns = static_cast<std::int32_t>(u.shape(1));
  run.pes = pes;
  run.blocks = blocks;
  run.iterations = iterations;
  run.wait_limit = wait_limit;
  const MakeNics make = nics_named(back_end);
  const nb::gil_scoped_release release;
  return jacobi<T>(run, u.data(), make, check_signals);
}

// A row for each message, columns as in MessageTimes.
nb::object messages(const std::string& path, std::uint64_t bytes, int rounds, double work,
                    const std::string& back_end, const std::string& order) {
  std::vector<double> rows;
  {
    const MakeNics make = nics_named(back_end);
    const MessageStudy study{path_named(path), bytes, rounds, work, order_named(order)};
    const nb::gil_scoped_release release;
    for (const MessageTimes& t : measure_messages(study, make, check_signals))
      rows.insert(rows.end(), {t.begun, t.ready, t.sent, t.ended, t.observed, t.nic_begun,
                               t.nic_ended, t.seen});
  }
  return to_numpy(std::move(rows)).attr("reshape")(-1, 8);
}

nb::object allreduce(const std::string& way, bool by_triggers, bool single, int pes, int blocks,
                     std::int64_t count, std::uint32_t repeats, const std::string& back_end) {
  require(way == "ring" || way == "direct", "an all-reduce goes by ring or direct, not " + way);
  ReduceStudy study;
  study.schedule = {way == "ring" ? ReduceWay::ring : ReduceWay::direct, pes, blocks, count};
  study.by_triggers = by_triggers;
  study.single = single;
  study.repeats = repeats;
  std::vector<double> seconds;
  {
    const MakeNics make = nics_named(back_end);
    const nb::gil_scoped_release release;
    seconds = measure_allreduce(study, make, check_signals);
  }
  return to_numpy(std::move(seconds));
}

}  // namespace
}  // namespace cpufree::triggered

NB_MODULE(_triggered, m) {
  using cpufree::triggered::PyDomain;
  nb::register_exception_translator(cpufree::translate_error);
  cpufree::triggered::bind_structs(m);
  nb::class_<PyDomain>(m, "Domain")
      .def(nb::init<const nb::dict&, const std::string&, double, bool, std::int64_t>(),
           nb::arg("sizes"), nb::arg("back_end"), nb::arg("wait_limit"), nb::arg("times"),
           nb::arg("trace_events") = 0)
      .def("trace", &PyDomain::trace)
      .def("add_buffer", &PyDomain::add_buffer, nb::arg("name"), nb::arg("bytes"))
      .def("remove_buffer", &PyDomain::remove_buffer, nb::arg("name"))
      .def("post", &PyDomain::post, nb::arg("pe"), nb::arg("operation"))
      .def("run", &PyDomain::run, nb::arg("blocks"), nb::arg("values"))
      .def("close", &PyDomain::close)
      .def("firings", &PyDomain::firings, nb::arg("pe"))
      .def("view", &cpufree::triggered::view, nb::arg("pe"), nb::arg("offset"), nb::arg("bytes"));
  const auto jacobi = [&](auto function) {
    m.def("jacobi", function, nb::arg("u").noconvert(), nb::arg("iterations"), nb::arg("pes"),
          nb::arg("blocks"), nb::arg("by_host"), nb::arg("back_end"), nb::arg("wait_limit"));
  };
  jacobi(&cpufree::triggered::iterate<float>);
  jacobi(&cpufree::triggered::iterate<double>);
  m.def("messages", &cpufree::triggered::messages, nb::arg("path"), nb::arg("bytes"),
        nb::arg("rounds"), nb::arg("work"), nb::arg("back_end"), nb::arg("order") = "ahead");
  m.def("allreduce", &cpufree::triggered::allreduce, nb::arg("way"), nb::arg("by_triggers"),
        nb::arg("single"), nb::arg("pes"), nb::arg("blocks"), nb::arg("count"), nb::arg("repeats"),
        nb::arg("back_end"));
  m.def("libfabric_missing", &cpufree::triggered::libfabric_missing);
}
