// Scripts of posts and triggers, as text, and what has to come of them, in whatever order the
// actors take their turns. Each back end of triggered operations replays the same scripts. A line
// each:
//
//   script NAME
//   ACTOR post OPERATION.EPOCH THRESHOLD [epochs=N] [open=source,target,pe]
//   ACTOR trigger OPERATION.EPOCH [source=N] [target=N] [pe=N]
//   expect fires OPERATION.EPOCH [source=N] [target=N] [pe=N]
//   expect refuses OPERATION.EPOCH
//   expect strays OPERATION.EPOCH COUNT
//   expect waits OPERATION.EPOCH COUNT
//
// The lines of one actor take place in their order. '#' begins a comment. What is not expected must
// not happen.
#pragma once

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cpufree/reference/trigger_rules.hpp"

namespace cpufree::reference {

struct TriggerStep {
  bool posts = false;
  TriggerPost post;      // where it posts
  TriggerTag tag;        // where it triggers
  TriggerFields fields;  // the same
};

// What has come of a script. Firings are sorted: only epochs of one operation have an order.
struct TriggerOutcome {
  std::vector<TriggerFiring> fired;
  std::vector<TriggerTag> refused;
  std::map<TriggerTag, std::uint64_t> strays;
  std::map<TriggerTag, std::uint64_t> waiting;  // triggers counted by entries that have not fired
  bool operator==(const TriggerOutcome&) const = default;

  void sort() {
    std::ranges::sort(fired, {}, &TriggerFiring::tag);
    std::ranges::sort(refused);
  }
};

struct TriggerScript {
  std::string name;
  std::vector<std::vector<TriggerStep>> actors;
  TriggerOutcome expected;
};

inline TriggerOutcome outcome_of(const TriggerRules& rules) {
  TriggerOutcome outcome{rules.fired(), rules.refused(), rules.strays(), {}};
  for (const auto& [tag, entry] : rules.waiting()) outcome.waiting[tag] = entry.counter;
  outcome.sort();
  return outcome;
}

class TriggerScriptReader {
 public:
  static std::vector<TriggerScript> read(std::string_view text) {
    TriggerScriptReader reader;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) reader.line(line);
    for (TriggerScript& script : reader.scripts_) script.expected.sort();
    return reader.scripts_;
  }

 private:
  void line(const std::string& text) {
    ++number_;
    std::istringstream words(text.substr(0, text.find('#')));
    std::string actor, verb, tag;
    if (!(words >> actor)) return;
    require(static_cast<bool>(words >> verb), where() + "a verb is missing");
    if (actor == "script") return begin(verb);
    require(!scripts_.empty(), where() + "'script NAME' must come first");
    require(static_cast<bool>(words >> tag), where() + "a tag is missing");
    if (actor == "expect")
      expect(verb, read_tag(tag), words);
    else
      steps_of(actor).push_back(step(verb, read_tag(tag), words));
  }

  void begin(const std::string& name) {
    scripts_.push_back({name, {}, {}});
    actors_.clear();
  }

  std::vector<TriggerStep>& steps_of(const std::string& actor) {
    auto& actors = scripts_.back().actors;
    const auto [found, fresh] = actors_.try_emplace(actor, actors.size());
    if (fresh) actors.emplace_back();
    return actors[found->second];
  }

  TriggerStep step(const std::string& verb, TriggerTag tag, std::istream& words) {
    TriggerStep step;
    step.posts = verb == "post";
    require(step.posts || verb == "trigger", where() + "there is no verb '" + verb + "'");
    step.tag = tag;
    if (!step.posts) {
      step.fields = fields(words);
      return step;
    }
    step.post.first = tag;
    step.post.threshold = count(words);
    for (std::string word; words >> word;) {
      const std::string key = word.substr(0, word.find('=') + 1);
      const std::string value = word.substr(key.size());
      require(key == "epochs=" || key == "open=", where() + "there is no option '" + word + "'");
      if (key == "epochs=") step.post.epochs = static_cast<std::uint32_t>(std::stoul(value));
      if (key != "open=") continue;
      std::istringstream names(value);
      for (std::string name; std::getline(names, name, ',');) step.post.open |= bit(name);
    }
    return step;
  }

  void expect(const std::string& verb, TriggerTag tag, std::istream& words) {
    TriggerOutcome& expected = scripts_.back().expected;
    if (verb == "fires") {
      expected.fired.push_back({tag, fields(words)});
    } else if (verb == "refuses") {
      expected.refused.push_back(tag);
    } else {
      require(verb == "strays" || verb == "waits", where() + "nothing '" + verb + "'");
      (verb == "strays" ? expected.strays : expected.waiting)[tag] = count(words);
    }
  }

  TriggerFields fields(std::istream& words) const {
    TriggerFields out;
    for (std::string word; words >> word;) {
      const auto at = word.find('=');
      require(at != std::string::npos, where() + "'" + word + "' is not FIELD=NUMBER");
      const unsigned mask = bit(word.substr(0, at));
      out.given |= mask;
      for (std::size_t k = 0; k < kTriggerFields; ++k)
        if (mask == 1U << k) out.value[k] = std::stoull(word.substr(at + 1));
    }
    return out;
  }

  unsigned bit(const std::string& name) const {
    if (name == "source") return trigger_bit(TriggerField::source);
    if (name == "target") return trigger_bit(TriggerField::target);
    require(name == "pe", where() + "there is no field '" + name + "'");
    return trigger_bit(TriggerField::pe);
  }

  TriggerTag read_tag(const std::string& word) const {
    const auto dot = word.find('.');
    require(dot != std::string::npos, where() + "'" + word + "' is not OPERATION.EPOCH");
    return {static_cast<std::uint32_t>(std::stoul(word.substr(0, dot))),
            static_cast<std::uint32_t>(std::stoul(word.substr(dot + 1)))};
  }

  std::uint64_t count(std::istream& words) const {
    std::uint64_t value = 0;
    require(static_cast<bool>(words >> value), where() + "a number is missing");
    return value;
  }

  std::string where() const { return "line " + std::to_string(number_) + " of the scripts: "; }

  std::vector<TriggerScript> scripts_;
  std::map<std::string, std::size_t> actors_;
  int number_ = 0;
};

// Calls run(steps) for each order in which the actors can take their turns. Returns how many.
template <class F>
std::int64_t for_each_order(const TriggerScript& script, F&& run) {
  std::vector<std::size_t> next(script.actors.size(), 0);
  std::vector<TriggerStep> steps;
  std::int64_t orders = 0;
  const auto go_on = [&](auto& self) -> void {
    bool ended = true;
    for (std::size_t a = 0; a < script.actors.size(); ++a) {
      if (next[a] == script.actors[a].size()) continue;
      ended = false;
      steps.push_back(script.actors[a][next[a]++]);
      self(self);
      --next[a];
      steps.pop_back();
    }
    if (!ended) return;
    ++orders;
    run(steps);
  };
  go_on(go_on);
  return orders;
}

// Takes the steps one after the other. `B` has post(TriggerPost) and trigger(TriggerTag, fields).
template <class B>
void take_steps(B& back_end, const std::vector<TriggerStep>& steps) {
  for (const TriggerStep& step : steps)
    step.posts ? back_end.post(step.post) : back_end.trigger(step.tag, step.fields);
}

}  // namespace cpufree::reference
