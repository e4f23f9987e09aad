// The event engine, on programs small enough to be timed by hand.
#include <cstdint>
#include <string>
#include <vector>

#include "cpufree/simulate/engine.hpp"
#include "harness.hpp"

namespace {

using namespace cpufree::simulate;

// A program in the making: operations and edges one by one.
struct Program {
  std::vector<std::int32_t> resource, from, to, operand, nic, threshold;
  std::vector<Picoseconds> busy, latency;
  std::vector<std::uint8_t> edge, role;
  std::int64_t rounds = 1, entries = 0;
  Picoseconds spill = 0;

  std::int32_t add(Picoseconds time, std::int32_t on = kNone, Picoseconds later = 0) {
    resource.push_back(on);
    busy.push_back(time);
    latency.push_back(later);
    role.push_back(0);
    operand.push_back(kNone);
    nic.push_back(kNone);
    threshold.push_back(0);
    return static_cast<std::int32_t>(busy.size()) - 1;
  }
  std::int32_t add(Role what, std::int32_t put, std::int32_t least = 0, Picoseconds time = 1,
                   std::int32_t on = kNone) {
    const std::int32_t i = add(time, on);
    role.back() = static_cast<std::uint8_t>(what);
    operand.back() = put;
    nic.back() = 0;
    threshold.back() = least;
    return i;
  }
  void after(std::int32_t first, std::int32_t second, int bits = 0) {
    from.push_back(first);
    to.push_back(second);
    edge.push_back(static_cast<std::uint8_t>(bits));
  }
  Graph graph() const {
    return {resource, busy, latency,   from,   to,      edge, role,
            operand,  nic,  threshold, rounds, entries, spill};
  }
  Run done() const { return run(graph(), true); }
};

TEST(an_operation_begins_when_the_last_that_it_waits_for_has_ended) {
  Program p;
  const auto a = p.add(5), b = p.add(7), c = p.add(2);
  p.after(a, c);
  p.after(b, c);
  const Run found = p.done();
  CHECK_EQ(found.start[2], 7);
  CHECK_EQ(found.end, 9);
  CHECK_EQ(found.cause[2], 1);
}

TEST(a_resource_serves_first_come_first_served) {
  Program p;
  const auto early = p.add(1), late = p.add(2);
  // Numbered against the order in which they come.
  const auto second = p.add(10, 0), first = p.add(10, 0);
  p.after(late, second);
  p.after(early, first);
  const Run found = p.done();
  CHECK_EQ(found.start[3], 1);
  CHECK_EQ(found.start[2], 11);
  CHECK_EQ(found.cause[2], first);
}

TEST(an_edge_from_the_start_lets_a_message_cut_through) {
  Program p;
  const auto out = p.add(100, 0, 30), in = p.add(100, 1);
  p.after(out, in, kFromStart);
  CHECK_EQ(p.done().end, 130);
}

TEST(messages_to_one_receiver_queue_at_its_link) {
  Program p;
  const auto a = p.add(100, 0, 30), b = p.add(100, 1, 30);
  const auto x = p.add(100, 2), y = p.add(100, 2);
  p.after(a, x, kFromStart);
  p.after(b, y, kFromStart);
  CHECK_EQ(p.done().end, 230);
}

TEST(rounds_follow_one_another_where_edges_say_so_and_overlap_elsewhere) {
  Program p;
  p.rounds = 3;
  const auto a = p.add(5), b = p.add(20);
  p.after(a, a, kNextRound);
  p.after(a, b);
  const Run found = p.done();
  CHECK_EQ(found.round_end[0], 25);
  CHECK_EQ(found.round_end[2], 35);
  CHECK_EQ(found.operations, 6);
}

TEST(a_triggered_operation_starts_at_the_later_of_its_post_and_its_last_trigger) {
  for (const Picoseconds post : {1, 50}) {
    Program p;
    const auto put = p.add(10);
    p.add(Role::post, put, 2, post);
    p.add(Role::trigger, put, 0, 20);
    p.add(Role::trigger, put, 0, 30);
    CHECK_EQ(p.done().start[0], std::max<Picoseconds>(post, 30));
  }
}

TEST(an_operation_is_triggered_anew_in_every_round) {
  Program p;
  p.rounds = 4;
  const auto put = p.add(10);
  const auto post = p.add(Role::post, put, 1, 1), trigger = p.add(Role::trigger, put, 0, 5);
  p.after(put, trigger, kNextRound);
  p.after(put, post, kNextRound);
  CHECK_EQ(p.done().end, 60);
}

TEST(the_entry_beyond_the_table_costs_a_spill) {
  for (const int puts : {16, 17}) {
    Program p;
    p.entries = 16;
    p.spill = 1000;
    for (int k = 0; k < puts; ++k) {
      const auto put = p.add(1);
      p.add(Role::post, put, 1, 1);
      p.add(Role::trigger, put, 0, 50);
    }
    const Run found = p.done();
    CHECK_EQ(found.spilled, puts == 16 ? 0 : 2);  // its post and its trigger
    CHECK_EQ(found.end, puts == 16 ? 51 : 1051);
    CHECK_EQ(found.most_entries, 16);  // those in the table; the other comes later
  }
}

WaitChain waits_of(const Program& program) {
  try {
    program.done();
  } catch (const Deadlock& e) {
    return e.waits();
  }
  return {};
}

TEST(a_circle_is_reported_as_who_waits_for_whom) {
  Program p;
  const auto a = p.add(1), b = p.add(1), c = p.add(1);
  p.after(a, b);
  p.after(b, c);
  p.after(c, b);
  const WaitChain found = waits_of(p);
  CHECK_EQ(found.back_to, 0);
  CHECK_EQ(found.chain.size(), 2u);
  CHECK(found.chain[0] == (Instance{0, b}) && found.chain[1] == (Instance{0, c}));
}

TEST(a_put_whose_triggers_do_not_suffice_is_reported_with_its_count) {
  Program p;
  const auto put = p.add(1), last = p.add(1);
  p.add(Role::post, put, 3, 1);
  p.add(Role::trigger, put, 0, 1);
  p.after(put, last);
  const WaitChain found = waits_of(p);
  CHECK_EQ(found.back_to, -1);
  CHECK(found.chain.back() == (Instance{0, put}));
  CHECK_EQ(found.card, std::string("posted, and triggered 1 of 3 times"));
}

bool refused(const Program& program, const std::string& words) {
  try {
    program.done();
  } catch (const cpufree::InvalidInput& e) {
    return std::string(e.what()).find(words) != std::string::npos;
  }
  return false;
}

TEST(what_is_no_graph_is_refused_with_the_place) {
  Program negative;
  negative.add(1);
  negative.add(-1);
  CHECK(refused(negative, "operation 1"));
  Program edge;
  edge.after(edge.add(1), 7);
  CHECK(refused(edge, "edge 0"));
  Program posted_twice;
  const auto put = posted_twice.add(1);
  posted_twice.add(Role::post, put, 1, 1);
  posted_twice.add(Role::post, put, 1, 2);
  CHECK(refused(posted_twice, "posted once and in order"));
}

}  // namespace
