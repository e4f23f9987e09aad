// The rows of a slice: what layouts and kernels have in common. A header that kernels can include.
#pragma once

namespace cpufree {

inline constexpr int kSliceRows = 32;

}  // namespace cpufree
