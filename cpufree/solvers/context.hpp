// The verbs in which the solvers are written: loops over my rows, exchanges, products, sums.
// One Context per thread; all threads of all blocks call the same verbs in the same order.
// A verb that returns false found that a wait gave up: leave the kernel at once.
#pragma once

#include "cpufree/device/allreduce.hpp"
#include "cpufree/device/block.hpp"
#include "cpufree/device/channel.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

template <Port P, class M>
class Context {
 public:
  using T = typename M::Value;
  using PortType = P;

  CPUFREE_KERNEL_FN Context(P& port, const SolveArgs<M>& arguments)
      : args(arguments),
        vectors(arguments.vectors),
        port_(port),
        share_(arguments.shares[port.block()]),
        arrivals_(port, share_.board),
        reduction_(port, arguments.slots) {}

  const SolveArgs<M>& args;
  const Vectors<T>& vectors;

  CPUFREE_KERNEL_FN P& port() { return port_; }
  CPUFREE_KERNEL_FN bool is_speaker() const {  // the one thread that writes what all threads know
    return port_.pe() == 0 && port_.block() == 0 && port_.lane() == 0;
  }
  CPUFREE_KERNEL_FN unsigned notes() const { return notes_; }
  CPUFREE_KERNEL_FN std::int64_t reductions() const {
    return static_cast<std::int64_t>(reduction_.epoch());
  }
  CPUFREE_KERNEL_FN std::int64_t exchanges() const {
    return static_cast<std::int64_t>(arrivals_.epoch());
  }

  // f(i, lane) for all my rows.
  template <class F>
  CPUFREE_KERNEL_FN void rows(F&& f) {
    for_each(port_, share_.boundary.begin, share_.boundary.end, f);
    for_each(port_, share_.interior.begin, share_.interior.end, f);
  }

  // v[i] = f(i, lane) for all my rows, boundary values also into my neighbours' ghosts: steps 1 to
  // 4 of an exchange (channel.hpp). `v` is ghosted. Boundary rows come first, so that they travel
  // while the interior is computed.
  template <class F>
  CPUFREE_KERNEL_FN void exchange(T* v, F&& f) {
    arrivals_.begin();
    const auto assign = [&](std::int32_t i, int lane) { v[i] = f(i, lane); };
    for_each(port_, share_.boundary.begin, share_.boundary.end, assign);
    for_each(port_, share_.boundary.begin, share_.boundary.end,
             [&](std::int32_t i, int) { send(v, i); });
    arrivals_.arrive_remote();
    for_each(port_, share_.interior.begin, share_.interior.end, assign);
    arrivals_.arrive_local();
  }

  // f(i, lane, (A v)(i)) for all my rows, after `exchange(v, ...)`: steps 5 and 6. Interior rows
  // are multiplied while ghosts may still be under way.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply(const T* v, F&& f) {
    if (!arrivals_.wait_local()) return false;
    share_.matrix.multiply(port_, share_.interior, v, f);
    if (!arrivals_.wait_halo()) return false;
    share_.matrix.multiply(port_, share_.boundary, v, f);
    return true;
  }

  // `exchange` of one of two scratch vectors, taken in turn: between two exchanges of the same one
  // lies an exchange of the other, hence proof (ii). Returns the vector; its rows may be read until
  // the next but one call.
  template <class F>
  CPUFREE_KERNEL_FN const T* exchange_scratch(F&& f) {
    T* const v = vectors.scratch[scratch_++ & 1U];
    exchange(v, f);
    return v;
  }

  // Sums over all rows of all PEs. `push` and `pull` alternate.
  template <int K>
  CPUFREE_KERNEL_FN void push(const Lanes<P> (&partial)[K]) {
    static_assert(K <= kReduceWidth);
    double sums[K];
    for (int k = 0; k < K; ++k) sums[k] = partial[k].sum();
    reduction_.push(sums, K);
  }
  template <int K>
  CPUFREE_KERNEL_FN bool pull(double (&total)[K]) {
    return reduction_.pull(total, K, notes_);
  }
  template <int K>
  CPUFREE_KERNEL_FN bool sum(const Lanes<P> (&partial)[K], double (&total)[K]) {
    push(partial);
    return pull(total);
  }

 private:
  CPUFREE_KERNEL_FN void send(T* v, std::int32_t i) {
    const std::int32_t k = i - args.interior;
    for (std::int64_t d = args.send_ptr[k]; d < args.send_ptr[k + 1]; ++d)
      port_.put(v + args.destinations[d].index, args.destinations[d].pe, v[i]);
  }

  P& port_;
  const BlockShare<M>& share_;
  Arrivals<P> arrivals_;
  AllReduce<P> reduction_;
  unsigned notes_ = 0;
  unsigned scratch_ = 0;
};

}  // namespace cpufree
