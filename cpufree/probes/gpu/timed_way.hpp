// What ways that the host times have in common.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/deadline.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/probes/gpu/host_ways.hpp"

namespace cpufree {

// Seconds that a call takes.
template <class F>
double seconds_of(F&& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The two GPUs of a way, which reach one another's memory.
inline std::vector<int> connected_pair(const HostWaySpec& spec) {
  require(spec.gpus.size() == 2 && spec.bytes >= 8,
          "a way goes from one GPU to another one, and has room for 8 bytes");
  auto devices = choose_devices(2, spec.gpus);
  gpu_p2p::connect(devices);
  return devices;
}

// One exchange after the other, each timed by itself.
class TimedWay : public HostWay {
 public:
  explicit TimedWay(const HostWaySpec& spec)
      : devices_(connected_pair(spec)), locks_(devices_), bytes_(spec.bytes), way_(spec.way) {}

  std::vector<double> times(const HostOrder& order) override {
    require(order.messages >= 1 && order.warm_ups >= 0 && order.repeats >= 1,
            "messages and repeats of a way are 1 at least");
    require(order.bytes >= 8 && order.bytes % 8 == 0 && order.bytes * order.messages <= bytes_,
            "messages of " + std::to_string(order.bytes) + " bytes, " +
                std::to_string(order.messages) + " of them, do not fit into the memory of the way");
    for (int k = 0; k < order.warm_ups; ++k) static_cast<void>(once(order));
    std::vector<double> seconds;
    for (int k = 0; k < order.repeats; ++k) seconds.push_back(once(order));
    return seconds;
  }

 protected:
  virtual double once(const HostOrder& order) = 0;
  [[noreturn]] void refuse(const HostOrder& order) const {
    throw InvalidInput("way " + way_ + " is not measured in mode '" + order.mode + "'");
  }
  int from() const { return devices_[0]; }
  int to() const { return devices_[1]; }
  std::int64_t room() const { return bytes_; }
  const std::vector<int>& devices() const { return devices_; }

 private:
  std::vector<int> devices_;
  gpu_p2p::DeviceLocks locks_;
  std::int64_t bytes_;
  std::string way_;
};

// Each in a file of its own.
std::unique_ptr<HostWay> make_nccl_way(const HostWaySpec& spec);
std::unique_ptr<HostWay> make_pinned_way(const HostWaySpec& spec);
std::unique_ptr<HostWay> make_proxy_way(const HostWaySpec& spec);
std::unique_ptr<HostWay> make_shmem_way(const HostWaySpec& spec);

}  // namespace cpufree
