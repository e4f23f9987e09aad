// A port on which a PE is alone: it is PE 0 of one. What kernels do with it they do for this PE:
// rows are not divided, a reduction is over its own blocks, a barrier is of its own blocks.
//
// Programs of ranks (messages.hpp) run on it: each PE has arrays of its own, and what goes to other
// PEs goes over the port beneath.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpufree/device/wait.hpp"

namespace cpufree::programs {

template <GridPort P>
class SoloPort : public Unstudied {
 public:
  static constexpr int width = P::width;
  static constexpr int warp_width = P::warp_width;
  static constexpr int batch = P::batch;
  static constexpr bool slots_by_source = P::slots_by_source;
  using Wait = typename P::Wait;
  template <class T>
  using Kept = typename P::template Kept<T>;
  template <class T>
  using Held = typename P::template Held<T>;

  CPUFREE_KERNEL_FN explicit SoloPort(P& port) : port_(port) {}

  CPUFREE_KERNEL_FN int pe() const { return 0; }
  CPUFREE_KERNEL_FN int pes() const { return 1; }
  CPUFREE_KERNEL_FN int block() const { return port_.block() - first_; }
  CPUFREE_KERNEL_FN int blocks() const { return fewer_ != 0 ? fewer_ : port_.blocks(); }
  // What follows is done by blocks first, ..., first + count - 1 of the PE alone; 0: by all again.
  CPUFREE_KERNEL_FN void only(int first, int count) { first_ = first, fewer_ = count; }
  CPUFREE_KERNEL_FN int lane() const { return port_.lane(); }
  CPUFREE_KERNEL_FN int lanes() const { return port_.lanes(); }

  CPUFREE_KERNEL_FN void sync_block() { port_.sync_block(); }
  CPUFREE_KERNEL_FN bool all(bool value) { return port_.all(value); }
  CPUFREE_KERNEL_FN bool warp_all(bool value) { return port_.warp_all(value); }

  template <class V, class F>
  CPUFREE_KERNEL_FN void scatter(const V& partial, int targets, unsigned note, F&& store) {
    port_.scatter(partial, targets, note, std::forward<F>(store));
  }
  template <class V, class F, class G>
  CPUFREE_KERNEL_FN void combine(V& total, unsigned& bits, bool on_its_way, F&& prepare, G&& body) {
    port_.combine(total, bits, on_its_way, std::forward<F>(prepare), std::forward<G>(body));
  }
  template <class V>
  CPUFREE_KERNEL_FN void recall(V& total) {
    port_.recall(total);
  }
  template <class T>
  CPUFREE_KERNEL_FN T in_register(T value) {
    return port_.in_register(value);
  }
  CPUFREE_KERNEL_FN bool bookkeeper() { return port_.bookkeeper(); }
  CPUFREE_KERNEL_FN double reciprocal(double x) { return port_.reciprocal(x); }
  CPUFREE_KERNEL_FN double reciprocal_root(double x) { return port_.reciprocal_root(x); }
  template <class T>
  CPUFREE_KERNEL_FN decltype(auto) keep(const T& value) {
    return port_.keep(value);
  }
  template <class T>
  CPUFREE_KERNEL_FN decltype(auto) hold(const T& value) {
    return port_.hold(value);
  }
  CPUFREE_KERNEL_FN std::byte* fast_memory() { return port_.fast_memory(); }

  // The only PE is this one.
  template <class T>
  CPUFREE_KERNEL_FN void put(T* object, int, T value) {
    *object = value;
  }
  CPUFREE_KERNEL_FN void put_packet(Packet* packet, int, double value, std::uint64_t tag) {
    port_.put_packet(packet, port_.pe(), value, tag);
  }
  CPUFREE_KERNEL_FN Packet get_packet(const Packet* packet) { return port_.get_packet(packet); }
  CPUFREE_KERNEL_FN void put_flag(Flag* flag, int, Epoch epoch) {
    port_.put_flag(flag, port_.pe(), epoch);
  }
  CPUFREE_KERNEL_FN Epoch get_flag(const Flag* flag) { return port_.get_flag(flag); }
  CPUFREE_KERNEL_FN Epoch arrive(Flag* counter) { return port_.arrive(counter); }
  CPUFREE_KERNEL_FN void publish(Scope scope) { port_.publish(scope); }
  CPUFREE_KERNEL_FN void acquire(Scope scope) { port_.acquire(scope); }

