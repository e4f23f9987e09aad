// The queues of the stand-in, and who goes on next. For its own sources.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "gpu_names.hpp"

namespace host_gpu {

struct Event {
  int device = 0;
  std::size_t recorded = 0;  // times that it was recorded, and those that have come about
  std::size_t reached = 0;
  const Graph* graph = nullptr;  // recorded in a capture: into which graph, after which nodes
  std::vector<std::size_t> after;
};

// A graph under way. Loops hold a run of their body.
struct Run {
  std::shared_ptr<Nodes> nodes;
  std::vector<char> done;
  std::map<std::size_t, std::unique_ptr<Run>> inside;
  explicit Run(std::shared_ptr<Nodes> what) : nodes(std::move(what)), done(nodes->size(), 0) {}
  bool finished() const {
    return std::ranges::all_of(done, [](char d) { return d != 0; });
  }
};

struct Stream {
  int device = 0;
  std::deque<Run> queue;
  Graph* capture = nullptr;  // what it is recorded into
  bool origin = false;
  std::vector<std::size_t> tail;  // nodes that the next one comes after
};

struct Memory {
  int device;
  std::size_t bytes;
};

struct Machine {
  std::recursive_mutex mutex;
  Settings settings;
  std::mt19937 random{1};
  std::vector<Stream*> streams;
  std::map<const void*, Memory> memory;
  std::size_t taken = 0, most_taken = 0;  // bytes of it
  std::set<int> contexts;                 // devices
  std::size_t executed = 0;
  std::size_t launches_seldom = 1;
  int stopped = -1;  // device
  std::size_t stops_at = 0;
  int broken = -1;  // device
  std::size_t breaks_at = 0;
};

Machine& machine();
using Guard = std::lock_guard<std::recursive_mutex>;
inline thread_local int current_device = 0;
inline thread_local gpuError_t last_error = gpuSuccess;
inline gpuError_t fail(gpuError_t status) { return last_error = status; }
// Launches and records name a stream, or event, of the device that is current.
inline bool here(int device) { return device == current_device; }

// What a runtime makes a context for: making a device current, memory, streams and events.
inline void need_context() {
  const Guard guard(machine().mutex);
  machine().contexts.insert(current_device);
}

// One piece of work of any stream. False: none can go on.
bool pump();
void while_asking();
void finish_all();
void enqueue(Stream* stream, std::shared_ptr<Nodes> nodes);

// The device whose memory `p` is in; -1: of none.
int lies_on(const void* p);

}  // namespace host_gpu
