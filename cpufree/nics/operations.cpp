#include "cpufree/nics/operations.hpp"

#include "cpufree/base/error.hpp"

namespace cpufree::nics {

namespace {

std::string name_of(TriggerTag tag) {
  return "tag " + std::to_string(tag.operation) + ", epoch " + std::to_string(tag.epoch);
}

std::string range_of(std::uint64_t offset, std::uint64_t bytes) {
  return "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes);
}

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
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
  const std::string where =
      "NIC of PE " + std::to_string(f.pe) + ": " + name_of(f.fault.tag) + ": ";
  const std::string count = std::to_string(f.fault.count);
  const std::string triggers = f.fault.count == 1 ? " trigger" : " triggers";
  switch (f.fault.kind) {
    case TriggerFault::Kind::stray:
      return where + count + triggers + " more than the threshold; the operation fired once: " +
             "trigger less often, or post a higher threshold";
    case TriggerFault::Kind::refused:
      return where + "not carried out: its triggers must supply each open field once, no other " +
             "field, and places inside symmetric memory";
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
  for (int k = 0; k < table.fault_count(); ++k) report.faults.push_back({pe, table.fault(k)});
  report.faults_dropped += table.faults_dropped();
}

Registry::Registry(int pe, int pes, int operations, int signals, std::uint64_t bytes)
    : pe_(pe), pes_(pes), operations_(operations), signals_(signals), bytes_(bytes) {}

void Registry::add_buffer(const std::string& name, std::uint64_t offset, std::uint64_t bytes) {
  require(!buffers_.contains(name), "buffer '" + name + "' is registered already");
  require(offset <= bytes_ && bytes <= bytes_ - offset,
          "buffer '" + name + "', " + range_of(offset, bytes) + ", lies outside of the " +
              std::to_string(bytes_) + " bytes of symmetric memory");
  for (const auto& [other, buffer] : buffers_)
    require(!overlap(offset, bytes, buffer.offset, buffer.bytes),
            "buffer '" + name + "', " + range_of(offset, bytes) + ", overlaps buffer '" + other +
                "', " + range_of(buffer.offset, buffer.bytes));
  buffers_[name] = {offset, bytes};
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

void Registry::add(const TriggerOperation& operation) {
  check_numbers(operation);
  check_places(operation);
  next_epoch_[operation.first.operation] = operation.first.epoch + operation.epochs;
  posts_[operation.first.operation].push_back(operation);
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
  for (std::uint64_t k = 0; k < o.slots; ++k) {
    const std::uint64_t at = first + k * step;
    bool inside = false;
    for (const auto& [name, buffer] : buffers_)
      inside = inside || (at >= buffer.offset && at - buffer.offset <= buffer.bytes &&
                          o.bytes <= buffer.bytes - (at - buffer.offset));
    require(inside, name_of(o.first) + ": the " + what + ", " + range_of(at, o.bytes) +
                        ", lies in no registered buffer: it was freed, or never registered");
  }
}

}  // namespace cpufree::nics
