// CPU threads as NICs: the rules, payloads, nothing lost, and clear errors.
#include "cpufree/base/error.hpp"
#include "cpufree/triggered/nics/thread/nics.hpp"
#include "nics_rig.hpp"
#include "wrong_places.hpp"

using namespace cpufree;
using namespace nics_rig;

namespace {

constexpr int kLess = harness::shorter(1, 10);

std::unique_ptr<Nics> make(const NicsConfig& config) {
  return std::make_unique<nics::ThreadNics>(config);
}

// The message of what `call` throws.
template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) std::cerr << text << std::endl;
  return found;
}

struct Fixture {
  Memory memory{{2, 1, 8, 10, 2}, 8};
  std::unique_ptr<Nics> nics = make(memory.config());
  TriggerOperation put;

  Fixture() {
    memory.add_buffers(*nics);
    put.first = {7, 0};
    put.pe = 1;
    put.source = memory.source.offset;
    put.target = memory.target.offset;
    put.bytes = 8 * sizeof(double);
  }
  std::string refusal() {
    return message_of([&] { nics->post(0, put); });
  }
};

}  // namespace

TEST(thread_agrees_with_the_rules_on_every_script) { check_scripts(make, 3); }

TEST(puts_in_a_ring_deliver_every_payload) {
  CHECK_EQ(wrong_in_ring(make, 2, 1, 16, 2000 / kLess), 0);
  CHECK_EQ(wrong_in_ring(make, 3, 2, 100, 1000 / kLess), 0);
}

TEST(get_brings_what_another_pe_has) { check_get(make); }

TEST(no_trigger_of_many_threads_is_lost) { check_no_trigger_is_lost(make, 64, 3000 / kLess); }

TEST(wrong_places_are_refused_and_no_byte_outside_of_right_ones_changes) {
  wrong_places::check_wrong_places(make, 10000 / kLess, false);
}

TEST(hang_report_names_tag_epoch_and_counts) {
  Fixture f;
  f.put.threshold = 4;
  f.put.epochs = 5;
  f.nics->post(0, f.put);
  cpu_threads::Launch launch(f.memory.launch(0.5), [&](ThreadPort& port) {
    const TriggerBoard board = f.memory.board(port.pe());
    Triggers<ThreadPort> triggers(port, board, port.pe());
    if (port.pe() == 1) return;
    for (std::uint32_t k = 0; k < 15; ++k)
      if (!triggers.trigger({7, k / 4})) return;
    if (!triggers.trigger({3, 0})) return;
    triggers.wait_done({7, 3});
  });
  wait_for(launch);
  CHECK(launch.gave_up());
  CHECK(launch.records()[0].channel == Channel::trigger_done);
  const NicReport report = f.nics->stop();
  CHECK_EQ(f.nics->firings(0).size(), std::size_t{3});
  const std::string text = describe(report);
  CHECK(contains(text, "tag 7, epoch 3: 3 of 4 triggers seen, operation posted"));
  CHECK(contains(text, "tag 3, epoch 0: 1 trigger seen, operation not posted"));
}

TEST(stray_trigger_is_an_error_that_names_tag_and_count) {
  Fixture f;
  f.nics->post(0, f.put);
  cpu_threads::Launch launch(f.memory.launch(300.0), [&](ThreadPort& port) {
    const TriggerBoard board = f.memory.board(port.pe());
    Triggers<ThreadPort> triggers(port, board, port.pe());
    for (int k = 0; port.pe() == 0 && k < 3; ++k)
      if (!triggers.trigger({7, 0})) return;
  });
  wait_for(launch);
  const NicReport report = f.nics->stop();
  CHECK(report.waiting.empty());
  CHECK(contains(describe(report), "tag 7, epoch 0: 2 triggers more than the threshold"));
}

TEST(nics_end_though_operations_never_fired) {
  Fixture f;
  f.put.epochs = 1000;
  f.nics->post(0, f.put);
  const NicReport report = f.nics->stop();
  CHECK_EQ(report.waiting.size(), std::size_t{1});
  CHECK(contains(f.refusal(), "stopped"));
}

TEST(thresholds_from_two_to_the_31_are_refused) {
  Fixture f;
  f.put.threshold = std::uint64_t{1} << 31;
  CHECK(contains(f.refusal(), "threshold 2147483648 is too large"));
  f.put.threshold = 0;  // fires at once
  CHECK_EQ(f.refusal(), "nothing was thrown");
  f.nics->stop();
  CHECK_EQ(f.nics->firings(0).size(), std::size_t{1});
}

TEST(operation_posted_twice_is_refused) {
  Fixture f;
  f.nics->post(0, f.put);
  CHECK(contains(f.refusal(),
                 "tag 7, epoch 0: has been posted already; the next epoch to post is 1"));
}

TEST(source_that_overlaps_its_target_is_refused) {
  Fixture f;
  f.put.pe = 0;
  f.put.bytes = 4 * sizeof(double);
  f.put.target = f.put.source + 3 * sizeof(double);
  CHECK(contains(f.refusal(), "source and target overlap on PE 0"));
}

