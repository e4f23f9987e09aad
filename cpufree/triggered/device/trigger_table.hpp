// The table of a NIC: which tags have been posted, and how many triggers each has counted. The
// rules are those of reference/trigger_rules.hpp. No container of the standard library: a block of
// a GPU may be the NIC.
//
// Sixteen entries are searched first, as an associative memory would be; more spill to a list
// behind them. Entries that are not posted yet and posted ones have limits of their own, so neither
// can take the other's room: a trigger for which there is none stays in its ring, a post in its
// list.
#pragma once

#include "cpufree/triggered/device/trigger_types.hpp"

namespace cpufree {

struct TriggerEntry {
  enum class State : std::uint32_t { unused, counting, posted };
  State state = State::unused;
  TriggerTag tag;
  std::uint64_t counter = 0;
  TriggerFields fields;
  std::uint32_t repeated = 0;  // fields were supplied twice
  TriggerOperation operation;  // where posted; `first` and `epochs` are those that are left
};

// Triggers of a tag that were too many, or a tag that was refused, and why.
struct TriggerFault {
  enum class Kind : std::uint32_t {
    none,
    stray,
    unknown,
    fields,   // those supplied are not those left open
    no_pe,    // `place` is the PE
    source,   // `bytes` from `place` on lie in no buffer
    target,   // the same
    overlap,  // the target, which lies at `place`, overlaps the source
  };
  Kind kind = Kind::none;
  TriggerTag tag;
  std::uint64_t count = 0;
  std::uint64_t place = 0;
  std::uint64_t bytes = 0;

  CPUFREE_FN bool refused() const { return kind >= Kind::fields; }
};

class TriggerTable {
 public:
  static constexpr int kAssociative = 16;
  static constexpr int kFaults = 64;

  // Arrays of zeros: entries[early + live], over[operations]. `first`: room for the first
  // kAssociative entries in faster memory, or null.
  struct Memory {
    TriggerEntry* entries = nullptr;
    std::uint32_t* over = nullptr;
    TriggerEntry* first = nullptr;
  };
  struct Limits {
    int operations = 0;
    int early = 0;  // tags that have triggers and no post
    int live = 0;   // posts that have epochs left
  };
  CPUFREE_FN TriggerTable(const Memory& memory, const Limits& limits)
      : entries_(memory.entries), over_(memory.over), first_(memory.first), limits_(limits) {}

  // A table that was kept elsewhere, whose arrays are now these: for a host that reads a GPU's.
  CPUFREE_FN void move_to(const Memory& memory) {
    entries_ = memory.entries;
    over_ = memory.over;
    first_ = memory.first;
  }

  // Counts a trigger. False: there is no room; try again after a post or a firing.
  CPUFREE_FN bool trigger(TriggerTag tag, const TriggerFields& fields) {
    if (!known(tag)) return add_fault({TriggerFault::Kind::unknown, tag, 1});
    if (tag.epoch < over_[tag.operation]) return add_fault({TriggerFault::Kind::stray, tag, 1});
    TriggerEntry* entry = find(tag);
    if (entry == nullptr) {
      if (early_ == limits_.early) return false;
      ++early_;
      entry = take(tag);
      entry->state = TriggerEntry::State::counting;
    }
    ++entry->counter;
    entry->repeated |= entry->fields.given & fields.given;
    for (int k = 0; k < kTriggerFields; ++k)
      if ((fields.given >> k & 1U) != 0U) entry->fields.value[k] = fields.value[k];
    entry->fields.given |= fields.given;
    return true;
  }

  // Takes a post, which the host has checked. False: no room, as above.
  CPUFREE_FN bool post(const TriggerOperation& operation) {
    TriggerEntry* entry = find(operation.first);
    if (live_ == limits_.live) return false;
    ++live_;
    if (entry == nullptr)
      entry = take(operation.first);
    else
      --early_;
    entry->state = TriggerEntry::State::posted;
    entry->operation = operation;
    return true;
  }

  // The entry of an operation's next epoch where that is posted, or null.
  CPUFREE_FN TriggerEntry* current(std::uint32_t operation) {
    if (operation >= static_cast<std::uint32_t>(limits_.operations)) return nullptr;
    TriggerEntry* entry = find({operation, over_[operation]});
    return entry != nullptr && entry->state == TriggerEntry::State::posted ? entry : nullptr;
  }

  // The same where it is to fire now.
  CPUFREE_FN TriggerEntry* ready(std::uint32_t operation) {
    TriggerEntry* entry = current(operation);
    return entry != nullptr && entry->counter >= entry->operation.threshold ? entry : nullptr;
  }

  // Whether triggers have supplied what the operation leaves open, once each, and nothing else.
  CPUFREE_FN static bool complete(const TriggerEntry& entry) {
    return entry.repeated == 0U && entry.fields.given == entry.operation.open;
  }

  // A ready entry has fired, or was refused for a fault: its next epoch is posted where there is
  // one.
  CPUFREE_FN void retire(TriggerEntry* entry, const TriggerFault& why) {
    const TriggerTag tag = entry->tag;
    if (why.refused()) add_fault(why);
    if (entry->counter > entry->operation.threshold)
      add_fault({TriggerFault::Kind::stray, tag, entry->counter - entry->operation.threshold});
    ++over_[tag.operation];
    TriggerOperation next = entry->operation;
    ++next.first.epoch;
    --next.epochs;
    entry->state = TriggerEntry::State::unused;
    --live_;
    while (high_ > 0 && place(high_ - 1)->state == TriggerEntry::State::unused) --high_;
    if (next.epochs > 0) post(next);  // there is room: one posted entry is less
  }

