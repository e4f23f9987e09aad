// What every back end of triggered operations has to do, on PEs whose blocks are CPU threads. The
// tests of a back end call these with a factory: make(config) returns its NICs.
#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/triggered/device/triggered.hpp"
#include "cpufree/triggered/nics/host_port.hpp"
#include "cpufree/triggered/nics/nics.hpp"
#include "harness.hpp"
#include "trigger_scripts.hpp"

namespace nics_rig {

using namespace cpufree;
using nics::HostPort;
using nics::NicReport;
using nics::Nics;
using nics::NicsConfig;
using ThreadPort = cpu_threads::Port;

// Symmetric memory with two buffers, "source" and "target", of `values` doubles each.
struct Memory {
  SymmetricLayout layout;
  TriggerLayout triggers;
  Symmetric<double> source, target;
  std::unique_ptr<cpu_threads::SymmetricHeaps> heaps;
  std::size_t values;

  Memory(const TriggerSizes& sizes, std::size_t count) : triggers(layout, sizes), values(count) {
    source = layout.reserve<double>(count);
    target = layout.reserve<double>(count);
    heaps = std::make_unique<cpu_threads::SymmetricHeaps>(sizes.pes, layout.bytes());
  }
  NicsConfig config() const {
    NicsConfig c;
    c.layout = &triggers;
    c.heaps = heaps->bases();
    c.bytes = layout.bytes();
    c.times = true;
    return c;
  }
  template <class N>
  void add_buffers(N& nics) const {
    nics.add_buffer("source", source.offset, values * sizeof(double));
    nics.add_buffer("target", target.offset, values * sizeof(double));
  }
  TriggerBoard board(int pe) const { return triggers.board(heaps->base(pe)); }
  cpu_threads::LaunchConfig launch(double seconds) const {
    cpu_threads::LaunchConfig c;
    c.pes = triggers.sizes().pes;
    c.blocks = triggers.sizes().blocks;
    c.heaps = heaps->bases();
    c.wait_limit = std::chrono::milliseconds(static_cast<int>(1000 * seconds));
    return c;
  }
};

inline void wait_for(cpu_threads::Launch& launch) {
  while (!launch.wait_for(std::chrono::milliseconds(1000))) {
  }
}

inline trigger_scripts::rules::TriggerOutcome outcome_of(const Nics& nics,
                                                         const NicReport& report) {
  trigger_scripts::rules::TriggerOutcome outcome;
  for (const auto& f : nics.firings(0))
    outcome.fired.push_back({trigger_scripts::tag_of(f.tag), trigger_scripts::fields_of(f.fields)});
  for (const auto& f : report.faults) trigger_scripts::add(outcome, f.fault);
  for (const auto& w : report.waiting) outcome.waiting[trigger_scripts::tag_of(w.tag)] = w.seen;
  outcome.sort();
  return outcome;
}

// The actors of a script as threads, which may take their turns in any order; those that post, on
// the calling thread.
template <class Make>
trigger_scripts::rules::TriggerOutcome replay(const trigger_scripts::rules::TriggerScript& script,
                                              Make&& make) {
  const int actors = static_cast<int>(script.actors.size());
  Memory memory({2, actors, 4, 20, 1}, 16);
  const std::unique_ptr<Nics> nics = make(memory.config());
  memory.add_buffers(*nics);
  // Something to copy, where no trigger says what.
  const auto operation = [&memory](const trigger_scripts::rules::TriggerPost& post) {
    TriggerOperation o = trigger_scripts::operation_of(post);
    o.pe = 1;
    o.source = memory.source.offset;
    o.target = memory.target.offset;
    o.bytes = o.open == 0U ? 2 * sizeof(double) : 0;
    return o;
  };
  std::vector<std::thread> threads;
  for (int a = 0; a < actors; ++a) {
    const auto& steps = script.actors[static_cast<std::size_t>(a)];
    threads.emplace_back([&memory, &nics, &steps, &operation, a, actors] {
      HostPort port(memory.heaps->bases(), {0, 2, a, actors}, std::chrono::seconds(300));
      const TriggerBoard board = memory.board(0);
      Triggers<HostPort> triggers(port, board, 0);
      for (const auto& step : steps)
        if (step.posts)
          nics->post(0, operation(step.post));
        else if (!triggers.trigger(trigger_scripts::tag_of(step.tag),
                                   trigger_scripts::fields_of(step.fields)))
          return;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const NicReport report = nics->stop();
  return outcome_of(*nics, report);
}

template <class Make>
void check_scripts(Make&& make, int times) {
  int scripts = 0;
  for (const auto& script : trigger_scripts::all()) {
    ++scripts;
    int wrong = 0;
    for (int k = 0; k < times; ++k) wrong += replay(script, make) == script.expected ? 0 : 1;
    if (!CHECK_EQ(wrong, 0)) std::cerr << "script " << script.name << std::endl;
  }
  CHECK_EQ(scripts, 22);
}

// Each PE sends its right neighbour `values` doubles an epoch, from and to two buffers in turn; all
// blocks of a PE trigger the same put. Blocks read what has come whole. Returns the wrong values.
template <class Make>
std::int64_t wrong_in_ring(Make&& make, int pes, int blocks, int values, std::uint32_t epochs) {
  // Two signals: data from the left, and from the right that it has read them.
  Memory memory({pes, blocks, 8, 2, 2}, static_cast<std::size_t>(2 * values));
  const std::unique_ptr<Nics> nics = make(memory.config());
  memory.add_buffers(*nics);
  for (int pe = 0; pe < pes; ++pe) {
    TriggerOperation data;
    data.first = {0, 0};
    data.epochs = epochs;
    data.threshold = static_cast<std::uint64_t>(blocks);
    data.pe = (pe + 1) % pes;
    data.source = memory.source.offset;
    data.target = memory.target.offset;
    data.bytes = static_cast<std::uint64_t>(values) * sizeof(double);
    data.source_step = data.target_step = data.bytes;
    data.slots = 2;
    data.signal = 0;
    TriggerOperation read = data;
    read.first = {1, 0};
    read.pe = (pe + pes - 1) % pes;
    read.bytes = 0;
    read.signal = 1;
    nics->post(pe, data);
    nics->post(pe, read);
  }
  std::atomic<std::int64_t> wrong = 0;
  cpu_threads::Launch launch(memory.launch(60.0), [&](ThreadPort& port) {
    const TriggerBoard board = memory.board(port.pe());
    Triggers<ThreadPort> triggers(port, board, port.pe());
    const int left = (port.pe() + pes - 1) % pes;
    for (std::uint32_t e = 0; e < epochs; ++e) {
      const int slot = static_cast<int>(e % 2) * values;
      // The source of e - 2 has been read, and so has its target.
      if (e >= 2 && (!triggers.wait_done({0, e - 2}) ||
                     !triggers.wait_signal(1, e - 2, (port.pe() + 1) % pes)))
        return;
      double* source = memory.source.at(memory.heaps->base(port.pe())) + slot;
      for (int i = port.block(); i < values; i += blocks) source[i] = 1e6 * port.pe() + 8.0 * e + i;
      if (!triggers.trigger(TriggerGrain::kernel, {0, e}, 1) || !triggers.wait_signal(0, e, left))
        return;
      const double* target = memory.target.at(memory.heaps->base(port.pe())) + slot;
      for (int i = 0; i < values; ++i) wrong += target[i] == 1e6 * left + 8.0 * e + i ? 0 : 1;
      if (!triggers.trigger(TriggerGrain::kernel, {1, e}, 1)) return;
    }
  });
  wait_for(launch);
  CHECK(!launch.gave_up());
  const NicReport report = nics->stop();
  CHECK(report.waiting.empty() && report.faults.empty());
  CHECK_EQ(nics->firings(0).size(), std::size_t{2} * epochs);
  return wrong;
}

// Gets a value that the right neighbour has stored before the launch.
template <class Make>
void check_get(Make&& make) {
  Memory memory({2, 1, 8, 1, 1}, 8);
  const std::unique_ptr<Nics> nics = make(memory.config());
  memory.add_buffers(*nics);
  memory.source.at(memory.heaps->base(1))[3] = 42.0;
  TriggerOperation get;
  get.kind = TriggerKind::get;
  get.pe = 1;
  get.source = memory.source.offset + 3 * sizeof(double);
  get.target = memory.target.offset;
  get.bytes = sizeof(double);
  nics->post(0, get);
  double got = 0.0;
  cpu_threads::Launch launch(memory.launch(60.0), [&](ThreadPort& port) {
    if (port.pe() != 0) return;
    const TriggerBoard board = memory.board(0);
    Triggers<ThreadPort> triggers(port, board, 0);
    if (triggers.trigger({0, 0}) && triggers.wait_done({0, 0}))
      got = memory.target.at(memory.heaps->base(0))[0];
  });
  wait_for(launch);
  CHECK_EQ(got, 42.0);
}

// `actors` threads trigger one operation `each` times: its threshold is all of them.
template <class Make>
void check_no_trigger_is_lost(Make&& make, int actors, int each) {
  Memory memory({1, actors, 16, 1, 1}, 8);
  const std::unique_ptr<Nics> nics = make(memory.config());
  TriggerOperation all;
  all.threshold = static_cast<std::uint64_t>(actors) * static_cast<std::uint64_t>(each);
  nics->post(0, all);
  cpu_threads::Launch launch(memory.launch(60.0), [&](ThreadPort& port) {
    const TriggerBoard board = memory.board(0);
    Triggers<ThreadPort> triggers(port, board, 0);
    triggers.trigger(TriggerGrain::uniform_kernel, {0, 0}, each);
  });
  wait_for(launch);
  CHECK(!launch.gave_up());
  const NicReport report = nics->stop();
  CHECK(report.waiting.empty() && report.faults.empty());
  CHECK_EQ(nics->firings(0).size(), std::size_t{1});
}

}  // namespace nics_rig
