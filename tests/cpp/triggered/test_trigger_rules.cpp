// The rules of triggered operations: every script in every order.
#include <fstream>
#include <sstream>

#include "cpufree/reference/trigger_script.hpp"
#include "harness.hpp"

using namespace cpufree;
using namespace cpufree::reference;

namespace {

std::vector<TriggerScript> scripts() {
  std::ifstream file(CPUFREE_TRIGGER_SCRIPTS);
  std::ostringstream text;
  text << file.rdbuf();
  return TriggerScriptReader::read(text.str());
}

TriggerScript script_named(const std::string& name) {
  for (const TriggerScript& script : scripts())
    if (script.name == name) return script;
  throw InvalidInput("no script " + name);
}

}  // namespace

TEST(scripts_come_out_as_expected_in_every_order) {
  const auto all = scripts();
  CHECK_EQ(all.size(), std::size_t{22});
  for (const TriggerScript& script : all) {
    std::int64_t wrong = 0;
    const std::int64_t orders = for_each_order(script, [&](const std::vector<TriggerStep>& steps) {
      TriggerRules rules;
      take_steps(rules, steps);
      wrong += outcome_of(rules) == script.expected ? 0 : 1;
    });
    CHECK(orders > 1);
    if (!CHECK_EQ(wrong, 0)) std::cerr << "script " << script.name << std::endl;
  }
}

TEST(orders_of_seven_actors_are_all_enumerated) {
  // One step each: 7!
  const auto script = script_named("thresholds_of_two_and_three");
  CHECK_EQ(for_each_order(script, [](const auto&) {}), std::int64_t{5040});
}

TEST(epochs_of_an_operation_fire_in_order) {
  const auto script = script_named("epochs_re_arm_themselves");
  std::int64_t wrong = 0;
  for_each_order(script, [&](const std::vector<TriggerStep>& steps) {
    TriggerRules rules;
    take_steps(rules, steps);
    for (std::uint32_t e = 0; e < 3; ++e) wrong += rules.fired()[e].tag.epoch == e ? 0 : 1;
  });
  CHECK_EQ(wrong, 0);
}

TEST(nothing_fires_before_its_last_trigger_and_its_post) {
  const auto script = script_named("work_groups_share_a_tag_of_the_kernel");
  std::int64_t early = 0;
  for_each_order(script, [&](const std::vector<TriggerStep>& steps) {
    TriggerRules rules;
    take_steps(rules, {steps.begin(), steps.end() - 1});
    early += rules.fired().empty() ? 0 : 1;
  });
  CHECK_EQ(early, 0);
}

TEST(threshold_of_two_to_the_31_is_refused) {
  TriggerRules rules;
  CHECK_THROWS(InvalidInput, rules.post({{0, 0}, kTriggerThresholds, 1, 0}));
  rules.post({{0, 0}, kTriggerThresholds - 1, 1, 0});
  CHECK_EQ(rules.waiting().size(), std::size_t{1});
}

TEST(tag_posted_twice_is_refused_and_nothing_is_lost) {
  TriggerRules rules;
  rules.post({{4, 0}, 2, 2, 0});
  CHECK_THROWS(InvalidInput, rules.post({{4, 0}, 1, 1, 0}));
  rules.trigger({4, 0});
  rules.trigger({4, 0});
  CHECK_THROWS(InvalidInput, rules.post({{4, 0}, 1, 1, 0}));
  CHECK_EQ(rules.fired().size(), std::size_t{1});
  CHECK_EQ(rules.waiting().size(), std::size_t{1});
}

TEST(epochs_that_overlap_an_earlier_post_are_refused_when_posted) {
  TriggerRules rules;
  rules.post({{4, 0}, 1, 3, 0});
  CHECK_THROWS(InvalidInput, rules.post({{4, 2}, 1, 1, 0}));
  CHECK_THROWS(InvalidInput, rules.post({{4, 4}, 1, 1, 0}));
  rules.post({{4, 3}, 1, 1, 0});
  for (std::uint32_t e = 0; e < 4; ++e) rules.trigger({4, e});
  CHECK_EQ(rules.fired().size(), std::size_t{4});
}

TEST(script_with_a_mistake_names_the_line) {
  try {
    TriggerScriptReader::read("script a\nhost pots 1.0 2\n");
    CHECK(false);
  } catch (const InvalidInput& error) {
    CHECK(std::string(error.what()).find("line 2") != std::string::npos);
  }
}
