// NVSHMEM on streams, one process for each GPU: boundary values by put-with-signal straight into
// the ghosts of the neighbour, on a stream of their own; sums by NVSHMEM's reductions.
//
// All PEs launch the same exchanges and the same reductions in the same order; both are counted.
//
// Why no value is overwritten too early. Exchange e signals e, and who receives waits for e or
// more: signals only grow, and each has one writer. The kernel that packs exchange e + 1 reads
// totals to which every GPU contributed after it had received exchange e: a reduction follows the
// waits, on `comm` itself or behind the product with ghosts. So the buffer has been read, and no
// put need be waited for where it starts; those to several neighbours travel side by side, on
// streams of NVSHMEM's own. Ghosts of exchange e are overwritten by the next one of the same vector
// (e + 1; in pipecg, which has two vectors in turn, e + 2), packed by a kernel that reads totals to
// which every GPU contributed after it had read the ghosts of e.
//
// Why no total is. NVSHMEM, as OpenSHMEM, wants the target of a reduction ready on all PEs before
// the first one begins it. Reduction n + kRing has the target of n, whose last reader comes before
// reduction n + 3 in the order of the streams (direction of cg: totals of n are `before` behind
// n + 2). A PE that begins n + kRing has the totals of n + 3, to which all contributed. The source
// is written again when the PE's own reduction is over, after which no PE reads it.
//
// Why no wait is in vain. Each PE launches the puts of an exchange before its waits, and what
// another one waits for was launched before anything that depends on it: even GPUs that ran
// everything one after another, in the order of the launches, would come through.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/baselines/comm/comm.hpp"
#include "cpufree/baselines/nvshmem_team.hpp"

namespace cpufree::baselines {

template <class T>
class Nvshmem : public Comm<T> {
 public:
  using Ranks = typename Comm<T>::Ranks;

  // Moves the rank's buffer and vectors with ghosts into symmetric memory, which lives as long as
  // the process.
  Nvshmem(const HaloPlan<T>& plan, Rank<T>& rank, ShmemLibrary library, double wait_limit)
      : team_(std::move(library), rank.compute), rank_(rank), wait_limit_(wait_limit) {
    std::size_t longest = 0;
    std::size_t most = 0;
    for (const LocalSystem<T>& local : plan.local) {
      std::size_t sent = 0;
      for (const Neighbour& neighbour : local.neighbours) sent += at(neighbour.sent);
      most = std::max(most, sent);
      longest = std::max(longest, at(local.rows()) + at(local.ghosts));
    }
    for (DeviceArray<T>& v : rank.ghosted) v = team_.symmetric<T>(longest);
    rank.buffer = team_.symmetric<T>(most);
    signals_ = team_.symmetric<std::uint64_t>(plan.local.size() * kApart);
    source_ = team_.symmetric<double>(kLength);
    ring_ = team_.symmetric<double>(kRing * kLength);
    for (const Neighbour& neighbour : rank.neighbours) {
      const LocalSystem<T>& there = plan.local[at(neighbour.pe)];
      const auto mine = std::ranges::find(there.neighbours, rank.pe, &Neighbour::pe);
      landing_.push_back(at(there.rows()) + at(mine->first_ghost));
    }
    team_.meet(kCopyLimit);  // others may take longer to be set up
  }

  // No PE clears, or writes, what another PE still needs.
  void begin(const Ranks&) override {
    for (std::size_t k = 0; k < totals_.size(); ++k) totals_[k] = rank_.sums.data() + k;
    team_.meet(wait_limit_);
  }

  void send(const Ranks& ranks, HaloVector which) override {
    const Rank<T>& rank = *ranks.front();
    ++exchange_;
    if (rank.neighbours.empty()) return;
    const OnDevice here(rank.device);
    rank.compute.record(rank.packed);
    rank.comm.wait_for(rank.packed);
    const ShmemLibrary& library = team_.library();
    const auto& put = rank.neighbours.size() == 1 ? library.put_signal : library.put_signal_nbi;
    for (std::size_t k = 0; k < rank.neighbours.size(); ++k)
      put(rank.vector(which) + landing_[k], rank.buffer.data() + rank.first_sent[k],
          at(rank.neighbours[k].sent) * sizeof(T), signal_from(rank.pe), exchange_, kShmemSet,
          rank.neighbours[k].pe, rank.comm);
    for (const Neighbour& neighbour : rank.neighbours)
      library.wait(signal_from(neighbour.pe), kShmemGe, exchange_, rank.comm);
    rank.comm.record(rank.moved);
  }
  void receive(Rank<T>& rank, HaloVector) override {
    if (!rank.neighbours.empty()) rank.compute.wait_for(rank.moved);
  }

  SumTarget target(const Rank<T>& rank, const Sums& sums) const override {
    SumTarget to = Comm<T>::target(rank, sums);
    to.out = source_.data();
    return to;
  }
  const double* totals(const Rank<T>&, const Sums& sums) const override {
    return totals_[at(sums.first)];
  }
  // Alone on `compute`; behind the halo on `comm` where there is work to overlap with.
  void begin_sum(const Ranks& ranks, const Sums& sums) override {
    const Rank<T>& rank = *ranks.front();
    const OnDevice here(rank.device);
    if (sums.overlapped) {
      rank.compute.record(rank.packed);
      rank.comm.wait_for(rank.packed);
    }
    const double* const to = reduce(sums.count, sums.overlapped ? rank.comm : rank.compute);
    for (int k = 0; k < sums.count; ++k) totals_[at(sums.first + k)] = to + k;
  }
  void end_sum(const Ranks& ranks, const Sums& sums) override {
    if (!sums.overlapped) return;
    const Rank<T>& rank = *ranks.front();
    const OnDevice here(rank.device);
    rank.comm.record(rank.summed);
    rank.compute.wait_for(rank.summed);
  }

  // With idle streams.
  double slowest(double seconds) override { return team_.largest(seconds, wait_limit_); }

 private:
  static constexpr int kLength = kMaxSums + 1;  // even
  static constexpr std::uint64_t kRing = 4;
  static constexpr std::size_t kApart = 16;  // 128 bytes

  std::uint64_t* signal_from(int pe) const { return signals_.data() + at(pe) * kApart; }

  // The source, padded to an even number: for those NVSHMEM has its algorithm of low latency, and
  // one in which all PEs add in the same order, so that all have the same bits and stop together.
  double* reduce(int count, const Stream& stream) {
    double* const to = ring_.data() + (reductions_++ % kRing) * kLength;
    if (team_.library().sum(kShmemWorld, to, source_.data(), at(count + count % 2), stream) != 0)
      throw EngineError("a reduction of NVSHMEM could not be launched");
    return to;
  }

  ShmemTeam team_;
  const Rank<T>& rank_;
  double wait_limit_;
  DeviceArray<std::uint64_t> signals_;  // of each PE
  DeviceArray<double> source_, ring_;
  std::vector<std::size_t> landing_;                  // of each neighbour: in its vector
  std::uint64_t exchange_ = 0;                        // the last one
  std::uint64_t reductions_ = 0;                      // launched
  std::array<const double*, kSumSlots> totals_ = {};  // by slot
};

}  // namespace cpufree::baselines
