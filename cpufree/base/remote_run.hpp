// Plain data that the layout of a problem and the kernels share.
#pragma once

#include <cstdint>

namespace cpufree {

// Entries of an exchanged vector that one block sends to one PE of another node, together: `count`
// from entry `from` on, which become those from `to` on there. None: a signal alone.
struct RemoteRun {
  std::int32_t pe = 0;
  std::int32_t count = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;
};

}  // namespace cpufree
