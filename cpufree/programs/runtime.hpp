// What generated kernels are made of: arrays of a PE, rows of stages, halos, reductions, leaving.
//
// A PE owns the rows [lo, hi) of all distributed fields. Its arrays have ghost rows on either side,
// which `wait` fills with what the PEs beside have `put`.
//
// A PE is one block. A generated kernel is a template over the port, its control flow is the same
// on all PEs, for all decide by the same scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "cpufree/device/wait.hpp"
#include "cpufree/programs/args.hpp"
#include "cpufree/programs/python_numbers.hpp"
#include "cpufree/programs/stages.hpp"

namespace cpufree::programs {

// The halos of a field in an exchange.
template <class T>
struct HaloRows {
  T* first;                   // own rows; the ghosts below lie before them
  T* last;                    // one behind the own rows: the ghosts above
  std::int64_t below, above;  // values of either halo
};

// Bytes of N values, in whole words.
template <class T>
CPUFREE_FN std::int64_t mail_bytes(std::int64_t count) {
  return (count * static_cast<std::int64_t>(sizeof(T)) + 7) / 8 * 8;
}

template <Port P>
class Runtime {
 public:
  CPUFREE_KERNEL_FN Runtime(P& port, const Args& args, std::byte* heap)
      : port_(port), args_(args), heap_(heap) {
    const std::int64_t rows = args.numbers[0];
    lo_ = rows * port.pe() / port.pes();
    hi_ = rows * (port.pe() + 1) / port.pes();
    slots_ = at<Packet>(args.numbers[1]);
    stop_ = at<Flag>(args.numbers[2]);
  }

  template <class T>
  CPUFREE_KERNEL_FN T* at(std::int64_t offset) const {
    return reinterpret_cast<T*>(heap_ + offset);
  }
  template <class T>
  CPUFREE_KERNEL_FN T scalar(int k) const {
    T value;
    std::memcpy(&value, args_.scalars + k, sizeof value);
    return value;
  }

  // The field whose numbers begin at `k`: offset, rows, ghost rows below, strides.
  template <class T, int D>
  CPUFREE_KERNEL_FN Array<T, D> field(int k, int id, bool distributed) const {
    Array<T, D> f;
    f.base = at<T>(args_.numbers[k]);
    f.id = id;
    f.rows = args_.numbers[k + 1];
    f.below = args_.numbers[k + 2];
    for (int a = 0; a < D; ++a) f.stride[a] = args_.numbers[k + 3 + a];
    f.first = distributed ? lo_ - f.below : 0;
    return f;
  }

  // A turn of a loop begins. False: leave the kernel.
  CPUFREE_KERNEL_FN bool turn(bool outermost) {
    if constexpr (TracingPort<P>) port_.begin_turn(outermost ? 1 : 0);
    if (outermost && port_.pe() == 0) port_.report(++turns_, 0.0);
    return fault_ == Fault::none && !stopped();
  }
  // The host asks to leave. All PEs see it, at a turn or in a wait, and none waits for another
  // then. Hosts of other processes may not have been asked: who has tells their PEs.
  CPUFREE_KERNEL_FN bool stopped() {
    if (port_.host_notes() == kNoteNone) return reached(port_.get_flag(stop_), Epoch{1});
    for (int pe = 0; pe < port_.pes(); ++pe) port_.put_flag(stop_, pe, Epoch{1});
    return true;
  }
  CPUFREE_KERNEL_FN bool failed() const { return fault_ != Fault::none; }
  CPUFREE_KERNEL_FN void fail(Fault fault, std::int64_t line) {
    if (failed()) return;
    fault_ = fault;
    args_.faults[2 * port_.pe()] = static_cast<std::int64_t>(fault);
    args_.faults[2 * port_.pe() + 1] = line;
  }

  // --- stages ---

