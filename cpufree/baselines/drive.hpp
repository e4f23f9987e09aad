// How the host drives iterations: launching them one after another or as recorded graphs, and
// looking at the residual late, so that the GPU never waits for the host.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "cpufree/baselines/methods.hpp"

namespace cpufree::baselines {

// How a solve ended, as the GPUs have it.
struct Ending {
  std::uint64_t iterations = 0;
  Code code = Code::running;
  double square = 0.0;  // of the norm of the recurrence's residual
};

// What a GPU says of its progress (Control), and waiting for it.
template <class T>
class Watch {
 public:
  // `failed`: set where another thread of the solve has given up.
  Watch(const Rank<T>& rank, const Comm<T>& comm, double wait_limit, std::atomic<bool>& failed)
      : rank_(rank), comm_(comm), wait_limit_(wait_limit), failed_(failed) {}

  // For a new solve, with idle streams.
  void reset() const {
    rank_.progress.clear(rank_.compute);
    rank_.sums.clear(rank_.compute);
    rank_.x.clear(rank_.compute);
    for (const DeviceArray<T>& v : rank_.ghosted) v.clear(rank_.compute);
    rank_.compute.drain(Deadline(kCopyLimit), "the reset of a solve");
    for (std::size_t k = 0; k < rank_.host_sums.size(); ++k) rank_.host_sums[k] = 0.0;
    rank_.reached[0] = {0.0, kNone};
  }

  // Waits until residual `number` has been judged, and says whether the solve was over by then: the
  // same answer to every thread, however late it looks.
  bool over_by(std::uint64_t number) const {
    const Deadline deadline(wait_limit_);
    for (unsigned look = 1;; ++look) {
      const std::uint64_t tag = seen();
      if (tag != kNone && tag_notes(tag) != 0) return tag_epoch(tag) <= number;
      if (tag != kNone && tag_epoch(tag) >= number) return false;
      gpuRelax();
      if (look % 1024 != 0) continue;
      check_stream(gpuStreamQuery(rank_.compute));
      if (deadline.over()) give_up(deadline, "an iteration");
    }
  }

  // Waits until all that was launched is done: as long as residuals are judged, and wait_limit
  // more. Kernels that wait themselves give up at that bound, and know more: they get twice as
  // long.
  void drain() const {
    const double limit = comm_.abort_word(rank_) != nullptr ? 2.0 * wait_limit_ : wait_limit_;
    Deadline deadline(limit);
    std::uint64_t before = seen();
    gpuError_t status = gpuSuccess;
    for (unsigned look = 1; (status = gpuStreamQuery(rank_.compute)) == gpuErrorNotReady; ++look) {
      if (look % 64 != 0) continue;
      check_stream(status);
      if (const std::uint64_t now = seen(); now != before) {
        before = now;
        deadline = Deadline(limit);
      } else if (deadline.over()) {
        complain();
        give_up(deadline, "the end of a solve");
      }
    }
    check_stream(status);
    complain();
  }

  Ending ending(Method method) const {
    const std::uint64_t tag = seen();
    Ending ending{tag_epoch(tag), static_cast<Code>(tag_notes(tag)), rank_.reached[0].value};
    // A direction of classic CG is judged with the residual that follows it.
    if (method == Method::cg && ending.code == Code::indefinite_mat) --ending.iterations;
    return ending;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t seen() const {
    return std::atomic_ref(rank_.reached[0].tag).load(std::memory_order_acquire);
  }
  void complain() const {
    if (const std::string why = comm_.complaint(); !why.empty()) throw EngineError(why);
  }
  void check_stream(gpuError_t status) const {
    if (status != gpuErrorNotReady) check(status, "a solve");
    if (failed_.load()) throw EngineError("another thread of this solve has failed");
  }

  const Rank<T>& rank_;
  const Comm<T>& comm_;
  double wait_limit_;
  std::atomic<bool>& failed_;
};

// Launches chunks of iterations. A chunk is launched once the first iteration of the one `lag`
// chunks before has begun, and only if the solve was not over there: every thread of a solve then
// launches the same number. `recorded`: graphs of `chunk` iterations, one for each rank, or none.
struct Pace {
  std::uint64_t chunk = 1;  // even, or 1
  std::uint64_t lag = 2;
  const std::vector<Graph>* recorded = nullptr;
  const std::vector<Graph>* rest = nullptr;  // of the iterations that fill no chunk
  bool exact = false;                        // as many iterations as were asked for, come what may
};

template <class T>
void launch(Team<T>& team, const MethodSteps<T>& steps, const std::vector<Graph>* graphs,
            std::uint64_t iterations) {
  if (graphs != nullptr && !graphs->empty()) {
    for (std::size_t k = 0; k < graphs->size(); ++k) (*graphs)[k].launch(team.ranks()[k]->compute);
    return;
  }
  for (std::uint64_t m = 0; m < iterations; ++m) steps.iterate(team, static_cast<int>(m % 2));
}

// Iterations driven by the host. `steps.start` has been launched.
template <class T>
void run_paced(Team<T>& team, const MethodSteps<T>& steps, const Watch<T>& watch, const Stop& stop,
               const Pace& pace) {
  const std::uint64_t behind = pace.lag * pace.chunk;
  std::uint64_t m = 0;
  while (m < stop.iterations) {
    if (m >= behind && watch.over_by(m - behind) && !pace.exact) break;
    const std::uint64_t count = std::min(pace.chunk, stop.iterations - m);
    if (pace.chunk == 1)
      steps.iterate(team, static_cast<int>(m % 2));
    else
      launch(team, steps, count == pace.chunk ? pace.recorded : pace.rest, count);
    m += count;
  }
  steps.finish(team, static_cast<int>(m % 2));
}

// The same `iterations` as a graph for each rank of the team; each rank has a team of its own where
// its graph holds communication that a library does.
template <class T>
std::vector<Graph> record_iterations(Team<T>& team, const MethodSteps<T>& steps,
                                     std::uint64_t iterations) {
  std::vector<Graph> graphs;
  if (iterations > 0)
    graphs.push_back(Graph::record(team.ranks().front()->compute, [&] {
      for (std::uint64_t m = 0; m < iterations; ++m) steps.iterate(team, static_cast<int>(m % 2));
    }));
  return graphs;
}

// Two iterations as the body of a loop on every GPU.
template <class T>
std::vector<Graph> record_loops(Team<T>& team, const MethodSteps<T>& steps) {
  std::vector<const Stream*> streams;
  for (const Rank<T>* rank : team.ranks()) streams.push_back(&rank->compute);
  return Graph::record_loops(streams, [&](const std::vector<gpuLoopHandle_t>& handles) {
    team.set_loops(handles);
    steps.iterate(team, 0);
    steps.iterate(team, 1);
    team.set_loops({});
  });
}

}  // namespace cpufree::baselines
