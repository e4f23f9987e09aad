// The port of the testing engine (schedule.hpp): one fiber per block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/device/solo_block.hpp"
#include "cpufree/engines/cpu_fibers/schedule.hpp"

namespace cpufree::cpu_fibers {

class Port : public SoloBlock {
 public:
  static constexpr int width = 2;
  static constexpr int warp_width = 1;
  static constexpr int batch = 3;
  static constexpr bool slots_by_source = false;
  struct Wait {};

  Port(Machine& machine, int pe, int block) : machine_(machine), pe_(pe), block_(block) {}

  int pe() const { return pe_; }
  int pes() const { return machine_.config().pes; }
  int block() const { return block_; }
  int blocks() const { return machine_.config().blocks; }

  void sync_block() { machine_.call(); }

  template <class T>
  T* peer(T* object, int pe) const {
    auto* const* heaps = machine_.config().heaps;
    return reinterpret_cast<T*>(heaps[pe] + (reinterpret_cast<std::byte*>(object) - heaps[pe_]));
  }
  template <class T>
  void put(T* object, int pe, T value) {
    machine_.call();
    machine_.store(peer(object, pe), &value, sizeof(T));
  }
  void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    machine_.call();
    const Packet message{value, tag};
    machine_.signal(peer(packet, pe), &message, sizeof(message));
  }
  Packet get_packet(const Packet* packet) {
    machine_.look();
    return *packet;
  }
  void put_flag(Flag* flag, int pe, Epoch epoch) {
    machine_.call();
    machine_.signal(&peer(flag, pe)->value, &epoch, sizeof(epoch));
  }
  Epoch get_flag(const Flag* flag) {
    machine_.look();
    return flag->value;
  }
  Epoch arrive(Flag* counter) {
    machine_.call();
    return machine_.count_in(&counter->value);
  }
  void publish(Scope) { machine_.publish(); }
  void acquire(Scope) {}

  Wait start_wait() { return {}; }
  bool keep_waiting(Wait&) { return machine_.wait(); }
  void give_up(const Wait&, WaitRecord record) {
    record.state = BlockState::expired;
    if (machine_.my_record().state != BlockState::expired) machine_.my_record() = record;
    machine_.give_up();
  }
  unsigned host_notes() const { return 0; }
  void report(std::int64_t, double) {}
  std::uint64_t now() const { return static_cast<std::uint64_t>(machine_.steps()); }
  std::uint64_t ticks() const { return now(); }

 private:
  Machine& machine_;
  int pe_;
  int block_;
};

static_assert(cpufree::GridPort<Port>);

}  // namespace cpufree::cpu_fibers
