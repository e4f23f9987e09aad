// A baseline: ranks, how they communicate, and how they are driven.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "cpufree/base/crew.hpp"
#include "cpufree/baselines/drive.hpp"

namespace cpufree::baselines {

// Who decides whether there is another iteration, and what is launched at a time.
struct Driving {
  bool thread_for_each = false;
  bool loops = false;        // the GPUs decide
  std::uint64_t unroll = 1;  // iterations in a graph; 1: no graphs
  std::uint64_t lag = 2;
  double wait_limit = 60.0;
};

template <class T>
class Hosted {
 public:
  using Ranks = typename Comm<T>::Ranks;

  Hosted(std::vector<std::unique_ptr<Rank<T>>> ranks, std::unique_ptr<Comm<T>> comm,
         const Driving& driving)
      : ranks_(std::move(ranks)), comm_(std::move(comm)), driving_(driving) {
    if (driving_.thread_for_each)
      for (const auto& rank : ranks_) groups_.push_back({rank.get()});
    else
      groups_.push_back(all());
    for (const auto& rank : ranks_)
      watches_.emplace_back(*rank, *comm_, driving_.wait_limit, failed_);
  }

  Ranks all() const {
    Ranks ranks;
    for (const auto& rank : ranks_) ranks.push_back(rank.get());
    return ranks;
  }
  Comm<T>& comm() const { return *comm_; }

  // Loads kernels, connects PEs and records graphs: all that the first solve of its kind does.
  void prepare(Method method, Variant variant, const Stop& stop, bool exact) {
    auto& ready = ready_[{method, variant}];
    if (ready.empty()) {
      warm_up(method);
      ready = record(method, variant, driving_.unroll);
    }
    const bool uneven = driving_.unroll > 1 && exact && stop.iterations % driving_.unroll > 0;
    rest_ = uneven ? record(method, variant, stop.iterations % driving_.unroll) : Recorded{};
  }

  // Solves for the ranks' b. Returns the seconds from the first launch to the end of all work.
  double run(Method method, Variant variant, const Stop& stop, bool exact) {
    const auto steps = make_steps<T>(method);
    const Recorded& ready = ready_.at({method, variant});
    for (const Watch<T>& watch : watches_) watch.reset();
    comm_->begin(all());
    return together([&](std::size_t group) {
      Team<T> team(groups_[group], *comm_, variant);
      const OnDevice here(groups_[group].front()->device);
      steps->start(team, stop);
      if (driving_.loops) {
        launch(team, *steps, &ready[group], 0);
        steps->finish(team, 0);
      } else {
        const Pace pace{driving_.unroll, driving_.unroll > 1 ? 1 : driving_.lag, &ready[group],
                        rest_.empty() ? nullptr : &rest_[group], exact};
        run_paced(team, *steps, watch_of(group), stop, pace);
      }
      drain(group);
    });
  }

  Ending ending(Method method) const { return watches_.front().ending(method); }

 private:
  using Recorded = std::vector<std::vector<Graph>>;  // by group, then rank

  std::int64_t index_of(const Rank<T>& rank) const {
    std::size_t k = 0;
    while (ranks_[k].get() != &rank) ++k;
    return static_cast<std::int64_t>(k);
  }
  const Watch<T>& watch_of(std::size_t group) const {
    return watches_[at(index_of(*groups_[group].front()))];
  }

  template <class F>
  double together(F&& work) {
    failed_ = false;
    try {
      return run_together(groups_.size(), failed_, work);
    } catch (...) {
      comm_->abort();
      throw;
    }
  }

  // Two iterations without communication, then communication without iterations. Every kernel is
  // loaded before GPUs wait for one another: loading one waits for kernels that run, which may wait
  // for what would be launched after it.
  void warm_up(Method method) {
    const auto steps = make_steps<T>(method);
    for (const Watch<T>& watch : watches_) watch.reset();
    comm_->begin(all());
    for (const Variant variant : {Variant::no_comm, Variant::nothing})
      together([&](std::size_t group) {
        Team<T> team(groups_[group], *comm_, variant);
        const OnDevice here(groups_[group].front()->device);
        steps->start(team, {-1.0, 2});
        steps->iterate(team, 0);
        steps->iterate(team, 1);
        steps->finish(team, 0);
        drain(group);
      });
    if (warm_) return;
    together([&](std::size_t group) {
      comm_->warm_up(groups_[group]);
      drain(group);
    });
    warm_ = true;
  }

  void drain(std::size_t group) const {
    for (const Rank<T>* rank : groups_[group]) watches_[at(index_of(*rank))].drain();
  }

  Recorded record(Method method, Variant variant, std::uint64_t iterations) {
    const auto steps = make_steps<T>(method);
    Recorded recorded(groups_.size());
    if (driving_.loops || driving_.unroll > 1)
      together([&](std::size_t group) {
        Team<T> team(groups_[group], *comm_, variant);
        const OnDevice here(groups_[group].front()->device);
        recorded[group] = driving_.loops ? record_loops(team, *steps)
                                         : record_iterations(team, *steps, iterations);
      });
    return recorded;
  }

  std::vector<std::unique_ptr<Rank<T>>> ranks_;
  std::unique_ptr<Comm<T>> comm_;
  Driving driving_;
  std::vector<Ranks> groups_;
  std::atomic<bool> failed_ = false;
  std::vector<Watch<T>> watches_;
  std::map<std::pair<Method, Variant>, Recorded> ready_;
  Recorded rest_;  // iterations of one solve that fill no graph
  bool warm_ = false;
};

}  // namespace cpufree::baselines
