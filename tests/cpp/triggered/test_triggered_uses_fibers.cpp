// What triggered operations are used for, under random schedules and weak memory: the scripts of
// the rules, dynamic triggers, two-sided messages, queues, gets.
#include "harness.hpp"
#include "trigger_rig.hpp"
#include "trigger_scripts.hpp"

using namespace cpufree;
using namespace trigger_rig;

namespace {

std::uint64_t schedules() { return static_cast<std::uint64_t>(harness::schedules(60, 1000)); }
constexpr int kValues = 5;
constexpr std::uint32_t kRounds = 4;

double payload(int round, int k) { return 100.0 * (round + 1) + k; }

void write(WeakPort& port, double* to, int round) {
  for (int k = 0; k < kValues; ++k) port.put(to + k, port.pe(), payload(round, k));
}
int wrong_values(WeakPort& port, const double* from, int round) {
  int wrong = 0;
  for (int k = 0; k < kValues; ++k) wrong += port.read(from + k) == payload(round, k) ? 0 : 1;
  return wrong;
}

// Two PEs of one block, with a source and targets, that send five values a round.
struct Pair {
  Symmetric<double> source, target;
  Rig rig;
  std::int64_t wrong = 0;
  int received = 0;

  explicit Pair(int depth = 8)
      : rig({2, 1, depth, 2, 2}, [this](SymmetricLayout& layout) {
          source = layout.reserve<double>(2 * kValues);
          target = layout.reserve<double>(kRounds * kValues);
        }) {}

  TriggerOperation put() const {
    TriggerOperation o;
    o.first = {0, 0};
    o.epochs = kRounds;
    o.pe = 1;
    o.source = source.offset;
    o.target = target.offset;
    o.bytes = kValues * sizeof(double);
    o.signal = 0;
    return o;
  }
  // Posts `operation` on PE `pe`; runs `first` on PE 0 and `second` on PE 1. Schedules that went
  // wrong, or received another number of rounds than all.
  template <class A, class B>
  int bad_schedules(int pe, const TriggerOperation& operation, A&& first, B&& second,
                    Dropped dropped = {}) {
    int bad = 0;
    for (std::uint64_t seed = 0; seed < schedules(); ++seed) {
      wrong = received = 0;
      const bool ended = rig.run(
          seed,
          [&](auto& host, int me) {
            host.show_buffer(0, target.offset, kRounds * kValues * sizeof(double));
            if (me == pe) host.post(operation);
          },
          [&](WeakPort& port, const TriggerBoard& board) {
            port.pe() == 0 ? first(port, board) : second(port, board);
          },
          dropped);
      bad += ended && wrong == 0 && received == static_cast<int>(kRounds) ? 0 : 1;
    }
    return bad;
  }
};

}  // namespace

TEST(nic_agrees_with_the_rules_on_every_script) {
  int scripts = 0;
  for (const auto& script : trigger_scripts::all()) {
    ++scripts;
    std::vector<trigger_scripts::rules::TriggerStep> posts;
    std::vector<std::vector<trigger_scripts::rules::TriggerStep>> actors;
    for (const auto& actor : script.actors) {
      if (!actor.front().posts) actors.push_back(actor);
      if (actor.front().posts) posts.insert(posts.end(), actor.begin(), actor.end());
    }
    Rig rig({2, static_cast<int>(actors.size()), 4, 20, 1}, [](SymmetricLayout&) {});
    std::int64_t wrong = 0;
    for (std::uint64_t seed = 0; seed < schedules() / 3; ++seed) {
      const bool ended = rig.run(
          seed,
          [&](auto& host, int pe) {
            for (const auto& step : posts)
              if (pe == 0 && !host.post(trigger_scripts::operation_of(step.post))) return;
          },
          [&](WeakPort& port, const TriggerBoard& board) {
            Triggers<WeakPort> triggers(port, board, port.pe());
            if (port.pe() == 0)
              for (const auto& step : actors[static_cast<std::size_t>(port.block())])
                if (!triggers.trigger(trigger_scripts::tag_of(step.tag),
                                      trigger_scripts::fields_of(step.fields)))
                  return;
            // The NIC looks at posts before it looks at rings, but sees only what has come: the
            // kernel ends once all posts are in.
            if (wait_flag(port, board.posts_taken, port.pe() == 0 ? posts.size() : 0,
                          {Channel::trigger_room, 0, 0}))
              end_all(port, board, triggers);
          });
      trigger_scripts::rules::TriggerOutcome outcome;
      for (const Fired& fired : rig.movers[0].firings)
        outcome.fired.push_back(
            {trigger_scripts::tag_of(fired.tag), trigger_scripts::fields_of(fired.fields)});
      for (int k = 0; k < rig.tables[0]->fault_count(); ++k)
        trigger_scripts::add(outcome, rig.tables[0]->fault(k));
      for (const TriggerEntry& entry : rig.waiting(0)) trigger_scripts::add(outcome, entry);
      outcome.sort();
      wrong += ended && outcome == script.expected ? 0 : 1;
    }
    if (!CHECK_EQ(wrong, 0)) std::cerr << "script " << script.name << std::endl;
  }
  CHECK_EQ(scripts, 22);
}

