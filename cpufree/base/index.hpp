#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// A non-negative row, block or PE number as the index of a standard container.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

CPUFREE_FN std::size_t round_up16(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace cpufree
