// The scripts of triggered operations, and what a NIC has made of one, in the words of the rules.
#pragma once

#include <fstream>
#include <sstream>
#include <vector>

#include "cpufree/reference/trigger_script.hpp"
#include "cpufree/triggered/device/trigger_table.hpp"

namespace trigger_scripts {

namespace rules = cpufree::reference;

inline std::vector<rules::TriggerScript> all() {
  std::ifstream file(CPUFREE_TRIGGER_SCRIPTS);
  std::ostringstream text;
  text << file.rdbuf();
  return rules::TriggerScriptReader::read(text.str());
}

inline rules::TriggerTag tag_of(cpufree::TriggerTag tag) { return {tag.operation, tag.epoch}; }
inline cpufree::TriggerTag tag_of(rules::TriggerTag tag) { return {tag.operation, tag.epoch}; }

inline rules::TriggerFields fields_of(const cpufree::TriggerFields& fields) {
  rules::TriggerFields out;
  out.given = fields.given;
  for (std::size_t k = 0; k < rules::kTriggerFields; ++k) out.value[k] = fields.value[k];
  return out;
}
inline cpufree::TriggerFields fields_of(const rules::TriggerFields& fields) {
  cpufree::TriggerFields out;
  out.given = fields.given;
  for (std::size_t k = 0; k < rules::kTriggerFields; ++k) out.value[k] = fields.value[k];
  return out;
}

// An operation that copies nothing: what counts is that it fires.
inline cpufree::TriggerOperation operation_of(const rules::TriggerPost& post) {
  cpufree::TriggerOperation operation;
  operation.first = tag_of(post.first);
  operation.threshold = post.threshold;
  operation.epochs = post.epochs;
  operation.open = post.open;
  return operation;
}

inline void add(rules::TriggerOutcome& outcome, const cpufree::TriggerFault& fault) {
  if (fault.refused())
    outcome.refused.push_back(tag_of(fault.tag));
  else
    outcome.strays[tag_of(fault.tag)] += fault.count;
}

inline void add(rules::TriggerOutcome& outcome, const cpufree::TriggerEntry& waiting) {
  outcome.waiting[tag_of(waiting.tag)] = waiting.counter;
}

}  // namespace trigger_scripts
