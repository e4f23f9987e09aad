// The structs of the C interface: their default values, and what of them older programs have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/cpufree.h"

namespace cpufree {

void set_defaults(cpufree_matrix& matrix);
void set_defaults(cpufree_setup& setup);
void set_defaults(cpufree_options& options);
void set_defaults(cpufree_result& result);
void set_defaults(cpufree_layout& layout);

template <class S>
S default_of() {
  S made;
  std::memset(&made, 0, sizeof made);
  made.size = sizeof made;
  set_defaults(made);
  return made;
}

// Throws InvalidInput unless a struct has the size of one of this library's versions.
template <class S>
void check_size(const S& given, const char* name) {
  require(given.size > sizeof(std::size_t) && given.size <= sizeof(S),
          std::string("the size of ") + name + " is " + std::to_string(given.size) +
              ", that of this library " + std::to_string(sizeof(S)) +
              ": call its _init function first; a program is not for libraries that are older "
              "than its cpufree.h");
}

// What a program has given; null: the defaults. Members that it does not know are the defaults.
template <class S>
S taken(const S* given, const char* name) {
  S made = default_of<S>();
  if (given == nullptr) return made;
  check_size(*given, name);
  std::memcpy(&made, given, given->size);
  return made;
}

// Writes what a program knows of a struct; null: it does not ask.
template <class S>
void give(S* to, S made, const char* name) {
  if (to == nullptr) return;
  check_size(*to, name);
  made.size = to->size;
  std::memcpy(to, &made, made.size);
}

// Default values of as much as a program knows.
template <class S>
void initialise(S* to, std::size_t size) {
  if (to == nullptr || size < sizeof(std::size_t)) return;
  S made = default_of<S>();
  made.size = size;
  std::memset(to, 0, size);
  std::memcpy(to, &made, std::min(size, sizeof made));
}

}  // namespace cpufree