TEST(dynamic_trigger_chooses_where_a_put_goes) {
  Pair pair;
  TriggerOperation put = pair.put();
  put.open = TriggerFields::target;
  const int bad = pair.bad_schedules(
      0, put,
      [&](WeakPort& port, const TriggerBoard& board) {
        Triggers<WeakPort> triggers(port, board, 0);
        bool good = true;
        for (std::uint32_t r = 0; good && r < kRounds; ++r) {
          write(port, pair.rig.mine(pair.source, 0), static_cast<int>(r));
          TriggerFields fields;  // backwards
          fields.given = TriggerFields::target;
          fields.value[1] = pair.target.offset + (kRounds - 1 - r) * kValues * sizeof(double);
          good = triggers.trigger({0, r}, fields) && triggers.wait_done({0, r});
        }
        if (good) end_all(port, board, triggers);
      },
      [&](WeakPort& port, const TriggerBoard& board) {
        Triggers<WeakPort> triggers(port, board, 1);
        for (std::uint32_t r = 0; r < kRounds; ++r) {
          if (!triggers.wait_signal(0, r, 0)) return;
          const double* from = pair.rig.mine(pair.target, 1) + (kRounds - 1 - r) * kValues;
          pair.wrong += wrong_values(port, from, static_cast<int>(r));
          ++pair.received;
        }
        end_all(port, board, triggers);
      });
  CHECK_EQ(bad, 0);
}

// Two-sided: a message is sent when both have called. The receiver supplies the place.
TEST(send_and_receive_meet_in_the_senders_nic) {
  Pair pair;
  TriggerOperation message = pair.put();
  message.threshold = 2;
  message.open = TriggerFields::target;
  const int bad = pair.bad_schedules(
      0, message,
      [&](WeakPort& port, const TriggerBoard& board) {  // sends
        Triggers<WeakPort> triggers(port, board, 0);
        bool good = true;
        for (std::uint32_t r = 0; good && r < kRounds; ++r) {
          write(port, pair.rig.mine(pair.source, 0), static_cast<int>(r));
          good = triggers.trigger({0, r}) && triggers.wait_done({0, r});
        }
        if (good) end_all(port, board, triggers);
      },
      [&](WeakPort& port, const TriggerBoard& board) {  // receives, into one buffer
        Triggers<WeakPort> there(port, board, 0);
        TriggerFields fields;
        fields.given = TriggerFields::target;
        fields.value[1] = pair.target.offset;
        for (std::uint32_t r = 0; r < kRounds; ++r) {
          if (!there.trigger({0, r}, fields) || !there.wait_signal(0, r, 0)) return;
          pair.wrong += wrong_values(port, pair.rig.mine(pair.target, 1), static_cast<int>(r));
          ++pair.received;
        }
        end_all(port, board, {there.sent(), 0});
      });
  CHECK_EQ(bad, 0);
}

TEST(queue_tells_the_target_which_operation_has_arrived) {
  Pair pair(2);
  TriggerOperation put = pair.put();
  put.reports = 1;
  put.target_step = kValues * sizeof(double);
  put.slots = kRounds;
  put.signal = -1;
  const int bad = pair.bad_schedules(
      0, put,
      [&](WeakPort& port, const TriggerBoard& board) {
        Triggers<WeakPort> triggers(port, board, 0);
        bool good = true;
        for (std::uint32_t r = 0; good && r < kRounds; ++r) {
          write(port, pair.rig.mine(pair.source, 0), static_cast<int>(r));
          good = triggers.trigger({0, r}) && triggers.wait_done({0, r});
        }
        if (good) end_all(port, board, triggers);
      },
      [&](WeakPort& port, const TriggerBoard& board) {
        TriggerQueue<WeakPort> queue(port, board, 0);
        for (std::uint32_t r = 0; r < kRounds; ++r) {
          TriggerTag tag;
          if (!queue.next(tag)) return;
          pair.wrong += tag == TriggerTag{0, r} ? 0 : 1;
          const double* from = pair.rig.mine(pair.target, 1) + r * kValues;
          pair.wrong += wrong_values(port, from, static_cast<int>(r));
          ++pair.received;
        }
        end_all(port, board, {0, 0});
      });
  // A source step of zero: one source buffer for all rounds.
  CHECK_EQ(bad, 0);
}