TEST(slots_that_run_into_another_buffer_are_refused) {
  Fixture f;
  f.put.bytes = 4 * sizeof(double);
  f.put.target_step = f.memory.target.offset - f.memory.source.offset;
  f.put.target = f.memory.source.offset;
  f.put.source = f.memory.target.offset;
  f.put.slots = 2;
  CHECK(contains(f.refusal(), "the target of slot 1 is bytes 0 to 32 of buffer 'target'"));
}

TEST(buffer_that_a_trigger_names_cannot_be_freed_until_it_fires) {
  Fixture f;
  nics::SuppliedPlaces supplied{
      {7, 0}, {TriggerFields::target, {0, f.memory.target.offset}}, {0, 64}};
  f.nics->check_supplied(0, supplied);
  f.nics->remember(0, supplied);
  const std::string text = message_of([&] { f.nics->remove_buffer("target"); });
  CHECK(contains(text, "buffer 'target' cannot be freed: a trigger of tag 7, epoch 0 names it"));
  CHECK_EQ(message_of([&] { f.nics->remove_buffer("source"); }), "nothing was thrown");
}

TEST(what_triggers_have_named_is_forgotten_once_it_is_over_and_not_before) {
  Fixture f;
  f.put.open = TriggerFields::target;
  f.put.epochs = 3000;
  f.nics->post(0, f.put);
  HostPort port(f.memory.heaps->bases(), {0, 2, 0, 1}, std::chrono::seconds(300));
  const TriggerBoard board = f.memory.board(0);
  Triggers<HostPort> triggers(port, board, 0);
  const TriggerFields fields{TriggerFields::target, {0, f.memory.target.offset}};
  for (std::uint32_t k = 0; k < 3000; ++k) {
    f.nics->remember(0, {{7, k}, fields, {0, 64}});
    if (k < 2999) triggers.trigger({7, k}, fields);
  }
  CHECK(triggers.wait_done({7, 2998}));
  CHECK(contains(message_of([&] { f.nics->remove_buffer("target"); }), "tag 7, epoch 2999"));
  triggers.trigger({7, 2999}, fields);
  CHECK(triggers.wait_done({7, 2999}));
  CHECK_EQ(message_of([&] { f.nics->remove_buffer("target"); }), "nothing was thrown");
  CHECK(f.nics->stop().faults.empty());
}

TEST(post_that_does_not_fit_what_a_trigger_has_supplied_is_refused) {
  Fixture f;
  f.nics->remember(0, {{7, 0}, {TriggerFields::target, {0, f.memory.target.offset + 8}}, {0, 56}});
  f.put.open = TriggerFields::target;
  CHECK(contains(f.refusal(),
                 "tag 7, epoch 0: a trigger names as its target bytes 8 to 64 of buffer 'target', "
                 "which has 64, and the operation moves 64"));
}

TEST(more_buffers_than_a_nic_knows_are_refused) {
  Memory memory({1, 1, 8, 1, 1}, 256);
  const std::unique_ptr<Nics> nics = make(memory.config());
  for (std::uint32_t k = 0; k < kTriggerBuffers; ++k)
    nics->add_buffer("b" + std::to_string(k), memory.source.offset + k, 1);
  const std::string text =
      message_of([&] { nics->add_buffer("more", memory.source.offset + kTriggerBuffers, 1); });
  CHECK(contains(text, "buffer 'more' is one too many: a NIC knows 1024 at a time"));
  nics->remove_buffer("b7");
  nics->add_buffer("more", memory.source.offset + kTriggerBuffers, 1);
}

TEST(buffers_that_overlap_are_refused) {
  Fixture f;
  const std::string text =
      message_of([&] { f.nics->add_buffer("other", f.memory.source.offset + 8, 8); });
  CHECK(contains(text, "overlaps buffer 'source'"));
}

TEST(freed_buffer_is_refused_in_a_post) {
  Fixture f;
  f.nics->remove_buffer("target");
  CHECK(contains(f.refusal(), "lies in no registered buffer: it was freed, or never registered"));
}

TEST(buffer_of_an_operation_that_has_not_fired_cannot_be_freed) {
  Fixture f;
  f.put.epochs = 3;
  f.nics->post(0, f.put);
  const std::string text = message_of([&] { f.nics->remove_buffer("target"); });
  CHECK(contains(text, "buffer 'target' cannot be freed: tag 7, epoch 0 names it"));
  CHECK(contains(message_of([&] { f.nics->remove_buffer("nothing"); }), "there is no buffer"));
}

TEST(signals_and_pes_that_do_not_exist_are_refused) {
  Fixture f;
  f.put.signal = 2;
  CHECK(contains(f.refusal(), "there is no signal 2"));
  f.put.signal = 0;
  f.put.pe = 2;
  CHECK(contains(f.refusal(), "there is no PE 2"));
}
