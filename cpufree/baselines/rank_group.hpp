// The ranks that one host thread drives, in the verbs in which methods are written.
#pragma once

#include <vector>

#include "cpufree/baselines/comm/comm.hpp"

namespace cpufree::baselines {

template <class T>
class Team {
 public:
  using Ranks = typename Comm<T>::Ranks;
  Team(Ranks ranks, Comm<T>& comm, Variant variant)
      : ranks_(std::move(ranks)), comm_(comm), variant_(variant), loops_(ranks_.size()) {}

  const Ranks& ranks() const { return ranks_; }
  Comm<T>& comm() const { return comm_; }

  // The kernels that are recorded from now on decide whether their graph loops.
  void set_loops(std::vector<gpuLoopHandle_t> loops) {
    loops_ = std::move(loops);
    looping_ = !loops_.empty();
  }

  // One kernel on every GPU: make(rank) is its functor. `sums`: where those go.
  template <int K, class F>
  void step(F&& make, const Sums& sums = {}) {
    each([&](Rank<T>& rank) {
      const SumTarget to = target<K>(rank, sums);
      if (computes())
        sweep<K>(rank, rank.rows, make(rank), to);
      else if (K > 0 && comm_.sends_from_kernels())
        sweep<K>(rank, 0, make(rank), to);
    });
  }

  // The same for a kernel that packs values to be sent.
  template <int K, class F>
  void packing_step(F&& make, const Sums& sums = {}) {
    each([&](Rank<T>& rank) {
      const SumTarget to = target<K>(rank, sums);
      if (computes())
        sweep<K>(rank, rank.rows, make(rank), to);
      else
        sweep<K>(rank, communicates() ? rank.rows - rank.interior : 0, PackOnly{make(rank)}, to);
    });
  }

  // One thread on every GPU.
  template <class F>
  void single(F&& make) {
    each([&](Rank<T>& rank) { sweep<0>(rank, 0, JudgeOnly{make(rank)}, {}); });
  }

  // s = A v, v's boundary values having been packed; make(rank) gives the sums.
  template <class F>
  void multiply(HaloVector v, DeviceArray<T> Rank<T>::* s, F&& make, const Sums& sums = {}) {
    each([&](Rank<T>& rank) {
      using E = decltype(make(rank));
      const auto receive = [&] {
        if (communicates()) comm_.receive(rank, v);
      };
      const SumTarget to = target<E::kSums>(rank, sums);
      if (computes()) {
        rank.product.multiply(rank.vector(v), (rank.*s).data(), make(rank), to, receive);
        return;
      }
      if (rank.product.has_ghosts()) receive();
      if constexpr (E::kSums > 0)
        if (comm_.sends_from_kernels())
          sweep<E::kSums>(rank, 0, SumsOnly<T, E>{make(rank), nullptr}, to);
    });
  }

  void send(HaloVector v) {
    if (communicates()) comm_.send(ranks_, v);
  }
  void begin_sum(const Sums& sums) {
    if (communicates()) comm_.begin_sum(ranks_, sums);
  }
  void end_sum(const Sums& sums) {
    if (communicates())
      comm_.end_sum(ranks_, sums);
    else
      comm_.skip_sum(ranks_);
  }
  void sum(const Sums& sums) {
    begin_sum(sums);
    end_sum(sums);
  }

  template <int K>
  Totals<K> totals(const Rank<T>& rank, const Sums& sums) const {
    Totals<K> totals;
    if (comm_.by_value() && communicates())
      for (int k = 0; k < K; ++k) totals.value[k] = comm_.total(sums.first + k);
    else
      totals.at = communicates() ? comm_.totals(rank, sums) : rank.sums.data() + sums.first;
    return totals;
  }
  // What `totals` are where no kernel has summed any.
  void preset(const Sums& sums, int k, double value) { comm_.preset(sums.first + k, value); }

  Outbox<T> outbox(const Rank<T>& rank) const {
    if (communicates()) return comm_.outbox(rank);
    Outbox<T> none;
    none.interior = rank.rows;
    return none;
  }

  Control control(const Rank<T>& rank, unsigned sums_in_an_iteration) const {
    Control control;
    control.limits = rank.limits.data();
    control.progress = rank.progress.data();
    control.reached = rank.reached.data();
    control.epoch = comm_.epoch(rank);
    control.epochs = sums_in_an_iteration;
    control.abort = comm_.abort_word(rank);
    control.loops = looping_;
    control.idle = !computes();
    for (std::size_t k = 0; looping_ && k < ranks_.size(); ++k)
      if (ranks_[k] == &rank) control.loop = loops_[k];
    return control;
  }

 private:
  bool computes() const { return variant_ == Variant::full || variant_ == Variant::no_comm; }
  bool communicates() const { return variant_ == Variant::full || variant_ == Variant::no_compute; }

  template <class F>
  void each(F&& f) {
    for (Rank<T>* rank : ranks_) {
      const OnDevice here(rank->device);
      f(*rank);
    }
  }

  template <int K>
  SumTarget target(const Rank<T>& rank, const Sums& sums) const {
    if constexpr (K == 0) return {};
    if (communicates()) return comm_.target(rank, sums);
    return {rank.partial.data(), rank.arrived.data(), nullptr, rank.sums.data() + sums.first, {}};
  }

  template <int K, class F>
  static void sweep(const Rank<T>& rank, std::int32_t n, const F& f, const SumTarget& to) {
    check(launch_sweep<K>(rank.compute, rank.compute.multiprocessors(), n, f, to),
          "launch of a kernel");
  }

  Ranks ranks_;
  Comm<T>& comm_;
  Variant variant_;
  std::vector<gpuLoopHandle_t> loops_;
  bool looping_ = false;
};

}  // namespace cpufree::baselines
