// How the host drives iterations on slabs: launched one after another or as recorded graphs, never
// far ahead of the GPUs.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cpufree/base/crew.hpp"
#include "cpufree/baselines/stencil/comm.hpp"

namespace cpufree::baselines {

// What is left in of an iteration. `no_comm`: the kernel of each slab alone.
enum class SlabVariant { full, no_compute, no_comm };

struct SlabDriving {
  bool thread_for_each = true;
  std::uint64_t unroll = 1;  // iterations in a graph, an even number; 1: no graphs
  double wait_limit = 60.0;
};

// Iterations that are launched before the GPU is asked whether it has come to the ones before.
inline constexpr std::uint64_t kStretch = 32;

template <class T>
class SlabRun {
 public:
  using Slabs = typename SlabComm<T>::Slabs;
  SlabRun(Slabs slabs, const SlabDriving& driving)
      : slabs_(std::move(slabs)), alone_(slabs_), driving_(driving) {
    for (const auto& slab : slabs_)
      if (driving_.thread_for_each || groups_.empty())
        groups_.push_back({slab.get()});
      else
        groups_.front().push_back(slab.get());
  }
  const Slabs& slabs() const { return slabs_; }
  void set_comm(std::unique_ptr<SlabComm<T>> comm) { comm_ = std::move(comm); }

  // Loads kernels, connects PEs and records graphs: all that the first run of its kind does. Leaves
  // the values as they are but for ghosts.
  void prepare(SlabVariant variant, std::uint64_t iterations) {
    if (!warm_) warm_up();
    warm_ = true;
    if (driving_.unroll == 1) return;
    for (const std::uint64_t count : {driving_.unroll, iterations % driving_.unroll})
      if (count > 0 && recorded_.find({variant, count}) == recorded_.end()) record(variant, count);
  }

  // Returns the seconds from the first launch to the end of all work. Copy `iterations` (modulo 2)
  // of the slabs has the values then, in full.
  double run(SlabVariant variant, std::uint64_t iterations) {
    begin();
    return together([&](std::size_t group) {
      driving_.unroll > 1 ? launch_graphs(group, variant, iterations)
                          : launch_steps(group, variant, iterations);
      drain(group);
    });
  }

 private:
  using Group = std::vector<Slab<T>*>;

  template <class F>
  double together(F&& work) {
    failed_ = false;
    try {
      return run_together(groups_.size(), failed_, work);
    } catch (...) {
      comm_->abort();
      if (const std::string why = comm_->complaint(); !why.empty()) throw EngineError(why);
      throw;
    }
  }
  template <class F>
  void each(std::size_t group, F&& f) {
    for (Slab<T>* slab : groups_[group]) {
      const OnDevice here(slab->device);
      f(*slab);
    }
  }
  // Kernels that wait themselves give up at the limit, and know more: they get twice as long.
  HostWaits waits() const {
    return {(comm_->waits_in_kernels() ? 2.0 : 1.0) * driving_.wait_limit, &failed_};
  }

  SlabComm<T>& comm_of(SlabVariant variant) {
    return variant == SlabVariant::no_comm ? alone_ : *comm_;
  }

  void begin() {
    for (const auto& slab : slabs_) slab->launched = slab->ended = 0;
    comm_->begin();
  }

  void launch_one(std::size_t group, std::uint64_t m, SlabVariant variant) {
    SlabComm<T>& comm = comm_of(variant);
    const bool computes = variant != SlabVariant::no_compute;
    each(group, [&](Slab<T>& slab) { comm.step(slab, m, computes, waits()); });
    comm.settle(groups_[group], m, waits());
  }

  void launch_steps(std::size_t group, SlabVariant variant, std::uint64_t iterations) {
    each(group, [&](Slab<T>& slab) { comm_of(variant).fork(slab); });
    for (std::uint64_t m = 0; m < iterations; ++m) {
      if (m % kStretch == 0) mark(group, m / kStretch);
      launch_one(group, m, variant);
    }
    each(group, [&](Slab<T>& slab) { comm_of(variant).join(slab); });
  }

  void launch_graphs(std::size_t group, SlabVariant variant, std::uint64_t iterations) {
    const std::uint64_t whole = iterations / driving_.unroll, rest = iterations % driving_.unroll;
    for (std::uint64_t k = 0; k < whole + (rest > 0 ? 1 : 0); ++k) {
      mark(group, k);
      const auto& graphs = recorded_.at({variant, k < whole ? driving_.unroll : rest})[group];
      for (std::size_t i = 0; i < graphs.size(); ++i) graphs[i].launch(groups_[group][i]->compute);
    }
  }

  // Before stretch k: the GPUs have come to the beginning of the one before.
  void mark(std::size_t group, std::uint64_t k) {
    each(group, [&](Slab<T>& slab) {
      if (k > 0) waits().for_event(slab.marks[(k - 1) % 2]);
      slab.compute.record(slab.marks[k % 2]);
    });
  }

  void drain(std::size_t group) {
    each(group, [&](Slab<T>& slab) {
      for (const Stream* stream : {&slab.compute, &slab.edge, &slab.side})
        waits().for_stream(*stream);
    });
    if (const std::string why = comm_->complaint(); !why.empty()) throw EngineError(why);
  }

  // Every kernel is loaded before GPUs wait for one another: loading one waits for kernels that
  // run, which may wait for what would be launched after it. Then an exchange, which connects PEs.
  void warm_up() {
    together([&](std::size_t group) {
      each(group, [&](Slab<T>& slab) { slab.load_kernels(); });
      drain(group);
    });
    begin();
    together([&](std::size_t group) {
      launch_steps(group, SlabVariant::no_compute, 2);
      drain(group);
    });
  }

  void record(SlabVariant variant, std::uint64_t count) {
    auto& graphs = recorded_[{variant, count}];
    graphs.resize(groups_.size());
    together([&](std::size_t group) {
      Slab<T>& slab = *groups_[group].front();  // graphs: a thread for each, or nothing shared
      const OnDevice here(slab.device);
      graphs[group].push_back(Graph::record(slab.compute, [&] {
        comm_of(variant).fork(slab);
        for (std::uint64_t m = 0; m < count; ++m) launch_one(group, m, variant);
        comm_of(variant).join(slab);
      }));
    });
  }

  Slabs slabs_;
  NoComm<T> alone_;
  SlabDriving driving_;
  std::unique_ptr<SlabComm<T>> comm_;  // after the slabs, which it refers to
  std::vector<Group> groups_;
  std::atomic<bool> failed_ = false;
  std::map<std::pair<SlabVariant, std::uint64_t>, std::vector<std::vector<Graph>>> recorded_;
  bool warm_ = false;
};

}  // namespace cpufree::baselines
