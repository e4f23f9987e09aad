#include "cpufree/simulate/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "cpufree/simulate/edges.hpp"
#include "cpufree/simulate/nic.hpp"
#include "cpufree/simulate/waits.hpp"

namespace cpufree::simulate {
namespace {

// Events are taken in the order of their times. Those of an operation lie no earlier than the event
// that caused them, so time never runs back, and a resource meets its operations in the order in
// which they could begin: first come, first served.
enum Event : std::uint64_t { kBegin = 0, kEnd = 1, kEndLate = 2 };

struct Entry {
  Picoseconds time;
  std::uint64_t key;  // round, operation, Event
  bool operator>(const Entry& other) const {
    return time != other.time ? time > other.time : key > other.key;
  }
};

constexpr std::uint64_t key_of(std::int64_t round, std::int32_t operation, Event event) {
  return static_cast<std::uint64_t>(round) << 32U |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(operation)) << 2U | event;
}

class Simulation {
 public:
  Simulation(const Graph& graph, bool record)
      : graph_(graph),
        n_(graph.size()),
        after_(n_, graph.from, graph.to, graph.edge),
        record_(record) {
    count_missing();
    ready_.resize(missing_.size());
    const auto highest = [](std::span<const std::int32_t> list) {
      return list.empty() ? kNone : *std::ranges::max_element(list);
    };
    free_.resize(static_cast<std::size_t>(highest(graph.resource) + 1));
    nics_.resize(static_cast<std::size_t>(highest(graph.nic) + 1));
    run_.round_end.resize(static_cast<std::size_t>(graph.rounds));
    if (!record) return;
    run_.start.resize(missing_.size());
    run_.finish.resize(missing_.size());
    run_.cause.assign(missing_.size(), kNone);
    holder_.assign(free_.size(), kNone);
  }

  Run run() {
    // Collected first: what these enable is not to be enabled once more.
    std::vector<Instance> first;
    for (std::int64_t round = 0; round < graph_.rounds; ++round)
      for (std::int32_t i = 0; i < n_; ++i)
        if (missing_[place(round, i)] == 0) first.push_back({round, i});
    for (const Instance& one : first) enable(one.round, one.operation);
    while (!events_.empty()) {
      std::ranges::pop_heap(events_, std::greater{});
      const Entry event = events_.back();
      events_.pop_back();
      take(event);
    }
    if (run_.operations < static_cast<std::int64_t>(missing_.size())) stop();
    for (const Picoseconds end : run_.round_end) run_.end = std::max(run_.end, end);
    return std::move(run_);
  }

 private:
  std::size_t place(std::int64_t round, std::int32_t operation) const {
    return static_cast<std::size_t>(round * n_ + operation);
  }
  Role role(std::int32_t operation) const {
    return graph_.role.empty()
               ? Role::plain
               : static_cast<Role>(graph_.role[static_cast<std::size_t>(operation)]);
  }

  void count_missing() {
    std::vector<std::int32_t> same(static_cast<std::size_t>(n_)), all(same.size());
    for (std::size_t e = 0; e < graph_.to.size(); ++e) {
      const auto to = static_cast<std::size_t>(graph_.to[e]);
      ++all[to];
      if ((graph_.edge[e] & kNextRound) == 0) ++same[to];
    }
    // An operation that is posted or triggered waits for one thing more: its network card.
    std::vector<bool> triggered(same.size());
    for (std::int32_t i = 0; i < n_; ++i)
      if (role(i) != Role::plain)
        triggered[static_cast<std::size_t>(graph_.operand[static_cast<std::size_t>(i)])] = true;
    for (std::size_t i = 0; i < same.size(); ++i) {
      same[i] += triggered[i] ? 1 : 0;
      all[i] += triggered[i] ? 1 : 0;
    }
    missing_.reserve(same.size() * static_cast<std::size_t>(graph_.rounds));
    missing_ = same;
    for (std::int64_t round = 1; round < graph_.rounds; ++round)
      missing_.insert(missing_.end(), all.begin(), all.end());
  }

  void push(Picoseconds time, std::uint64_t key) {
    events_.push_back({time, key});
    std::ranges::push_heap(events_, std::greater{});
  }

  // All that the operation waited for has ended. What needs no resource is done without an event;
  // `work_` is the stack of a recursion that could be as deep as the program is long.
  void enable(std::int64_t round, std::int32_t i) {
    const bool queues =
        graph_.resource[static_cast<std::size_t>(i)] != kNone || role(i) != Role::plain;
    if (queues)
      push(ready_[place(round, i)], key_of(round, i, kBegin));
    else
      work_.push_back({round, i});
    if (working_) return;
    working_ = true;
    while (!work_.empty()) {
      const Instance next = work_.back();
      work_.pop_back();
      const std::size_t at = place(next.round, next.operation);
      const Picoseconds start = ready_[at];
      complete(next, start, start + graph_.busy[static_cast<std::size_t>(next.operation)]);
    }
    working_ = false;
  }

  void satisfy(std::int64_t round, std::int32_t i, Picoseconds time, std::int64_t cause) {
    const std::size_t at = place(round, i);
    if (time >= ready_[at]) {
      ready_[at] = time;
      if (record_) run_.cause[at] = cause;
    }
    if (--missing_[at] == 0) enable(round, i);
  }

