// Values that users name: tables of names, and numbers within bounds.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "cpufree/base/error.hpp"

namespace cpufree {

// The value of a table by its name. Throws InvalidInput that lists the names; `what` is theirs.
template <class E, std::size_t N>
E value_named(const char* what, const std::pair<const char*, E> (&table)[N],
              const std::string& name) {
  std::string known;
  for (const auto& [text, value] : table) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw InvalidInput(std::string("unknown ") + what + " '" + name + "'; choose one of: " + known);
}

// The name of a value.
template <class E, std::size_t N>
const char* name_in(const std::pair<const char*, E> (&table)[N], E wanted) {
  for (const auto& [text, value] : table)
    if (value == wanted) return text;
  return "unknown";
}

inline void require_not_negative(double value, const char* name) {
  if (!std::isfinite(value) || value < 0.0)
    throw InvalidInput(std::string(name) + " must be a finite number >= 0, not " +
                       std::to_string(value));
}

}  // namespace cpufree
