// Where the value of a boundary row goes. A header that kernels can include: no host types.
#pragma once

#include <cstdint>

namespace cpufree {

// Entry `index` of the same vector on PE `pe`.
struct Destination {
  std::int32_t pe = 0;
  std::int32_t index = 0;
};

}  // namespace cpufree