  void complete(Instance one, Picoseconds start, Picoseconds finish) {
    const auto i = static_cast<std::size_t>(one.operation);
    const std::size_t at = place(one.round, one.operation);
    ++run_.operations;
    Picoseconds& end = run_.round_end[static_cast<std::size_t>(one.round)];
    end = std::max(end, finish);
    if (record_) {
      run_.start[at] = start;
      run_.finish[at] = finish;
    }
    for (const End& next : after_.of(one.operation)) {
      const std::int64_t round = one.round + ((next.edge & kNextRound) != 0 ? 1 : 0);
      if (round == graph_.rounds) continue;
      satisfy(round, next.operation,
              (next.edge & kFromStart) != 0 ? start + graph_.latency[i] : finish,
              static_cast<std::int64_t>(at));
    }
  }

  void take(const Entry& event) {
    const auto round = static_cast<std::int64_t>(event.key >> 32U);
    const auto i = static_cast<std::int32_t>((event.key & 0xffffffffU) >> 2U);
    if ((event.key & 3U) == kBegin)
      begin({round, i}, event.time);
    else
      end_on_nic({round, i}, event.time, (event.key & 3U) == kEndLate);
  }

  void begin(Instance one, Picoseconds time) {
    const auto i = static_cast<std::size_t>(one.operation);
    const std::size_t at = place(one.round, one.operation);
    Picoseconds start = time;
    if (const std::int32_t r = graph_.resource[i]; r != kNone) {
      const auto resource = static_cast<std::size_t>(r);
      if (record_) {
        if (free_[resource] > start) run_.cause[at] = holder_[resource];
        holder_[resource] = static_cast<std::int64_t>(at);
      }
      start = std::max(start, free_[resource]);
      free_[resource] = start + graph_.busy[i];
    }
    if (role(one.operation) == Role::plain)
      complete(one, start, start + graph_.busy[i]);
    else
      push(start + graph_.busy[i], key_of(one.round, one.operation, kEnd));
  }

  // Posts and triggers take effect when they end, in that order, as the rules want it.
  void end_on_nic(Instance one, Picoseconds time, bool late) {
    const auto i = static_cast<std::size_t>(one.operation);
    Nic& nic = nics_[static_cast<std::size_t>(graph_.nic[i])];
    const Nic::Tag tag{.operation = static_cast<std::uint32_t>(graph_.operand[i]),
                       .epoch = static_cast<std::uint32_t>(one.round)};
    if (!late && nic.spills(tag, graph_.entries)) {
      ++run_.spilled;
      if (const std::int32_t r = graph_.resource[i]; r != kNone) {
        Picoseconds& free = free_[static_cast<std::size_t>(r)];
        free = std::max(free, time) + graph_.spill;
      }
      return push(time + graph_.spill, key_of(one.round, one.operation, kEndLate));
    }
    if (role(one.operation) == Role::post)
      nic.post(tag, graph_.threshold[i]);
    else
      nic.trigger(tag);
    run_.most_entries = std::max(run_.most_entries, nic.entries());
    nic.take_fired([&](Nic::Tag fired) {
      satisfy(fired.epoch, static_cast<std::int32_t>(fired.operation), time,
              static_cast<std::int64_t>(place(one.round, one.operation)));
    });
    complete(one, time - graph_.busy[i], time);
  }

  [[noreturn]] void stop() {
    WaitChain waits = find_waits(graph_, missing_);
    const Instance last = waits.chain.back();
    if (waits.back_to < 0) waits.card = card_state(last);
    const std::string message = "operation " + std::to_string(waits.chain.front().operation) +
                                " of round " + std::to_string(waits.chain.front().round) +
                                " can never begin";
    throw Deadlock(message, std::move(waits));
  }

  std::string card_state(Instance one) const {
    for (std::size_t i = 0; i < graph_.role.size(); ++i)
      if (static_cast<Role>(graph_.role[i]) != Role::plain && graph_.operand[i] == one.operation)
        return nics_[static_cast<std::size_t>(graph_.nic[i])].state(
            {.operation = static_cast<std::uint32_t>(one.operation),
             .epoch = static_cast<std::uint32_t>(one.round)});
    return "neither posted nor triggered";
  }

  const Graph& graph_;
  std::int64_t n_;
  Edges after_;
  bool record_;
  std::vector<std::int32_t> missing_;  // by round and operation: what has not ended yet
  std::vector<Picoseconds> ready_;
  std::vector<Picoseconds> free_;     // by resource
  std::vector<std::int64_t> holder_;  // by resource: what took it last
  std::vector<Nic> nics_;
  std::vector<Entry> events_;
  std::vector<Instance> work_;
  bool working_ = false;
  Run run_;
};

}  // namespace

Run run(const Graph& graph, bool record) {
  check(graph);
  require(graph.size() < (std::int64_t{1} << 30) &&
              graph.rounds <= std::numeric_limits<std::int32_t>::max(),
          "too many operations; simulate fewer PEs or rounds");
  return Simulation(graph, record).run();
}

}  // namespace cpufree::simulate