  CPUFREE_KERNEL_FN Wait start_wait() { return port_.start_wait(); }
  CPUFREE_KERNEL_FN bool keep_waiting(Wait& wait) { return port_.keep_waiting(wait); }
  CPUFREE_KERNEL_FN void give_up(Wait& wait, WaitRecord record) {
    record.from_pe = port_.pe();
    port_.give_up(wait, record);
  }

  // See TracingPort. The PE of a wait is its place among all.
  CPUFREE_KERNEL_FN void wait_begins(WaitSite site, Epoch want)
    requires TracingPort<P>
  {
    site.from_pe = port_.pe();
    port_.wait_begins(site, want);
  }
  CPUFREE_KERNEL_FN void wait_turns(bool missing, WaitSite site, Epoch want)
    requires TracingPort<P>
  {
    site.from_pe = port_.pe();
    port_.wait_turns(missing, site, want);
  }
  CPUFREE_KERNEL_FN void wait_ends(const void* at, WaitSite site, Epoch seen)
    requires TracingPort<P>
  {
    site.from_pe = port_.pe();
    port_.wait_ends(at, site, seen);
  }
  CPUFREE_KERNEL_FN void finds(const void* at, WaitSite site, Epoch seen)
    requires TracingPort<P>
  {
    site.from_pe = port_.pe();
    port_.finds(at, site, seen);
  }
  CPUFREE_KERNEL_FN void enter(int section)
    requires TracingPort<P>
  {
    port_.enter(section);
  }
  CPUFREE_KERNEL_FN void begin_turn(int n)
    requires TracingPort<P>
  {
    port_.begin_turn(n);
  }
  CPUFREE_KERNEL_FN void sums(bool begin)
    requires TracingPort<P>
  {
    port_.sums(begin);
  }
  CPUFREE_KERNEL_FN void puts(const Packet* first, int, Epoch epoch)
    requires TracingPort<P>
  {
    port_.puts(first, port_.pe(), epoch);
  }
  CPUFREE_KERNEL_FN void has_come(const void* at, int, Epoch epoch)
    requires TracingPort<P>
  {
    port_.has_come(at, port_.pe(), epoch);
  }
  CPUFREE_KERNEL_FN void moves(int pe, std::uint64_t bytes)
    requires TracingPort<P>
  {
    port_.moves(pe, bytes);
  }

  CPUFREE_KERNEL_FN unsigned host_notes() { return port_.host_notes(); }
  CPUFREE_KERNEL_FN void report(std::int64_t turn, double value) {
    if (port_.pe() == 0) port_.report(turn, value);
  }
  CPUFREE_KERNEL_FN std::uint64_t ticks() { return port_.ticks(); }
  CPUFREE_KERNEL_FN std::uint64_t now() { return port_.now(); }

 private:
  P& port_;
  int first_ = 0, fewer_ = 0;
};

// Blocks of a PE in two roles: `boundary` ones send, wait for what arrives, and do the points that
// need it; the others meanwhile do the points that do not. A single block does one after the other.
struct Roles {
  int boundary, blocks;
  CPUFREE_KERNEL_FN bool at_boundary(int block) const { return block < boundary; }
  CPUFREE_KERNEL_FN bool inside(int block) const { return block >= boundary || blocks == 1; }
  CPUFREE_KERNEL_FN int first_inside() const { return blocks == 1 ? 0 : boundary; }
  CPUFREE_KERNEL_FN int count_inside() const { return blocks == 1 ? 1 : blocks - boundary; }
};
// By work: boundary blocks as the share of the boundary's work, but one for each slice that is sent
// while there are four times as many, and half of all at most.
CPUFREE_FN Roles divide_roles(int blocks, std::int64_t boundary_work, std::int64_t inner_work,
                              int slices) {
  const std::int64_t all = boundary_work + inner_work;
  auto share = static_cast<int>((blocks * boundary_work + all - 1) / all);
  const int least = slices < blocks / 4 ? slices : blocks / 4;
  share = share < least ? least : share;
  const int most = blocks / 2 > 1 ? blocks / 2 : 1;
  share = share > most ? most : share;
  return {share < 1 ? 1 : share, blocks};
}

}  // namespace cpufree::programs
