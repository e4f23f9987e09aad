// Several GPUs in one process, driven by one thread: copies between GPUs on a second stream each,
// sums finished by the host from pinned memory.
//
// Why nothing is overwritten too early: (i) a buffer is packed again after `receive`, which waits
// for the copies out of it; (ii) ghosts are written again two iterations later (pipecg, which has
// two vectors) or one later (the others), after sums that every GPU computed when it had read them,
// and that the host has waited for.
#pragma once

#include <array>

#include "cpufree/baselines/comm/comm.hpp"

namespace cpufree::baselines {

template <class T>
class PeerCopies : public Comm<T> {
 public:
  using Ranks = typename Comm<T>::Ranks;
  explicit PeerCopies(double wait_limit) : wait_limit_(wait_limit) {}

  void begin(const Ranks& ranks) override { ranks_ = ranks; }

  void send(const Ranks& ranks, HaloVector which) override {
    ranks_ = ranks;
    for (Rank<T>* from : ranks) {
      if (from->neighbours.empty()) continue;
      const OnDevice here(from->device);
      from->compute.record(from->packed);
      from->comm.wait_for(from->packed);
      for (std::size_t k = 0; k < from->neighbours.size(); ++k) copy(*from, k, which);
      from->comm.record(from->moved);
    }
  }

  void receive(Rank<T>& rank, HaloVector) override {
    for (const Neighbour& neighbour : rank.neighbours)
      rank.compute.wait_for(ranks_[at(neighbour.pe)]->moved);
    if (!rank.neighbours.empty()) rank.compute.wait_for(rank.moved);
  }

  SumTarget target(const Rank<T>& rank, const Sums& sums) const override {
    SumTarget to = Comm<T>::target(rank, sums);
    to.out = rank.host_sums.data() + sums.first;
    return to;
  }
  bool by_value() const override { return true; }
  double total(int slot) const override { return totals_[at(slot)]; }
  void preset(int slot, double value) override { totals_[at(slot)] = value; }

  void begin_sum(const Ranks& ranks, const Sums&) override {
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      rank->compute.record(rank->summed);
    }
  }
  void end_sum(const Ranks& ranks, const Sums& sums) override {
    for (const Rank<T>* rank : ranks) rank->summed.wait(Deadline(wait_limit_), "the sums of a GPU");
    for (int k = sums.first; k < sums.first + sums.count; ++k) {
      totals_[at(k)] = 0.0;
      for (const Rank<T>* rank : ranks) totals_[at(k)] += rank->host_sums[at(k)];
    }
  }

 private:
  void copy(const Rank<T>& from, std::size_t k, HaloVector which) const {
    const Neighbour& neighbour = from.neighbours[k];
    const Rank<T>& to = *ranks_[at(neighbour.pe)];
    const auto mine = std::ranges::find(to.neighbours, from.pe, &Neighbour::pe);
    gpu::copy_across(to.vector(which) + to.rows + mine->first_ghost, to.device,
                     from.buffer.data() + from.first_sent[k], from.device,
                     at(neighbour.sent) * sizeof(T), from.comm);
  }

  double wait_limit_;
  Ranks ranks_;
  std::array<double, kSumSlots> totals_ = {};
};

}  // namespace cpufree::baselines
