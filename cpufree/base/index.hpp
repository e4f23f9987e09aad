#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree {

// A non-negative row, block or PE number as the index of a standard container.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace cpufree
