// The simulator: a graph in arrays, and what a run of it gives.
#include "cpufree/bindings/core/simulate.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "cpufree/bindings/arrays.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/simulate/engine.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

using Numbers = Vector<std::int32_t>;
using Times = Vector<std::int64_t>;
using Flags = Vector<std::uint8_t>;

nb::dict dict_of(simulate::Run run, bool record) {
  nb::dict d;
  d["end"] = run.end;
  d["round_end"] = to_numpy(std::move(run.round_end));
  d["operations"] = run.operations;
  d["spilled"] = run.spilled;
  d["most_entries"] = run.most_entries;
  if (!record) return d;
  d["start"] = to_numpy(std::move(run.start));
  d["finish"] = to_numpy(std::move(run.finish));
  d["cause"] = to_numpy(std::move(run.cause));
  return d;
}

nb::dict dict_of(const simulate::WaitChain& waits) {
  nb::list chain;
  for (const simulate::Instance& one : waits.chain)
    chain.append(nb::make_tuple(one.round, one.operation));
  nb::dict d;
  d["waits"] = chain;
  d["back_to"] = waits.back_to;
  d["card"] = waits.card;
  return d;
}

nb::dict run(const Numbers& resource, const Times& busy, const Times& latency, const Numbers& from,
             const Numbers& to, const Flags& edge, const Flags& role, const Numbers& operand,
             const Numbers& nic, const Numbers& threshold, std::int64_t rounds,
             std::int64_t entries, std::int64_t spill, bool record) {
  const simulate::Graph graph{.resource = span_of(resource),
                              .busy = span_of(busy),
                              .latency = span_of(latency),
                              .from = span_of(from),
                              .to = span_of(to),
                              .edge = span_of(edge),
                              .role = span_of(role),
                              .operand = span_of(operand),
                              .nic = span_of(nic),
                              .threshold = span_of(threshold),
                              .rounds = rounds,
                              .entries = entries,
                              .spill = spill};
  std::optional<simulate::Run> found;
  try {
    const nb::gil_scoped_release release;
    found = simulate::run(graph, record);
  } catch (const simulate::Deadlock& e) {
    return dict_of(e.waits());
  }
  return dict_of(std::move(*found), record);
}

}  // namespace

void bind_simulate(nb::module_& m) {
  m.def("simulate", &run, nb::arg("resource"), nb::arg("busy"), nb::arg("latency"),
        nb::arg("from_"), nb::arg("to"), nb::arg("edge"), nb::arg("role"), nb::arg("operand"),
        nb::arg("nic"), nb::arg("threshold"), nb::arg("rounds"), nb::arg("entries"),
        nb::arg("spill"), nb::arg("record"));
}

}  // namespace cpufree
