// What a kernel of a PE of several nodes is given besides. Plain data, for host and device code.
#pragma once

#include "cpufree/device/nodes.hpp"

namespace cpufree::remote {

struct Seat {
  Remote remote;
  int pe = 0;  // among all PEs
  int pes = 1;
};

}  // namespace cpufree::remote
