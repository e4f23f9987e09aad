// Whom blocks wait for while their kernels run, as traced kernels publish it (trace/record.hpp):
// hosts read memory of theirs, and call no engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "cpufree/launch/engine.hpp"
#include "cpufree/launch/waits.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

// How a run is traced, and who is told of long waits.
struct TraceSpec {
  std::int64_t events = 1 << 15;         // that the ring of a thread holds
  std::uint32_t kinds = kAllTraceKinds;  // which records: bit k for TraceKind k
  std::int64_t every = 1;                // iterations, of which one is recorded
  // Called on the host thread with what all blocks that it sees do, once a wait has stood for
  // `after` seconds, and again whenever it has stood twice as long. What it throws ends the run.
  std::function<void(const std::vector<BlockReport>&)> heard = nullptr;
  double after = 2.0;
};

// Throws InvalidInput where a number is out of its range.
void check(const TraceSpec& spec);

// What the threads of one PE have published, and the sign of life of its process.
struct PublishedPe {
  const Published* told = nullptr;  // shape.counts() of them
  const Flag* alive = nullptr;      // changes while its process runs; null: it is this process
};

class LiveWaits {
 public:
  // Of PEs from `first` on.
  LiveWaits(const TraceSpec& spec, const TraceShape& shape, int first,
            std::vector<PublishedPe> pes);

  // From time to time, on the host's thread, while kernels run.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  // A word, and since when it has stood.
  struct Word {
    std::uint64_t value = 0;
    Clock::time_point since = Clock::now();
    double stands(Clock::time_point now) const {
      return std::chrono::duration<double>(now - since).count();
    }
    void see(std::uint64_t seen, Clock::time_point now) {
      if (seen != value) value = seen, since = now;
    }
  };

  void see(Clock::time_point now);
  WaitRecord record_of(std::size_t block, Clock::time_point now) const;

  TraceSpec spec_;
  TraceShape shape_;
  int first_;
  std::vector<PublishedPe> pes_;
  std::vector<Word> states_, alive_;  // of each thread; of each PE
  std::vector<std::uint64_t> bodies_;
  Clock::time_point next_look_;
  double next_call_;  // once a wait has stood so long
};

// `progress`, which looks at waits, too; `watch` outlives it. Null: nobody listens.
Progress watched(const Progress& progress, LiveWaits* watch);

}  // namespace cpufree
