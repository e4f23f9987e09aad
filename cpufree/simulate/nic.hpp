// A network card's table of triggered operations: the reference's rules, and how many entries it
// holds at once.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "cpufree/reference/trigger_rules.hpp"

namespace cpufree::simulate {

class Nic {
 public:
  using Tag = reference::TriggerTag;

  // Whether the tag's entry is, or has to be, in the list in memory behind a full table of
  // `entries` (0: never full).
  bool spills(Tag tag, std::int64_t entries) {
    if (entries == 0) return false;
    if (spilled_.contains(tag)) return true;
    const auto& waiting = rules_.waiting();
    if (waiting.contains(tag)) return false;
    if (static_cast<std::int64_t>(waiting.size() - spilled_.size()) < entries) return false;
    spilled_.insert(tag);
    return true;
  }

  void post(Tag tag, std::int64_t threshold) {
    rules_.post({.first = tag, .threshold = static_cast<std::uint64_t>(threshold)});
  }
  void trigger(Tag tag) { rules_.trigger(tag); }

  // Calls `start` with the tag of each operation that has fired since the last call.
  template <class Start>
  void take_fired(Start&& start) {
    for (; taken_ < rules_.fired().size(); ++taken_) {
      const Tag tag = rules_.fired()[taken_].tag;
      spilled_.erase(tag);
      start(tag);
    }
  }

  std::int64_t entries() const { return static_cast<std::int64_t>(rules_.waiting().size()); }

  // What an operation that has not fired has, and lacks.
  std::string state(Tag tag) const {
    const auto found = rules_.waiting().find(tag);
    if (found == rules_.waiting().end()) return "neither posted nor triggered";
    const auto& entry = found->second;
    const std::string count = std::to_string(entry.counter);
    if (!entry.posted) return "triggered " + count + " times, but not posted";
    return "posted, and triggered " + count + " of " + std::to_string(entry.post.threshold) +
           " times";
  }

 private:
  reference::TriggerRules rules_;
  std::set<Tag> spilled_;
  std::size_t taken_ = 0;
};

}  // namespace cpufree::simulate
