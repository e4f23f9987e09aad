#include "cpufree/triggered/nics/operations.hpp"

#include <set>

#include "cpufree/base/error.hpp"
#include "cpufree/triggered/nics/nics.hpp"

namespace cpufree::nics {

namespace {

std::string name_of(TriggerTag tag) {
  return "tag " + std::to_string(tag.operation) + ", epoch " + std::to_string(tag.epoch);
}

std::string range_of(std::uint64_t offset, std::uint64_t bytes) {
  return "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes);
}

constexpr const char* kPlaceNames[] = {"source", "target"};

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

bool covers(const TriggerOperation& o, TriggerTag tag) {
  return tag.operation == o.first.operation && tag.epoch >= o.first.epoch &&
         tag.epoch - o.first.epoch < o.epochs;
}

}  // namespace

std::string describe(const WaitingTag& tag) {
  const std::string where = "NIC of PE " + std::to_string(tag.pe) + ": " + name_of(tag.tag) + ": ";
  const std::string seen = std::to_string(tag.seen);
  if (tag.posted)
    return where + seen + " of " + std::to_string(tag.threshold) +
           " triggers seen, operation posted";
  return where + seen + (tag.seen == 1 ? " trigger" : " triggers") + " seen, operation not posted";
}

std::string describe(const NicFault& f) {
  using Kind = TriggerFault::Kind;
  const std::string where =
      "NIC of PE " + std::to_string(f.pe) + ": " + name_of(f.fault.tag) + ": ";
  const std::string count = std::to_string(f.fault.count);
  const std::string triggers = f.fault.count == 1 ? " trigger" : " triggers";
  switch (f.fault.kind) {
    case TriggerFault::Kind::stray:
      return where + count + triggers + " more than the threshold; the operation fired once: " +
             "trigger less often, or post a higher threshold";
    case TriggerFault::Kind::fields:
      return where + "not carried out: its triggers must supply each open field once, and no other";
    case TriggerFault::Kind::no_pe:
      return where + "not carried out: a trigger supplies PE " + std::to_string(f.fault.place) +
             ", which there is not";
    case TriggerFault::Kind::source:
    case TriggerFault::Kind::target:
      return where + "not carried out: the " + kPlaceNames[f.fault.kind == Kind::target] +
             " that a trigger supplies is " + f.place;
    case TriggerFault::Kind::overlap:
      return where + "not carried out: source and target overlap: the target is " + f.place;
    default:
      return where + count + triggers + " of an operation that there is no room for: raise the " +
             "number of operations";
  }
}

std::string describe(const NicReport& report) {
  std::string text;
  for (const WaitingTag& tag : report.waiting) text += "\n  " + describe(tag);
  for (const NicFault& fault : report.faults) text += "\n  " + describe(fault);
  if (report.faults_dropped > 0)
    text += "\n  and " + std::to_string(report.faults_dropped) + " faulty triggers of other tags";
  return text;
}

void add_table(NicReport& report, int pe, const TriggerTable& table) {
  for (int k = 0; k < table.size(); ++k) {
    const TriggerEntry& entry = table.at(k);
    if (entry.state == TriggerEntry::State::unused) continue;
    report.waiting.push_back({pe, entry.tag, entry.counter, entry.operation.threshold,
                              entry.state == TriggerEntry::State::posted});
  }
  for (int k = 0; k < table.fault_count(); ++k) report.faults.push_back({pe, table.fault(k), {}});
  report.faults_dropped += table.faults_dropped();
}

Registry::Registry(int pe, int pes, int operations, int signals, std::uint64_t bytes)
    : pe_(pe), pes_(pes), operations_(operations), signals_(signals), bytes_(bytes) {}

std::uint32_t Registry::add_buffer(const std::string& name, std::uint64_t offset,
                                   std::uint64_t bytes) {
  require(!buffers_.contains(name), "buffer '" + name + "' is registered already");
  require(offset <= bytes_ && bytes <= bytes_ - offset,
          "buffer '" + name + "', " + range_of(offset, bytes) + ", lies outside of the " +
              std::to_string(bytes_) + " bytes of symmetric memory");
  for (const auto& [other, buffer] : buffers_)
    require(!overlap(offset, bytes, buffer.offset, buffer.bytes),
            "buffer '" + name + "', " + range_of(offset, bytes) + ", overlaps buffer '" + other +
                "', " + range_of(buffer.offset, buffer.bytes));
  std::set<std::uint32_t> taken;
  for (const auto& [other, buffer] : buffers_) taken.insert(buffer.number);
  std::uint32_t number = 0;
  while (taken.contains(number)) ++number;
  require(number < kTriggerBuffers, "buffer '" + name + "' is one too many: a NIC knows " +
                                        std::to_string(kTriggerBuffers) +
                                        " at a time; free one, or use parts of a larger one");
  buffers_[name] = {offset, bytes, number};
  return number;
}

std::uint32_t Registry::forget_buffer(const std::string& name) {
  const std::uint32_t number = buffers_.at(name).number;
  buffers_.erase(name);
  return number;
}

void Registry::require_known(const std::string& name) const {
  require(buffers_.contains(name), "there is no buffer '" + name + "'");
}

void Registry::refuse_removal(const std::string& name, const TriggerOperation& o,
                              std::uint32_t over) const {
  const Buffer& buffer = buffers_.at(name);
  if (over >= o.first.epoch + o.epochs || o.bytes == 0) return;
  const auto names = [&](std::uint64_t first, std::uint64_t step) {
    for (std::uint64_t k = 0; k < o.slots; ++k)
      if (overlap(first + k * step, o.bytes, buffer.offset, buffer.bytes)) return true;
    return false;
  };
  require(!names(o.source, o.source_step) && !names(o.target, o.target_step),
          "buffer '" + name + "' cannot be freed: " +
              name_of({o.first.operation, over < o.first.epoch ? o.first.epoch : over}) +
              " names it and has not fired");
}

void Registry::refuse_removal(const std::string& name, const SuppliedPlaces& s) const {
  const Buffer& buffer = buffers_.at(name);
  for (unsigned k = 0; k < 2; ++k)
    require((s.fields.given >> k & 1U) == 0U ||
                !overlap(s.fields.value[k], s.bytes[k], buffer.offset, buffer.bytes),
            "buffer '" + name + "' cannot be freed: a trigger of " + name_of(s.tag) +
                " names it, which has not fired");
}

void Registry::add(const TriggerOperation& operation) {
  check_numbers(operation);
  check_places(operation);
  for (const SuppliedPlaces& s : supplied_)
    if (covers(operation, s.tag)) check_together(operation, s);
  next_epoch_[operation.first.operation] = operation.first.epoch + operation.epochs;
  posts_[operation.first.operation].push_back(operation);
}

void Registry::check(const SuppliedPlaces& s) const {
  for (unsigned k = 0; k < 2; ++k)
    if ((s.fields.given >> k & 1U) != 0U)
      require_in_buffer(name_of(s.tag) + ": the " + kPlaceNames[k], s.fields.value[k], s.bytes[k]);
  require((s.fields.given & TriggerFields::pe) == 0U ||
              s.fields.value[2] < static_cast<std::uint64_t>(pes_),
          name_of(s.tag) + ": a trigger supplies PE " + std::to_string(s.fields.value[2]) +
              "; there are " + std::to_string(pes_));
  const auto posts = posts_.find(s.tag.operation);
  if (posts == posts_.end()) return;
  for (const TriggerOperation& o : posts->second)
    if (covers(o, s.tag)) check_together(o, s);
}

// What triggers supply of an operation's open fields, once both are known.
void Registry::check_together(const TriggerOperation& o, const SuppliedPlaces& s) const {
  static constexpr const char* kFieldNames[] = {"source", "target", "pe"};
  for (unsigned k = 0; k < kTriggerFields; ++k)
    require((s.fields.given & ~o.open & 1U << k) == 0U,
            name_of(s.tag) + ": a trigger supplies '" + kFieldNames[k] +
                "', which the operation does not leave open");
  for (unsigned k = 0; k < 2; ++k)
    require((s.fields.given >> k & 1U) == 0U || s.bytes[k] == o.bytes,
            name_of(s.tag) + ": a trigger names as its " + kPlaceNames[k] + " " +
                text_of(s.fields.value[k], s.bytes[k]) + ", and the operation moves " +
                std::to_string(o.bytes));
  const unsigned known = ~o.open | s.fields.given;
  constexpr unsigned kAll = TriggerFields::source | TriggerFields::target | TriggerFields::pe;
  if ((known & kAll) != kAll) return;
  const TriggerPlaces at = places_of({TriggerEntry::State::posted, s.tag, 0, s.fields, 0, o});
  require(
      at.pe != static_cast<std::uint64_t>(pe_) || !overlap(at.source, o.bytes, at.target, o.bytes),
      name_of(s.tag) + ": source and target overlap on PE " + std::to_string(pe_) +
          ": the target is " + text_of(at.target, o.bytes));
}

void Registry::check_numbers(const TriggerOperation& o) const {
  const std::string who = name_of(o.first) + ": ";
  require(o.first.operation < static_cast<std::uint32_t>(operations_),
          who + "operations are numbered from 0 to " + std::to_string(operations_ - 1));
  require(o.threshold < kTriggerThresholds, who + "threshold " + std::to_string(o.threshold) +
                                                " is too large; the largest is 2147483647");
  require(o.epochs > 0 && o.slots > 0, who + "epochs and slots are at least 1");
  const auto next = next_epoch_.find(o.first.operation);
  const std::uint32_t expected = next == next_epoch_.end() ? 0 : next->second;
  require(o.first.epoch == expected,
          who + (o.first.epoch < expected ? "has been posted already" : "is posted too early") +
              "; the next epoch to post is " + std::to_string(expected));
  require((o.open & TriggerFields::pe) != 0U || (o.pe >= 0 && o.pe < pes_),
          who + "there is no PE " + std::to_string(o.pe) + "; there are " + std::to_string(pes_));
  require(o.signal >= -1 && o.signal < signals_, who + "there is no signal " +
                                                     std::to_string(o.signal) + "; there are " +
                                                     std::to_string(signals_));
}

void Registry::check_places(const TriggerOperation& o) const {
  if (o.bytes == 0) return;
  const bool open_source = (o.open & TriggerFields::source) != 0U;
  const bool open_target = (o.open & TriggerFields::target) != 0U;
  if (!open_source) check_place(o, "source", o.source, o.source_step);
  if (!open_target) check_place(o, "target", o.target, o.target_step);
  if (open_source || open_target || o.pe != pe_ || (o.open & TriggerFields::pe) != 0U) return;
  for (std::uint64_t k = 0; k < o.slots; ++k)
    require(!overlap(o.source + k * o.source_step, o.bytes, o.target + k * o.target_step, o.bytes),
            name_of(o.first) + ": source and target overlap on PE " + std::to_string(pe_));
}

void Registry::check_place(const TriggerOperation& o, const char* what, std::uint64_t first,
                           std::uint64_t step) const {
  const std::string who = name_of(o.first) + ": the " + what;
  const Entry* buffer = buffer_of(first);
  for (std::uint64_t k = 0; k < (step == 0 ? 1 : o.slots); ++k) {
    require_in_buffer(who, first + k * step, o.bytes);
    require(buffer_of(first + k * step) == buffer,
            who + " of slot " + std::to_string(k) + " is " + text_of(first + k * step, o.bytes) +
                ", and slot 0 lies in buffer '" + buffer->first + "'");
  }
}

const Registry::Entry* Registry::buffer_of(std::uint64_t at) const {
  for (const Entry& entry : buffers_)
    if (at >= entry.second.offset && at - entry.second.offset < entry.second.bytes) return &entry;
  return nullptr;
}

void Registry::require_in_buffer(const std::string& who, std::uint64_t at,
                                 std::uint64_t bytes) const {
  const Entry* buffer = buffer_of(at);
  require(bytes == 0 || buffer != nullptr,
          who + ", " + range_of(at, bytes) +
              ", lies in no registered buffer: it was freed, or never registered");
  require(bytes == 0 || bytes <= buffer->second.bytes - (at - buffer->second.offset),
          who + " is " + text_of(at, bytes));
}

std::string Registry::text_of(std::uint64_t at, std::uint64_t bytes) const {
  const Entry* buffer = buffer_of(at);
  if (buffer == nullptr)
    return range_of(at, bytes) + ", which lie in no registered buffer: it was freed, or never " +
           "registered";
  return range_of(at - buffer->second.offset, bytes) + " of buffer '" + buffer->first +
         "', which has " + std::to_string(buffer->second.bytes);
}

// What all NICs do with them: a registry for each PE, which posts go through.
Nics::Nics(const NicsConfig& config) {
  const TriggerSizes& sizes = config.layout->sizes();
  for (int pe = 0; pe < sizes.pes; ++pe) desks_.emplace_back(pe, sizes, config.bytes);
}

void Nics::check(int, const TriggerOperation&) {}

void Nics::show_buffer(int, std::uint32_t, std::uint64_t, std::uint64_t) {}

Nics::Desk& Nics::desk(int pe) {
  require(pe >= 0 && pe < static_cast<int>(desks_.size()),
          "there is no PE " + std::to_string(pe) + " to post an operation with");
  return desks_[static_cast<std::size_t>(pe)];
}

void Nics::add_buffer(const std::string& name, std::uint64_t offset, std::uint64_t bytes) {
  for (int pe = 0; pe < static_cast<int>(desks_.size()); ++pe) {
    Desk& own = desk(pe);
    const std::lock_guard lock(own.mutex);
    show_buffer(pe, own.registry.add_buffer(name, offset, bytes), offset, bytes);
  }
}

void Nics::remove_buffer(const std::string& name) {
  // All are asked before one forgets it.
  for (int pe = 0; pe < static_cast<int>(desks_.size()); ++pe) {
    Desk& own = desk(pe);
    const std::lock_guard lock(own.mutex);
    own.registry.check_unused(name, [&](std::uint32_t op) { return epochs_done(pe, op); });
  }
  for (int pe = 0; pe < static_cast<int>(desks_.size()); ++pe) {
    Desk& own = desk(pe);
    const std::lock_guard lock(own.mutex);
    show_buffer(pe, own.registry.forget_buffer(name), 0, 0);
  }
}

void Nics::require_in_buffer(const std::string& who, std::uint64_t at, std::uint64_t bytes) {
  Desk& any = desk(0);
  const std::lock_guard lock(any.mutex);
  any.registry.require_in_buffer(who, at, bytes);
}

void Nics::post(int pe, const TriggerOperation& operation) {
  Desk& own = desk(pe);
  const std::lock_guard lock(own.mutex);
  require(!ended_, "the NICs have been stopped: operations are posted before");
  check(pe, operation);
  own.registry.add(operation);
  if (!hand_over(pe, operation))
    throw EngineError("the NIC of PE " + std::to_string(pe) +
                      " had no room for a post within the wait limit: let operations fire before "
                      "more are posted");
}

void Nics::check_supplied(int pe, const SuppliedPlaces& supplied) {
  Desk& own = desk(pe);
  const std::lock_guard lock(own.mutex);
  own.registry.check(supplied);
}

void Nics::remember(int pe, const SuppliedPlaces& supplied) {
  Desk& own = desk(pe);
  const std::lock_guard lock(own.mutex);
  own.registry.remember(supplied, [&](std::uint32_t op) { return epochs_done(pe, op); });
}

NicReport Nics::stop() {
  NicReport report = finish();
  for (NicFault& f : report.faults) {
    Desk& own = desk(f.pe);
    const std::lock_guard lock(own.mutex);
    if (f.fault.bytes > 0) f.place = own.registry.text_of(f.fault.place, f.fault.bytes);
  }
  return report;
}

}  // namespace cpufree::nics
