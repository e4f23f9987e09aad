// A graph of the simulator, run by SimGrid: an actor for each operation, links that share their
// bandwidth fairly (max-min) where the own engine queues messages.
//
// Usage: cpufree_simgrid GRAPH. The graph is text: how many operations and edges; of each operation
// its resource or -1, what it is (0: takes time; 1: a message; 2: its arrival), busy and latency in
// picoseconds; of each edge from, to and bits, as in cpufree/simulate/graph.hpp. Prints the time at
// which each operation has ended, in picoseconds.

#include <simgrid/s4u.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// After s4u.hpp, without which it does not compile.
#include <simgrid/version.h>

namespace sg4 = simgrid::s4u;

namespace {

constexpr double kPicosecond = 1e-12;
// Bytes are picoseconds of a port: a message that keeps its port for t ps has t bytes.
constexpr double kBytesPerSecond = 1e12;

struct Edge {
  int to;
  bool from_start;
};

struct Operation {
  int resource = -1, what = 0;
  double busy = 0, latency = 0;
  std::vector<Edge> after;
  int needs = 0;
  sg4::SemaphorePtr ready;
  double end = 0;
};

std::vector<Operation> operations;
std::map<int, sg4::MutexPtr> resources;
std::map<int, sg4::Host*> hosts;

// An operation begins when all that it waits for have released it.
void wait_for_all(Operation& one) {
  for (int k = 0; k < one.needs; ++k) one.ready->acquire();
}

void release(const Operation& one, bool from_start) {
  for (const Edge& edge : one.after)
    if (edge.from_start == from_start) operations[edge.to].ready->release();
}

void end(Operation& one) {
  one.end = sg4::Engine::get_clock();
  release(one, false);
}

void work(int i) {
  Operation& one = operations[i];
  wait_for_all(one);
  sg4::MutexPtr held;
  if (one.resource >= 0) {
    held = resources.at(one.resource);
    held->lock();
  }
  if (one.busy > 0) sg4::this_actor::sleep_for(one.busy * kPicosecond);
  if (held) held->unlock();
  end(one);
}

// The bytes are on their way `latency` after the message has begun. Its sender is free again after
// the time that its port alone would take: SimGrid does not tell when the last byte has left.
void send(int i) {
  Operation& one = operations[i];
  wait_for_all(one);
  const sg4::ActorPtr sender = sg4::Actor::create("sent", sg4::this_actor::get_host(), [i] {
    sg4::this_actor::sleep_for(operations[i].busy * kPicosecond);
    end(operations[i]);
  });
  int last = i;
  for (const Edge& edge : one.after)
    if (edge.from_start) last = edge.to;
  Operation& arrival = operations[last];
  if (one.latency > 0) sg4::this_actor::sleep_for(one.latency * kPicosecond);
  sg4::Comm::sendto(hosts.at(one.resource), hosts.at(arrival.resource),
                    static_cast<std::uint64_t>(std::llround(arrival.busy)));
  sender->join();
  arrival.ready->release();
}

void arrive(int i) {
  Operation& one = operations[i];
  one.ready->acquire();
  end(one);
}

void read(const char* path) {
  std::ifstream file(path);
  int count = 0, edges = 0;
  file >> count >> edges;
  operations.resize(count);
  for (Operation& one : operations) {
    file >> one.resource >> one.what >> one.busy >> one.latency;
    one.ready = sg4::Semaphore::create(0);
  }
  for (int k = 0; k < edges; ++k) {
    int from = 0, to = 0, bits = 0;
    file >> from >> to >> bits;
    operations[from].after.push_back({to, (bits & 1) != 0});
    ++operations[to].needs;
  }
  if (!file) throw std::runtime_error(std::string(path) + ": cut short");
}

// Each port of a message is a host behind a link of its own; a way is the links of both its ends.
void build() {
  sg4::NetZone* zone = sg4::create_full_zone("all");
  std::map<int, sg4::Link*> links;
  const auto port = [&](int resource) {
    if (hosts.contains(resource)) return;
    const std::string name = "port" + std::to_string(resource);
    hosts[resource] = zone->create_host(name, 1e9)->seal();
    links[resource] = zone->create_link(name + "-link", kBytesPerSecond)->set_latency(0)->seal();
  };
  hosts[-1] = zone->create_host("operations", 1e9)->seal();
  for (const Operation& one : operations) {
    if (one.what != 0)
      port(one.resource);
    else if (one.resource >= 0 && !resources.contains(one.resource))
      resources[one.resource] = sg4::Mutex::create();
  }
  std::map<std::pair<int, int>, bool> done;
  for (const Operation& one : operations) {
    if (one.what != 1) continue;
    for (const Edge& edge : one.after) {
      const int there = operations[edge.to].resource;
      if (!edge.from_start || there == one.resource || done[{one.resource, there}]) continue;
      done[{one.resource, there}] = true;
      zone->add_route(
          hosts[one.resource]->get_netpoint(), hosts[there]->get_netpoint(), nullptr, nullptr,
          {sg4::LinkInRoute(links[one.resource]), sg4::LinkInRoute(links[there])}, false);
    }
  }
  zone->seal();
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: cpufree_simgrid GRAPH\n";
    return 2;
  }
  // CM02 without cross-traffic takes latency and bandwidth as they are.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  // Times are compared to less than a nanosecond; the default is 10 microseconds.
#if SIMGRID_VERSION < 33300
  sg4::Engine::set_config("surf/precision:1e-13");
#else
  sg4::Engine::set_config("precision/timing:1e-13");
#endif
  read(argv[1]);
  build();
  for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
    const auto body = operations[i].what == 0 ? work : operations[i].what == 1 ? send : arrive;
    sg4::Actor::create(std::to_string(i), hosts.at(-1), [body, i] { body(i); });
  }
  engine.run();
  for (const Operation& one : operations)
    std::printf("%lld\n", std::llround(one.end / kPicosecond));
  return 0;
}
