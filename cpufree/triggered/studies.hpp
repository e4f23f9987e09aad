// Studies of triggered operations on CPU threads: where the time of a message goes, and what an
// all-reduce takes. All times are of one clock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cpufree/triggered/device/vector_allreduce.hpp"
#include "cpufree/triggered/domain.hpp"

namespace cpufree::triggered {

// How a kernel's data get to another PE, after LeBeane et al. 2017, section 4:
enum class Path {
  host,       // HDN: the kernel ends, the host copies
  at_end,     // GDS: a registered put is triggered by the kernel's end
  triggered,  // GPU-TN: a registered put is triggered by the kernel
  stores      // native: the kernel copies
};

// When the host posts the put of a message that is triggered: all puts before the first message; or
// each one just before the launch of the kernel that triggers it, or just after. The paper's
// relaxed order is launch_first: launch and post take as long as the longer of them, not as both.
// open: all before the first message, but the target's place comes with the trigger.
enum class PostOrder { ahead, post_first, launch_first, open };

// By their names here. Throw InvalidInput where there is none of that name.
Path path_named(const std::string& name);
PostOrder order_named(const std::string& name);
// Throws InvalidInput where nothing of a path is posted.
void require_order(PostOrder order, Path path);
constexpr bool posts_ahead(PostOrder order) {
  return order == PostOrder::ahead || order == PostOrder::open;
}
// What triggers of an order supply, of a put to `target`: all of them, as one block triggers.
constexpr TriggerFields supplied(PostOrder order, std::uint64_t target) {
  if (order != PostOrder::open) return {};
  return {TriggerFields::target, {0, target}};
}

struct MessageStudy {
  Path path = Path::triggered;
  std::uint64_t bytes = 64;  // a multiple of 8
  int rounds = 10;
  double work = 10e-6;  // seconds that the kernel computes before the data are ready, and after
  PostOrder order = PostOrder::ahead;
};

// One message: seconds since the host began to launch the initiator's kernel, or to post where it
// posts first. NaN: no such time.
struct MessageTimes {
  double begun = 0.0;      // the kernel runs
  double ready = 0.0;      // the data are there
  double sent = 0.0;       // the kernel has triggered, or stored all
  double ended = 0.0;      // the kernel's last instruction
  double observed = 0.0;   // the host knows
  double nic_begun = 0.0;  // the NIC has begun to copy
  double nic_ended = 0.0;  // the NIC has set the signal
  double seen = 0.0;       // the target's kernel has seen the signal
};

// A message a round, from PE 0 to a kernel that waits on PE 1. Throws EngineError where a payload
// is wrong or a wait is given up.
std::vector<MessageTimes> measure_messages(const MessageStudy& study, const MakeNics& make,
                                           const std::function<void()>& look);

struct ReduceStudy {
  VectorSchedule schedule;
  bool by_triggers = true;
  bool single = false;
  std::uint32_t repeats = 10;
};

// Seconds of each all-reduce, as PE 0's block 0 sees them. Throws EngineError where a sum is wrong.
std::vector<double> measure_allreduce(const ReduceStudy& study, const MakeNics& make,
                                      const std::function<void()>& look);

}  // namespace cpufree::triggered
