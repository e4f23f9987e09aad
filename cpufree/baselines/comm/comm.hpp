// How the PEs of a baseline talk to one another: the one thing in which baselines differ.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/baselines/rank.hpp"

namespace cpufree::baselines {

// What is left in of an iteration. `nothing`: what little runs in `no_compute` and not in `no_comm`
// is loaded.
enum class Variant { full, no_compute, no_comm, nothing };

// Called by the thread that drives `ranks`: all of them, or one where there is a thread for each.
// Everything is launched on the ranks' streams; `compute` is the one that kernels run on.
template <class T>
class Comm {
 public:
  using Ranks = std::vector<Rank<T>*>;
  Comm() = default;
  virtual ~Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Before the first solve: whatever is set up, or loaded, at its first use.
  virtual void warm_up(const Ranks& ranks) {
    send(ranks, HaloVector::p);
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      receive(*rank, HaloVector::p);
    }
    for (const bool overlapped : {false, true}) {
      begin_sum(ranks, {0, 1, overlapped});
      end_sum(ranks, {0, 1, overlapped});
    }
  }
  // Before a solve, with idle streams.
  virtual void begin(const Ranks&) {}

  // The ghosts of a vector, in three steps: `outbox` is given to the kernel that writes the vector;
  // `send` follows it; `receive` comes before the kernel that reads the ghosts, and also makes the
  // outbox free to be written again.
  virtual Outbox<T> outbox(const Rank<T>& rank) const {
    return {rank.interior, rank.send_ptr.data(), rank.place.data(), rank.buffer.data(), nullptr,
            nullptr};
  }
  virtual void send(const Ranks& ranks, HaloVector which) = 0;
  virtual void receive(Rank<T>& rank, HaloVector which) = 0;

  // Sums over all PEs: `target` is given to the kernel that computes the sums of a PE; `begin_sum`
  // follows it; after `end_sum`, kernels launched on `compute` may read the totals: where `totals`
  // says, or, if `by_value`, as host numbers.
  virtual SumTarget target(const Rank<T>& rank, const Sums& sums) const {
    return {rank.partial.data(), rank.arrived.data(), nullptr, rank.sums.data() + sums.first, {}};
  }
  // Where the totals are, from the launch of a reduction on; before it, what kernels have preset.
  virtual const double* totals(const Rank<T>& rank, const Sums& sums) const {
    return rank.sums.data() + sums.first;
  }
  virtual bool by_value() const { return false; }
  virtual double total(int) const { return 0.0; }
  virtual void preset(int, double) {}  // a number that no kernel sums
  virtual void begin_sum(const Ranks& ranks, const Sums& sums) = 0;
  virtual void end_sum(const Ranks& ranks, const Sums& sums) = 0;

  // Whether kernels themselves send: then those that have nothing to compute must run all the same.
  virtual bool sends_from_kernels() const { return false; }
  // Not null: counts reductions on the GPU, those that are left out too.
  virtual std::uint64_t* epoch(const Rank<T>&) const { return nullptr; }
  virtual void skip_sum(const Ranks&) {}
  virtual const unsigned* abort_word(const Rank<T>&) const { return nullptr; }
  // After a wait was given up: makes what is under way end, if that can be done.
  virtual void abort() noexcept {}
  // What a wait inside a kernel says after it was given up; "" where none was.
  virtual std::string complaint() const { return ""; }
  // The slowest PE's time, where not all ranks are driven by this process.
  virtual double slowest(double seconds) { return seconds; }
};

// One PE: it exchanges nothing.
template <class T>
class Alone : public Comm<T> {
 public:
  using Ranks = typename Comm<T>::Ranks;
  void send(const Ranks&, HaloVector) override {}
  void receive(Rank<T>&, HaloVector) override {}
  void begin_sum(const Ranks&, const Sums&) override {}
  void end_sum(const Ranks&, const Sums&) override {}
};

}  // namespace cpufree::baselines
