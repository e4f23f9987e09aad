// Records of traces for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "cpufree/bindings/numpy.hpp"
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

}  // namespace cpufree
