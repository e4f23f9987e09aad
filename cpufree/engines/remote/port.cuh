// The port on GPUs in several nodes: within a node that of `Base`, between nodes the library.
#pragma once

#include <cstdint>
#include <utility>

#include "cpufree/device/port.hpp"
#include "cpufree/engines/remote/calls.cuh"
#include "cpufree/engines/remote/seat.hpp"

namespace cpufree::remote {

// `Base` numbers the PEs of a node from 0, by place.
template <class Base>
class Port : public Base {
 public:
  // `leave`: symmetric, not 0 when all PEs are to leave; `base`: what Base is made of.
  template <class... A>
  __device__ Port(const Seat& seat, Flag* leave, A&&... base)
      : Base(std::forward<A>(base)...), seat_(seat), leave_(leave) {}

  __device__ int pe() const { return seat_.pe; }
  __device__ int pes() const { return seat_.pes; }
  __device__ const Remote& remote() const { return seat_.remote; }

  template <class T>
  __device__ void put(T* object, int pe, T value) {
    Base::put(object, place(pe), value);
  }
  __device__ void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    Base::put_packet(packet, place(pe), value, tag);
  }
  __device__ void put_flag(Flag* flag, int pe, Epoch epoch) {
    Base::put_flag(flag, place(pe), epoch);
  }
  template <class T>
  __device__ void put_signal(T* to, int pe, const T* from, std::int64_t count, Flag* flag,
                             Epoch epoch) {
    if (count > 0)
      remote::put_signal(to, from, static_cast<std::size_t>(count) * sizeof(T), &flag->value, epoch,
                         pe);
    else if (this->lane() == 0)
      remote::signal(&flag->value, epoch, pe);
  }
  __device__ void see_signals() {
    if (this->lane() == 0) {
      remote::see(&leave_->value);
      this->acquire(Scope::system);
    }
    this->sync_block();
  }
  template <class W>
  __device__ void give_up(const W& wait, const WaitRecord& record) {
    if (this->get_flag(leave_) == 0)  // the first to know
      for (int pe = 0; pe < pes(); ++pe)
        if (!reaches(*this, pe)) remote::signal(&leave_->value, 1, pe);
    Base::give_up(wait, record);
  }

  // The last verb of a kernel, by all threads of the block. The one wait that knows no bound: where
  // a put never arrives, the host has the team given up (GpuRunner::listen).
  __device__ void finish() {
    this->sync_block();
    if (this->lane() == 0) remote::quiet();
  }

 private:
  __device__ int place(int pe) const { return seat_.remote.nodes.place[pe]; }

  const Seat& seat_;
  Flag* leave_;
};

}  // namespace cpufree::remote
