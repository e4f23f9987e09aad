// Options from Python: dictionaries whose keys are known.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/machine.hpp"

namespace cpufree {

template <class V>
V option(const nanobind::dict& options, const char* name, V otherwise) {
  return options.contains(name) ? nanobind::cast<V>(options[name]) : otherwise;
}

inline void require_known(const nanobind::dict& options, std::initializer_list<const char*> known) {
  for (const auto& [key, value] : options) {
    const auto name = nanobind::cast<std::string>(key);
    if (std::ranges::find(known, name) == known.end())
      throw InvalidInput("unknown option '" + name + "'");
  }
}

// Numbers of a machine by their names in its file; others are the default ones.
inline Machine machine_of(const nanobind::dict& options) {
  Machine machine;
  if (options.contains("machine"))
    each_number(machine,
                [given = nanobind::cast<nanobind::dict>(options["machine"])](
                    const char* name, double& number) { number = option(given, name, number); });
  return machine;
}

}  // namespace cpufree