  // What follows is of this line of the program.
  CPUFREE_KERNEL_FN void section([[maybe_unused]] int line) {
    if constexpr (TracingPort<P>) port_.enter(line);
  }
  // Goes over the rows of the stages, `block` rows at a time, each stage its lag behind.
  template <class... S>
  CPUFREE_KERNEL_FN void group(std::int64_t block, S&... stages) {
    (stages.place(lo_, hi_), ...);
    std::int64_t from = std::numeric_limits<std::int64_t>::max();
    std::int64_t to = std::numeric_limits<std::int64_t>::min();
    ((from = stages.begin() < from ? stages.begin() : from), ...);
    ((to = stages.end() > to ? stages.end() : to), ...);
    for (std::int64_t i = from; i < to; i += block) (stages.rows(i, i + block), ...);
  }
  // A stage that every PE computes for itself.
  template <class S>
  CPUFREE_KERNEL_FN void everywhere(S& stage) {
    stage.place(std::numeric_limits<std::int64_t>::min() / 4,
                std::numeric_limits<std::int64_t>::max() / 4);
    stage.rows(stage.begin(), stage.end());
  }

  // --- halos ---

  // An exchange over one channel: flags of the PE below and of the one above, and a mailbox for
  // each in two slots. Exchange e uses slot e mod 2.
  //
  // Read after write: the flag of exchange e is stored after the rows of e were put and published;
  // who has seen it acquires, and reads the rows.
  // Write after read: the rows of e + 2 go into the slot of e. They are sent after this PE's wait
  // for e + 1 of the same neighbour, which that one sent after it had copied the rows of e out of
  // its mailbox (its wait for e precedes its put of e + 1). Both send in every exchange, if only a
  // flag, so the wait is there. Flags of different channels and directions lie apart.
  struct Channel {
    Flag* flags;
    std::byte* mail;
    std::int64_t slot, from_above;  // bytes of a slot; where in it the rows from above begin
    bool ring;
    Epoch epoch = 0;
  };
  CPUFREE_KERNEL_FN Channel channel(int k, bool ring) const {
    Channel c;
    c.flags = at<Flag>(args_.numbers[k]);
    c.mail = at<std::byte>(args_.numbers[k + 1]);
    c.slot = args_.numbers[k + 2];
    c.from_above = args_.numbers[k + 3];
    c.ring = ring;
    return c;
  }

  template <class T, int D>
  CPUFREE_KERNEL_FN HaloRows<T> halo(const Array<T, D>& f, std::int64_t below,
                                     std::int64_t above) const {
    const std::int64_t end = hi_ < f.rows ? hi_ : f.rows;
    HaloRows<T> h;
    h.first = f.base + f.below * f.stride[0];
    h.last = h.first + (end - lo_) * f.stride[0];
    h.below = below * f.stride[0], h.above = above * f.stride[0];
    return h;
  }

  template <class... T>
  CPUFREE_KERNEL_FN void put(Channel& c, const HaloRows<T>&... halos) {
    ++c.epoch;
    std::byte* const slot = c.mail + static_cast<std::int64_t>(c.epoch & 1U) * c.slot;
    std::byte* to = slot;
    // My last rows are the ghosts below of the PE above, and the other way round.
    if (has_above(c)) ((to = send(to, halos.last - halos.below, halos.below, above())), ...);
    to = slot + c.from_above;
    if (has_below(c)) ((to = send(to, halos.first, halos.above, below())), ...);
    port_.sync_block();
    if (port_.lane() != 0) return;
    port_.publish(Scope::system);
    if (has_above(c)) port_.put_flag(c.flags, above(), c.epoch);
    if (has_below(c)) port_.put_flag(c.flags + 1, below(), c.epoch);
  }

  // False: leave the kernel.
  template <class... T>
  CPUFREE_KERNEL_FN bool wait(Channel& c, const HaloRows<T>&... halos) {
    bool here = true;
    if (port_.lane() == 0) {
      here = (!has_below(c) || wait_for(c.flags, c.epoch, below())) &&
             (!has_above(c) || wait_for(c.flags + 1, c.epoch, above()));
      port_.acquire(Scope::system);
    }
    if (!port_.all(here)) return false;
    const std::byte* const slot = c.mail + static_cast<std::int64_t>(c.epoch & 1U) * c.slot;
    const std::byte* from = slot;
    if (has_below(c)) ((from = take(halos.first - halos.below, from, halos.below)), ...);
    from = slot + c.from_above;
    if (has_above(c)) ((from = take(halos.last, from, halos.above)), ...);
    port_.sync_block();
    return true;
  }

