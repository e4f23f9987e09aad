// What the bindings of domains on CPU threads and on GPUs share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/triggered/domain.hpp"

namespace cpufree::triggered {

namespace nb = nanobind;

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The number of a field that triggers supply, by its name: its bit, and its place among values.
// Throws InvalidInput where there is none.
inline std::size_t field_named(const std::string& name) {
  constexpr const char* kNames[kTriggerFields] = {"source", "target", "pe"};
  for (std::size_t k = 0; k < kTriggerFields; ++k)
    if (name == kNames[k]) return k;
  throw InvalidInput("open: '" + name + "' is none of source, target, pe");
}

// A trigger supplies a field; `bytes`: of a place.
inline void supply(Step& step, const std::string& name, std::uint64_t value, std::uint64_t bytes) {
  const std::size_t field = field_named(name);
  step.fields.given |= 1U << field;
  step.fields.value[field] = value;
  if (field < std::size(step.bytes)) step.bytes[field] = bytes;
}

// The structs that Python fills: each module has its own.
inline void bind_structs(nb::module_& m) {
  nb::class_<TriggerTag>(m, "Tag").def(nb::init<std::uint32_t, std::uint32_t>(),
                                       nb::arg("operation"), nb::arg("epoch"));
  nb::enum_<TriggerKind>(m, "OperationKind")
      .value("put", TriggerKind::put)
      .value("get", TriggerKind::get);
  using O = TriggerOperation;
  nb::class_<O>(m, "Operation")
      .def(nb::init<>())
      .def_rw("first", &O::first)
      .def_rw("kind", &O::kind)
      .def_rw("epochs", &O::epochs)
      .def_rw("threshold", &O::threshold)
      .def_rw("pe", &O::pe)
      .def_rw("source", &O::source)
      .def_rw("target", &O::target)
      .def_rw("bytes", &O::bytes)
      .def_rw("source_step", &O::source_step)
      .def_rw("target_step", &O::target_step)
      .def_rw("slots", &O::slots)
      .def_rw("signal", &O::signal)
      .def_prop_rw(
          "reports", [](const O& o) { return o.reports != 0U; },
          [](O& o, bool reports) { o.reports = reports ? 1U : 0U; })
      .def(
          "leave_open", [](O& o, const std::string& name) { o.open |= 1U << field_named(name); },
          nb::arg("field"));
  nb::enum_<Step::Kind>(m, "StepKind")
      .value("store", Step::Kind::store)
      .value("copy", Step::Kind::copy)
      .value("add", Step::Kind::add)
      .value("trigger", Step::Kind::trigger)
      .value("wait_done", Step::Kind::wait_done)
      .value("wait_signal", Step::Kind::wait_signal)
      .value("next_arrival", Step::Kind::next_arrival);
  nb::class_<Step>(m, "Step")
      .def(nb::init<>())
      .def_rw("kind", &Step::kind)
      .def_rw("tag", &Step::tag)
      .def_rw("pe", &Step::pe)
      .def_rw("number", &Step::number)
      .def_rw("place", &Step::place)
      .def_rw("source", &Step::from)
      .def_rw("first", &Step::first)
      .def_rw("count", &Step::count)
      .def("supply", &supply, nb::arg("field"), nb::arg("value"), nb::arg("bytes") = 0);
}

inline nb::dict dict_of(const nics::NicReport& report) {
  nb::list waiting, faults;
  for (const nics::WaitingTag& w : report.waiting) {
    nb::dict one;
    one["pe"] = w.pe;
    one["tag"] = w.tag.operation;
    one["epoch"] = w.tag.epoch;
    one["seen"] = w.seen;
    one["threshold"] = w.posted ? nb::cast(w.threshold) : nb::none();
    one["posted"] = w.posted;
    one["text"] = nics::describe(w);
    waiting.append(one);
  }
  for (const nics::NicFault& f : report.faults) {
    nb::dict one;
    one["pe"] = f.pe;
    one["tag"] = f.fault.tag.operation;
    one["epoch"] = f.fault.tag.epoch;
    one["count"] = f.fault.count;
    one["text"] = nics::describe(f);
    faults.append(one);
  }
  nb::dict all;
  all["waiting"] = waiting;
  all["faults"] = faults;
  all["text"] = nics::describe(report);
  return all;
}

inline nb::dict dict_of(const Outcome& outcome) {
  nb::list waits, arrivals;
  for (const LostWait& w : outcome.waits) {
    nb::dict one;
    one["pe"] = w.pe;
    one["block"] = w.block;
    one["channel"] = channel_name(w.record.channel);
    one["waits_for_pe"] = w.record.from_pe;
    one["waits_for_block"] = w.record.from_block;
    one["epoch"] = w.record.want;
    one["seen"] = w.record.seen;
    one["seconds"] = w.record.seconds;
    waits.append(one);
  }
  for (const auto& block : outcome.arrivals) {
    nb::list tags;
    for (const TriggerTag tag : block) tags.append(nb::make_tuple(tag.operation, tag.epoch));
    arrivals.append(tags);
  }
  nb::dict all;
  all["waits"] = waits;
  all["arrivals"] = arrivals;
  all["seconds"] = outcome.seconds;
  all["text"] = outcome.waits.empty() ? std::string() : describe(outcome);
  return all;
}

// Lets Ctrl-C end what waits.
inline void check_signals() {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

inline DomainConfig config_of(const nb::dict& sizes, double wait_limit, bool times,
                              std::int64_t trace_events = 0) {
  DomainConfig config;
  config.sizes.pes = nb::cast<int>(sizes["pes"]);
  config.sizes.blocks = nb::cast<int>(sizes["blocks"]);
  config.sizes.depth = nb::cast<int>(sizes["depth"]);
  config.sizes.operations = nb::cast<int>(sizes["operations"]);
  config.sizes.signals = nb::cast<int>(sizes["signals"]);
  config.bytes = nb::cast<std::size_t>(sizes["bytes"]);
  config.wait_limit = wait_limit;
  config.times = times;
  config.trace_events = trace_events;
  return config;
}

// A domain as Python sees it, on whatever machine.
template <class D>
class DomainBinding {
 public:
  template <class... A>
    requires(sizeof...(A) > 1)
  explicit DomainBinding(A&&... arguments) : domain_(std::forward<A>(arguments)...) {}

  std::uint64_t add_buffer(const std::string& name, std::uint64_t bytes) {
    return domain_.add_buffer(name, bytes);
  }
  void remove_buffer(const std::string& name) { domain_.remove_buffer(name); }

  void post(int pe, const TriggerOperation& operation) {
    const nb::gil_scoped_release release;
    domain_.post(pe, operation);
  }

  nb::dict run(std::vector<std::vector<Step>> blocks, const Doubles& values) {
    const Program program{std::move(blocks), {values.data(), values.data() + values.size()}};
    Outcome outcome;
    {
      const nb::gil_scoped_release release;
      outcome = domain_.run(program, check_signals);
    }
    return dict_of(outcome);
  }

  nb::dict close() {
    const nics::NicReport* report = nullptr;
    {
      const nb::gil_scoped_release release;
      report = &domain_.close();
    }
    return dict_of(*report);
  }

  // Rows of tag, epoch, and nanoseconds at which it was found ready and was over.
  nb::object firings(int pe) const {
    require(domain_.config().times, "times are recorded where the domain was made with times=True");
    std::vector<std::int64_t> rows;
    for (const nics::Firing& f : domain_.firings(pe))
      rows.insert(rows.end(), {f.tag.operation, f.tag.epoch, f.begun, f.ended});
    return to_numpy(std::move(rows)).attr("reshape")(-1, 4);
  }

 protected:
  D domain_;
};

}  // namespace cpufree::triggered
