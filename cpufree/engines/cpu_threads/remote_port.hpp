// The port of the CPU engine where PEs are in several nodes. All memory is within reach here: a put
// to another node is a copy and a flag, done at once, in place of what a network would do.
#pragma once

#include <algorithm>

#include "cpufree/engines/cpu_threads/port.hpp"

namespace cpufree::cpu_threads {

class RemotePort : public Port {
 public:
  explicit RemotePort(const Port& port)
      : Port(port), remote_(shared().remote[pe() - shared().first]) {}

  const Remote& remote() const { return remote_; }

  template <class T>
  void put_signal(T* to, int pe, const T* from, std::int64_t count, Flag* flag, Epoch epoch) {
    std::copy_n(from, count, peer(to, pe));
    store_flag(*peer(flag, pe), epoch);
  }

 private:
  const Remote& remote_;
};

static_assert(cpufree::RemotePort<RemotePort> && !cpufree::RemotePort<Port>);

}  // namespace cpufree::cpu_threads
