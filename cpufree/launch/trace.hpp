// Traces of launches, whatever the engine is: what the PEs of a team have, and of a hang.
#pragma once

#include <memory>
#include <optional>

#include "cpufree/distributed/team.hpp"
#include "cpufree/launch/waits.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

// Of the PEs of all processes; every member of a team calls it. No team: all are in this process.
inline TraceReport joined(Team* team, TraceReport own) {
  if (team == nullptr) return own;
  return {join(*team, "tracks of a trace", own.tracks),
          join(*team, "records of a trace", own.records),
          join(*team, "bytes of a trace", own.bytes), join(*team, "clocks of a trace", own.starts)};
}

// launch(). What the PEs of this process had done goes with the error of a wait given up.
template <class Trace, class F>
auto launch_traced(const std::optional<Trace>& trace, F&& launch) {
  try {
    return launch();
  } catch (WaitTimeout& error) {
    if (trace) error.trace = std::make_shared<TraceReport>(trace->report(nullptr));
    throw;
  }
}

}  // namespace cpufree