namespace {

// PE 1 gets what PE 0 has told it of by a signal.
int bad_gets(Dropped dropped) {
  Pair pair;
  TriggerOperation get = pair.put();
  get.kind = TriggerKind::get;
  get.pe = 0;
  get.slots = 2;
  get.source_step = kValues * sizeof(double);
  get.target_step = kValues * sizeof(double);
  get.signal = 1;  // on PE 0: its values have been read
  return pair.bad_schedules(
      1, get,
      [&](WeakPort& port, const TriggerBoard& board) {
        Triggers<WeakPort> triggers(port, board, 0);
        for (std::uint32_t r = 0; r < kRounds; ++r) {
          if (r >= 2 && !triggers.wait_signal(1, r - 2, 1)) return;
          write(port, pair.rig.mine(pair.source, 0) + (r % 2) * kValues, static_cast<int>(r));
          port.publish(Scope::system);
          port.put_flag(board.signals, 1, r + 1);
        }
        end_all(port, board, triggers);
      },
      [&](WeakPort& port, const TriggerBoard& board) {
        Triggers<WeakPort> triggers(port, board, 1);
        bool good = true;
        for (std::uint32_t r = 0; good && r < kRounds; ++r) {
          good = triggers.wait_signal(0, r, 0) && triggers.trigger({0, r}) &&
                 triggers.wait_done({0, r});
          const double* here = pair.rig.mine(pair.target, 1) + (r % 2) * kValues;
          pair.wrong += good ? wrong_values(port, here, static_cast<int>(r)) : 0;
          pair.received += good ? 1 : 0;
        }
        if (good) end_all(port, board, triggers);
      },
      dropped);
}

}  // namespace

TEST(get_fills_a_buffer_before_it_is_done) { CHECK_EQ(bad_gets({}), 0); }

TEST(without_acquire_after_completion_a_get_delivers_wrong_values) {
  CHECK(bad_gets({Role::kernel, Fence::acquire}) > 0);
}

TEST(without_release_before_completion_a_get_delivers_wrong_values) {
  CHECK(bad_gets({Role::nic, Fence::publish}) > 0);
}

TEST(operation_that_lacks_a_trigger_is_a_hang_that_names_it) {
  Pair pair;
  TriggerOperation put = pair.put();
  put.threshold = 4;
  const bool ended = pair.rig.run(
      1, [&](auto& host, int pe) { pe == 0 ? host.post(put) : true; },
      [&](WeakPort& port, const TriggerBoard& board) {
        Triggers<WeakPort> triggers(port, board, 0);
        for (int k = 0; port.pe() == 0 && k < 3; ++k)
          if (!triggers.trigger({0, 0})) return;
        if (triggers.wait_signal(0, 0, 0)) end_all(port, board, triggers);
      });
  CHECK(!ended);
  CHECK_EQ(pair.rig.waiting(0).size(), std::size_t{1});
  CHECK_EQ(pair.rig.waiting(0)[0].counter, std::uint64_t{3});
  CHECK_EQ(pair.rig.waiting(0)[0].operation.threshold, std::uint64_t{4});
}

TEST(killed_kernel_leaves_its_nic_within_the_bound) {
  Pair pair;
  const bool ended = pair.rig.run(
      1, [](auto&, int) {},
      [&](WeakPort& port, const TriggerBoard& board) {
        if (port.pe() == 0) return;  // without saying so
        Triggers<WeakPort> triggers(port, board, 1);
        if (triggers.wait_signal(0, 0, 0)) end_all(port, board, triggers);
      });
  CHECK(!ended);
  CHECK(pair.rig.records[3].state == BlockState::expired);
  CHECK(pair.rig.records[3].channel == Channel::trigger_signal);
}
