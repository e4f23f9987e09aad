// Values as bytes, as processes send them to one another.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cpufree/base/error.hpp"

namespace cpufree {

using Bytes = std::vector<std::byte>;

template <class V>
std::span<const std::byte> bytes_of(const std::vector<V>& values) {
  static_assert(std::is_trivially_copyable_v<V>);
  return std::as_bytes(std::span<const V>(values));
}

template <class V>
std::vector<V> values_of(const Bytes& bytes) {
  static_assert(std::is_trivially_copyable_v<V>);
  if (bytes.size() % sizeof(V) != 0)
    throw EngineError("a rank has given " + std::to_string(bytes.size()) +
                      " bytes where whole values of " + std::to_string(sizeof(V)) +
                      " were asked for: do all ranks run the same version?");
  std::vector<V> values(bytes.size() / sizeof(V));
  if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
  return values;
}

}  // namespace cpufree
