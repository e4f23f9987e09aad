// Bounds of the GPU formats that options are held against.
#pragma once

#include <cstdint>

namespace cpufree {

inline constexpr std::int32_t kMostLanesLog2 = 5;  // 32 lanes for a row
inline constexpr int kMostSlots = 8;               // of a ring through which a matrix comes

}  // namespace cpufree
