// What the kernel of the litmus test is launched with, for host and device code.
#pragma once

#include "cpufree/engines/remote/seat.hpp"
#include "cpufree/probes/litmus.hpp"

namespace cpufree {

inline constexpr int kLitmusThreads = 256;

struct RemoteLitmusArgs {
  LitmusArgs litmus;
  remote::Seat seat;
};

}  // namespace cpufree