  // --- reductions ---

  // Joins what all PEs have got, in the order of PEs: f(mine, other). Two words of each travel.
  //
  // Slot (parity, PE) is written by that PE alone. Reduction e + 2 uses the slot of e: a PE pushes
  // it after it has pulled e + 1 of all, and each of these was pushed after its sender had pulled
  // e.
  //
  // It stays a function: some hundred copies in one kernel keep a compiler busy for a minute.
  template <class V, class F>
  [[gnu::noinline]] CPUFREE_KERNEL_FN bool join(V& value, F&& f) {
    static_assert(sizeof(V) <= 16);
    double words[2] = {0.0, 0.0};
    std::memcpy(words, &value, sizeof value);
    const Epoch epoch = ++reductions_;
    Packet* const slots = slots_ + static_cast<std::int64_t>(epoch & 1U) * 2 * port_.pes();
    if constexpr (TracingPort<P>) port_.sums(true);
    for (int to = 0; to < port_.pes(); ++to)
      for (int k = 0; k < 2; ++k)
        port_.put_packet(slots + 2 * port_.pe() + k, to, words[k], make_tag(epoch, 0));
    if constexpr (TracingPort<P>) port_.sums(false);
    for (int pe = 0; pe < port_.pes(); ++pe) {
      double got[2];
      for (int k = 0; k < 2; ++k)
        if (!wait_for_packet(slots + 2 * pe + k, epoch, pe, got[k])) return false;
      V other;
      std::memcpy(&other, got, sizeof other);
      value = pe == 0 ? other : f(value, other);
    }
    return true;
  }

  template <class V>
  CPUFREE_KERNEL_FN void result(int k, V value) {
    if (port_.pe() == 0) std::memcpy(args_.results + k, &value, sizeof value);
  }

 private:
  CPUFREE_KERNEL_FN int above() const { return (port_.pe() + 1) % port_.pes(); }
  CPUFREE_KERNEL_FN int below() const { return (port_.pe() + port_.pes() - 1) % port_.pes(); }
  CPUFREE_KERNEL_FN bool has_above(const Channel& c) const {
    return c.ring || port_.pe() + 1 < port_.pes();
  }
  CPUFREE_KERNEL_FN bool has_below(const Channel& c) const { return c.ring || port_.pe() > 0; }

  template <class T>
  CPUFREE_KERNEL_FN std::byte* send(std::byte* to, const T* from, std::int64_t count, int pe) {
    auto* mail = reinterpret_cast<T*>(to);
    for (std::int64_t k = port_.lane(); k < count; k += port_.lanes())
      port_.put(mail + k, pe, from[k]);
    return to + mail_bytes<T>(count);
  }
  template <class T>
  CPUFREE_KERNEL_FN const std::byte* take(T* to, const std::byte* from, std::int64_t count) {
    const auto* mail = reinterpret_cast<const T*>(from);
    for (std::int64_t k = port_.lane(); k < count; k += port_.lanes()) to[k] = mail[k];
    return from + mail_bytes<T>(count);
  }

  CPUFREE_KERNEL_FN bool wait_for(const Flag* flag, Epoch want, int from) {
    return wait_flag(port_, flag, want, {cpufree::Channel::halo_arrival, from, 0},
                     [&] { return stopped(); });
  }
  CPUFREE_KERNEL_FN bool wait_for_packet(const Packet* packet, Epoch want, int from,
                                         double& value) {
    Epoch seen = 0;
    const auto look = [&] {
      const Packet got = port_.get_packet(packet);
      value = got.value;
      seen = tag_epoch(got.tag);
      return arrived(got.tag, want);
    };
    return look() || wait_until(port_, look, packet, {cpufree::Channel::reduction, from, 0}, want,
                                seen, [&] { return stopped(); });
  }

  P& port_;
  const Args& args_;
  std::byte* heap_;
  std::int64_t lo_ = 0, hi_ = 0;
  Packet* slots_ = nullptr;
  Epoch reductions_ = 0;
  std::int64_t turns_ = 0;
  Flag* stop_ = nullptr;  // symmetric, 0 at the begin
  Fault fault_ = Fault::none;
};

}  // namespace cpufree::programs
