// Records of traces for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cpufree/bindings/numpy.hpp"
#include "cpufree/bindings/options.hpp"
#include "cpufree/launch/live_waits.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

// None where there is no trace. Tracks: PE, block, thread, written and kept of each, side by side;
// records: two words each.
inline nanobind::object dict_of_trace(const TraceReport* trace) {
  if (trace == nullptr) return nanobind::none();
  std::vector<std::uint64_t> tracks, records;
  for (const TraceTrack& t : trace->tracks)
    for (const std::uint64_t word :
         {std::uint64_t(t.pe), std::uint64_t(t.block), std::uint64_t(t.thread), t.written, t.kept})
      tracks.push_back(word);
  for (const TraceRecord& record : trace->records) {
    records.push_back(record.head);
    records.push_back(record.body);
  }
  nanobind::dict d;
  d["tracks"] = to_numpy(std::move(tracks));
  d["records"] = to_numpy(std::move(records));
  d["bytes"] = to_numpy(std::vector(trace->bytes));
  d["starts"] = to_numpy(std::vector(trace->starts));
  return d;
}

inline const char* name_of(BlockState state) {
  constexpr const char* kNames[] = {"absent",  "running", "finished", "expired",
                                    "aborted", "waiting", "stopped"};
  return kNames[static_cast<std::size_t>(state)];
}

// The waits of blocks that gave up; or all blocks, with what they did.
inline nanobind::list list_of(const std::vector<BlockReport>& blocks, bool all) {
  nanobind::list waits;
  for (const BlockReport& b : blocks) {
    if (!all && !b.record.waited()) continue;
    nanobind::dict wait;
    if (all) wait["state"] = name_of(b.record.state);
    wait["pe"] = b.pe;
    wait["block"] = b.block;
    wait["channel"] = channel_name(b.record.channel);
    wait["waits_for_pe"] = b.record.from_pe;
    wait["waits_for_block"] = b.record.from_block;
    wait["epoch"] = b.record.want;
    wait["seen"] = b.record.seen;
    wait["seconds"] = b.record.seconds;
    waits.append(wait);
  }
  return waits;
}

// How a run is traced, from Python: "events", "kinds", "every", and "heard", which is called with
// what blocks do once a wait has stood for "after" seconds. `options` outlive the run.
inline TraceSpec trace_spec_of(const nanobind::dict& options) {
  require_known(options, {"events", "kinds", "every", "heard", "after"});
  TraceSpec spec;
  spec.events = option(options, "events", spec.events);
  spec.kinds = option(options, "kinds", spec.kinds);
  spec.every = option(options, "every", spec.every);
  spec.after = option(options, "after", spec.after);
  if (options.contains("heard"))
    spec.heard = [heard = nanobind::handle(options["heard"])](const auto& blocks) {
      const nanobind::gil_scoped_acquire acquire;
      heard(list_of(blocks, true));
    };
  check(spec);
  return spec;
}
// Of an argument that may be None: the run is not traced.
inline std::optional<TraceSpec> trace_spec_of(const nanobind::object& options) {
  if (options.is_none()) return std::nullopt;
  return trace_spec_of(nanobind::cast<nanobind::dict>(options));
}

}  // namespace cpufree