  CPUFREE_FN bool known(TriggerTag tag) const {
    return tag.operation < static_cast<std::uint32_t>(limits_.operations);
  }
  // For reports: entries in use are among the first `size`.
  CPUFREE_FN int size() const { return high_; }
  CPUFREE_FN const TriggerEntry& at(int k) const { return *place(k); }
  CPUFREE_FN int fault_count() const { return faults_; }
  CPUFREE_FN const TriggerFault& fault(int k) const { return fault_[k]; }
  CPUFREE_FN std::uint64_t faults_dropped() const { return dropped_; }

 private:
  CPUFREE_FN TriggerEntry* place(int k) const {
    return (k < kAssociative && first_ != nullptr ? first_ : entries_) + k;
  }
  CPUFREE_FN TriggerEntry* find(TriggerTag tag) {
    for (int k = 0; k < high_; ++k) {
      TriggerEntry* const entry = place(k);
      if (entry->state != TriggerEntry::State::unused && entry->tag == tag) return entry;
    }
    return nullptr;
  }

  // The first unused entry: the limits say that there is one.
  CPUFREE_FN TriggerEntry* take(TriggerTag tag) {
    int k = 0;
    while (k < high_ && place(k)->state != TriggerEntry::State::unused) ++k;
    if (k == high_) ++high_;
    TriggerEntry* const entry = place(k);
    *entry = TriggerEntry{};
    entry->tag = tag;
    return entry;
  }

  // Faults of a kind and tag are counted together. True.
  CPUFREE_FN bool add_fault(const TriggerFault& fault) {
    for (int k = 0; k < faults_; ++k)
      if (fault_[k].kind == fault.kind && fault_[k].tag == fault.tag) {
        fault_[k].count += fault.count;
        return true;
      }
    if (faults_ == kFaults)
      dropped_ += fault.count;
    else
      fault_[faults_++] = fault;
    return true;
  }

  TriggerEntry* entries_;
  std::uint32_t* over_;
  TriggerEntry* first_;
  Limits limits_;
  int high_ = 0;  // entries from here on are unused
  int early_ = 0;
  int live_ = 0;
  TriggerFault fault_[kFaults];
  int faults_ = 0;
  std::uint64_t dropped_ = 0;
};

// Where an entry that is complete copies from and to, and the other PE.
struct TriggerPlaces {
  std::uint64_t source, target, pe;
};

CPUFREE_FN TriggerPlaces places_of(const TriggerEntry& entry) {
  const TriggerOperation& o = entry.operation;
  const unsigned given = entry.fields.given;
  const std::uint64_t slot = entry.tag.epoch % o.slots;
  return {
      (given & TriggerFields::source) != 0U ? entry.fields.value[0]
                                            : o.source + slot * o.source_step,
      (given & TriggerFields::target) != 0U ? entry.fields.value[1]
                                            : o.target + slot * o.target_step,
      (given & TriggerFields::pe) != 0U ? entry.fields.value[2] : static_cast<std::uint64_t>(o.pe)};
}

// Whether `bytes` from place `at` on lie in one of the buffers that the host has shown the NIC.
template <class P>
CPUFREE_KERNEL_FN bool in_a_buffer(P& port, const TriggerBoard& board, std::uint64_t at,
                                   std::uint64_t bytes) {
  const Epoch count = port.get_flag(board.buffer_count);
  port.acquire(Scope::system);
  for (Epoch k = 0; k < count && k < kTriggerBuffers; ++k) {
    const Packet buffer = port.get_packet(board.buffers + k);
    const auto first = static_cast<std::uint64_t>(buffer.value);
    if (at >= first && at - first <= buffer.tag && bytes <= buffer.tag - (at - first)) return true;
  }
  return false;
}

// Why an entry that has its triggers cannot be carried out, or no fault. Places that were posted
// the host has checked; those that triggers supplied are checked here.
template <class P>
CPUFREE_KERNEL_FN TriggerFault fault_of(P& port, const TriggerBoard& board,
                                        const TriggerEntry& entry) {
  using Kind = TriggerFault::Kind;
  if (!TriggerTable::complete(entry)) return {Kind::fields, entry.tag, 1};
  const TriggerPlaces at = places_of(entry);
  const std::uint64_t bytes = entry.operation.bytes;
  const unsigned given = entry.fields.given;
  if (at.pe >= static_cast<std::uint64_t>(board.pes)) return {Kind::no_pe, entry.tag, 1, at.pe, 0};
  if (bytes == 0 || given == 0U) return {};
  if ((given & TriggerFields::source) != 0U && !in_a_buffer(port, board, at.source, bytes))
    return {Kind::source, entry.tag, 1, at.source, bytes};
  if ((given & TriggerFields::target) != 0U && !in_a_buffer(port, board, at.target, bytes))
    return {Kind::target, entry.tag, 1, at.target, bytes};
  const bool apart = at.source + bytes <= at.target || at.target + bytes <= at.source;
  if (at.pe == static_cast<std::uint64_t>(port.pe()) && !apart)
    return {Kind::overlap, entry.tag, 1, at.target, bytes};
  return {};
}

}  // namespace cpufree
