// Triggered operations from Python: domains of PEs on CPU threads.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "cpufree/bindings/errors.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/systems/triggered/back_ends.hpp"
#include "cpufree/systems/triggered/jacobi.hpp"
#include "cpufree/systems/triggered/studies.hpp"

namespace nb = nanobind;

namespace cpufree::triggered {
namespace {

constexpr std::size_t kColumns = 13;  // of a step, in the order of step_of
using Steps = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Step step_of(const std::int64_t* row) {
  Step step;
  require(row[0] >= 0 && row[0] <= static_cast<std::int64_t>(Step::Kind::next_arrival),
          "a step of a program has no kind");
  step.kind = static_cast<Step::Kind>(row[0]);
  step.tag = {static_cast<std::uint32_t>(row[1]), static_cast<std::uint32_t>(row[2])};
  step.fields.given = static_cast<unsigned>(row[3]);
  for (int k = 0; k < kTriggerFields; ++k)
    step.fields.value[k] = static_cast<std::uint64_t>(row[4 + k]);
  step.pe = static_cast<std::int32_t>(row[7]);
  step.number = static_cast<std::int32_t>(row[8]);
  step.place = static_cast<std::uint64_t>(row[9]);
  step.from = static_cast<std::uint64_t>(row[10]);
  step.first = row[11];
  step.count = row[12];
  return step;
}

Program program_of(const std::vector<Steps>& blocks, const Doubles& values) {
  Program program;
  for (const Steps& steps : blocks) {
    require(steps.shape(1) == kColumns, "a step has 13 columns");
    auto& block = program.blocks.emplace_back();
    for (std::size_t k = 0; k < steps.shape(0); ++k)
      block.push_back(step_of(steps.data() + k * kColumns));
  }
  program.values.assign(values.data(), values.data() + values.size());
  return program;
}

nb::dict dict_of(const nics::NicReport& report) {
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

nb::dict dict_of(const Outcome& outcome) {
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
void check_signals() {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

class PyDomain {
 public:
  PyDomain(const nb::dict& sizes, const std::string& back_end, double wait_limit, bool times)
      : domain_(config_of(sizes, wait_limit, times), nics_named(back_end)) {}

  std::uint64_t add_buffer(const std::string& name, std::uint64_t bytes) {
    return domain_.add_buffer(name, bytes);
  }
  void remove_buffer(const std::string& name) { domain_.remove_buffer(name); }

  void post(int pe, const nb::dict& o) {
    TriggerOperation operation;
    operation.first = {nb::cast<std::uint32_t>(o["tag"]), nb::cast<std::uint32_t>(o["epoch"])};
    operation.kind = nb::cast<bool>(o["get"]) ? TriggerKind::get : TriggerKind::put;
    operation.epochs = nb::cast<std::uint32_t>(o["epochs"]);
    operation.threshold = nb::cast<std::uint64_t>(o["threshold"]);
    operation.open = nb::cast<unsigned>(o["open"]);
    operation.pe = nb::cast<std::int32_t>(o["pe"]);
    operation.source = nb::cast<std::uint64_t>(o["source"]);
    operation.target = nb::cast<std::uint64_t>(o["target"]);
    operation.bytes = nb::cast<std::uint64_t>(o["bytes"]);
    operation.source_step = nb::cast<std::uint64_t>(o["source_step"]);
    operation.target_step = nb::cast<std::uint64_t>(o["target_step"]);
    operation.slots = nb::cast<std::uint32_t>(o["slots"]);
    operation.signal = nb::cast<std::int32_t>(o["signal"]);
    operation.reports = nb::cast<bool>(o["reports"]) ? 1U : 0U;
    const nb::gil_scoped_release release;
    domain_.post(pe, operation);
  }

  nb::dict run(const std::vector<Steps>& blocks, const Doubles& values) {
    const Program program = program_of(blocks, values);
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

  std::byte* memory(int pe, std::uint64_t offset) const { return domain_.memory(pe, offset); }

 private:
  static DomainConfig config_of(const nb::dict& sizes, double wait_limit, bool times) {
    DomainConfig config;
    config.sizes.pes = nb::cast<int>(sizes["pes"]);
    config.sizes.blocks = nb::cast<int>(sizes["blocks"]);
    config.sizes.depth = nb::cast<int>(sizes["depth"]);
    config.sizes.operations = nb::cast<int>(sizes["operations"]);
    config.sizes.signals = nb::cast<int>(sizes["signals"]);
    config.bytes = nb::cast<std::size_t>(sizes["bytes"]);
    config.wait_limit = wait_limit;
    config.times = times;
    return config;
  }

  Domain domain_;
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

Path path_named(const std::string& name) {
  const char* const names[] = {"host", "at_end", "triggered", "stores"};
  for (int k = 0; k < 4; ++k)
    if (name == names[k]) return static_cast<Path>(k);
  throw InvalidInput("there is no path '" + name +
                     "': choose from host, at_end, triggered, stores");
}

// A row for each message, columns as in MessageTimes.
nb::object messages(const std::string& path, std::uint64_t bytes, int rounds, double work,
                    const std::string& back_end) {
  std::vector<double> rows;
  {
    const MakeNics make = nics_named(back_end);
    const MessageStudy study{path_named(path), bytes, rounds, work};
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
  nb::class_<PyDomain>(m, "Domain")
      .def(nb::init<const nb::dict&, const std::string&, double, bool>(), nb::arg("sizes"),
           nb::arg("back_end"), nb::arg("wait_limit"), nb::arg("times"))
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
        nb::arg("rounds"), nb::arg("work"), nb::arg("back_end"));
  m.def("allreduce", &cpufree::triggered::allreduce, nb::arg("way"), nb::arg("by_triggers"),
        nb::arg("single"), nb::arg("pes"), nb::arg("blocks"), nb::arg("count"), nb::arg("repeats"),
        nb::arg("back_end"));
  m.def("libfabric_missing", &cpufree::triggered::libfabric_missing);
}
