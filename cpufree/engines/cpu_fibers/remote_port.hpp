// The port of the testing engine where PEs are in several nodes: stores across a border of nodes
// are an error of the kernel, puts arrive late (schedule.hpp).
#pragma once

#include <stdexcept>

#include "cpufree/engines/cpu_fibers/port.hpp"

namespace cpufree::cpu_fibers {

class RemotePort : public Port {
 public:
  RemotePort(Machine& machine, int pe, int block, const Remote& remote)
      : Port(machine, pe, block), machine_(machine), remote_(remote) {}

  const Remote& remote() const { return remote_; }

  template <class T>
  void put(T* object, int pe, T value) {
    require_direct(pe);
    Port::put(object, pe, value);
  }
  void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    require_direct(pe);
    Port::put_packet(packet, pe, value, tag);
  }
  void put_flag(Flag* flag, int pe, Epoch epoch) {
    require_direct(pe);
    Port::put_flag(flag, pe, epoch);
  }
  template <class T>
  void put_signal(T* to, int pe, const T* from, std::int64_t count, Flag* flag, Epoch epoch) {
    if (reaches(*this, pe)) throw std::logic_error("a put to another node stays in this one");
    machine_.call();
    machine_.expect_rise(&peer(flag, pe)->value, epoch);
    machine_.send(peer(to, pe), from, static_cast<std::size_t>(count) * sizeof(T),
                  &peer(flag, pe)->value, epoch);
  }
  void see_signals() { machine_.call(); }  // who has acquired the flags sees them

 private:
  void require_direct(int pe) const {
    if (!reaches(*this, pe)) throw std::logic_error("a store goes to another node");
  }

  Machine& machine_;
  const Remote& remote_;
};

static_assert(cpufree::RemotePort<RemotePort> && !cpufree::RemotePort<Port>);

}  // namespace cpufree::cpu_fibers
