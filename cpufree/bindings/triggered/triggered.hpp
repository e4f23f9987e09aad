// What the bindings of domains on CPU threads and on GPUs share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/triggered/domain.hpp"

namespace cpufree::triggered {

namespace nb = nanobind;

inline constexpr std::size_t kColumns = 15;  // of a step, in the order of step_of
using Steps = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline Step step_of(const std::int64_t* row) {
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
  step.bytes[0] = static_cast<std::uint64_t>(row[13]);
  step.bytes[1] = static_cast<std::uint64_t>(row[14]);
  return step;
}

inline Program program_of(const std::vector<Steps>& blocks, const Doubles& values) {
  Program program;
  for (const Steps& steps : blocks) {
    require(steps.shape(1) == kColumns, "a step has " + std::to_string(kColumns) + " columns");
    auto& block = program.blocks.emplace_back();
    for (std::size_t k = 0; k < steps.shape(0); ++k)
      block.push_back(step_of(steps.data() + k * kColumns));
  }
  program.values.assign(values.data(), values.data() + values.size());
  return program;
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

inline TriggerOperation operation_of(const nb::dict& o) {
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
  return operation;
}

inline DomainConfig config_of(const nb::dict& sizes, double wait_limit, bool times) {
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

  void post(int pe, const nb::dict& o) {
    const TriggerOperation operation = operation_of(o);
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

 protected:
  D domain_;
};

}  // namespace cpufree::triggered
