// Triggered operations: the rules and nothing else (LeBeane, Hamidouche, Benton, Breternitz,
// Reinhardt, John 2017, "GPU Triggered Networking for Intra-Kernel Communications", section 3; what
// the paper leaves open is decided here). Serial, for small cases; all back ends are tested against
// these rules (trigger_script.hpp).
//
// An entry belongs to a tag, an operation's number and an epoch. It counts triggers, and fires once
// it is posted and has counted its threshold. Either may come first.
//
// - Epochs of an operation fire in order: 1 waits for 0. So a tag is retired if and only if its
//   epoch is less than the number of epochs fired, and nothing else need be remembered.
// - A post for several epochs re-arms itself: firing epoch e posts e + 1.
// - A trigger beyond the threshold is stray. Whether it comes before the post or after the firing,
//   the operation fires once and one stray trigger is counted.
// - Dynamic triggers: an operation may leave fields open. Each must be supplied by exactly one of
//   its triggers, and no other field by any; else the epoch is refused: retired without firing.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"

namespace cpufree::reference {

struct TriggerTag {
  std::uint32_t operation = 0;
  std::uint32_t epoch = 0;
  auto operator<=>(const TriggerTag&) const = default;
};

// What a dynamic trigger can supply: places in symmetric memory, and a PE.
enum class TriggerField : std::uint32_t { source, target, pe };
inline constexpr std::size_t kTriggerFields = 3;
constexpr unsigned trigger_bit(TriggerField field) { return 1U << static_cast<unsigned>(field); }

struct TriggerFields {
  unsigned given = 0;  // trigger_bit of each field supplied
  std::array<std::uint64_t, kTriggerFields> value{};
  bool operator==(const TriggerFields&) const = default;
};

struct TriggerPost {
  TriggerTag first;  // the first epoch
  std::uint64_t threshold = 1;
  std::uint32_t epochs = 1;
  unsigned open = 0;  // trigger_bit of each field left open
};

inline constexpr std::uint64_t kTriggerThresholds = std::uint64_t{1} << 31;  // all are less

struct TriggerFiring {
  TriggerTag tag;
  TriggerFields fields;
  bool operator==(const TriggerFiring&) const = default;
};

class TriggerRules {
 public:
  struct Entry {
    std::uint64_t counter = 0;
    bool posted = false;
    TriggerPost post;
    TriggerFields fields;
    bool repeated = false;  // a field was supplied twice
  };

  void post(const TriggerPost& post) {
    const TriggerTag tag = post.first;
    require(post.threshold < kTriggerThresholds && post.epochs > 0,
            "operation " + std::to_string(tag.operation) +
                ": thresholds are 0 to 2147483647, and " + "epochs at least one");
    std::uint32_t& posted = posted_[tag.operation];
    require(tag.epoch == posted,
            "operation " + std::to_string(tag.operation) + ", epoch " + std::to_string(tag.epoch) +
                ": epochs are posted once and in order; the next is " + std::to_string(posted));
    posted += post.epochs;
    arm(post);
  }

  void trigger(TriggerTag tag, const TriggerFields& fields = {}) {
    if (retired(tag)) {
      ++strays_[tag];
      return;
    }
    Entry& entry = entries_[tag];
    ++entry.counter;
    entry.repeated = entry.repeated || (entry.fields.given & fields.given) != 0U;
    for (std::size_t k = 0; k < kTriggerFields; ++k)
      if ((fields.given >> k & 1U) != 0U) entry.fields.value[k] = fields.value[k];
    entry.fields.given |= fields.given;
    check(tag);
  }

  const std::vector<TriggerFiring>& fired() const { return fired_; }
  const std::vector<TriggerTag>& refused() const { return refused_; }
  const std::map<TriggerTag, std::uint64_t>& strays() const { return strays_; }
  const std::map<TriggerTag, Entry>& waiting() const { return entries_; }

 private:
  bool retired(TriggerTag tag) { return tag.epoch < over_[tag.operation]; }

  void arm(const TriggerPost& post) {
    Entry& entry = entries_[post.first];
    entry.posted = true;
    entry.post = post;
    check(post.first);
  }

  void check(TriggerTag tag) {
    const auto found = entries_.find(tag);
    if (found == entries_.end()) return;
    const Entry entry = found->second;
    if (!entry.posted || entry.counter < entry.post.threshold) return;
    if (tag.epoch != over_[tag.operation]) return;
    entries_.erase(found);
    ++over_[tag.operation];
    if (entry.repeated || entry.fields.given != entry.post.open)
      refused_.push_back(tag);
    else
      fired_.push_back({tag, entry.fields});
    if (entry.counter > entry.post.threshold) strays_[tag] = entry.counter - entry.post.threshold;
    TriggerPost next = entry.post;
    ++next.first.epoch;
    if (--next.epochs > 0) return arm(next);
    check(next.first);  // may have been posted on its own
  }

  std::map<TriggerTag, Entry> entries_;
  std::map<std::uint32_t, std::uint32_t> posted_;  // epochs of each operation that are posted,
  std::map<std::uint32_t, std::uint32_t> over_;    // and that are retired
  std::vector<TriggerFiring> fired_;
  std::vector<TriggerTag> refused_;
  std::map<TriggerTag, std::uint64_t> strays_;
};

}  // namespace cpufree::reference
