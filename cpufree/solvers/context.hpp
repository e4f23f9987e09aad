// The verbs in which the solvers are written: loops over my rows, exchanges, products, sums.
// One Context per thread; all threads of all blocks call the same verbs in the same order.
// A verb that returns false found that a wait gave up: leave the kernel at once.
//
// What a study (device/study.hpp) leaves out is left out here: without computing, loops over rows,
// but for the packets that they send and look for; without other PEs, puts to them, waits for them,
// and their share of sums. And the verbs mark where one phase ends and the next one begins.
#pragma once

#include <type_traits>

#include "cpufree/device/block.hpp"
#include "cpufree/device/channel.hpp"
#include "cpufree/device/reduction.hpp"
#include "cpufree/formats/local.hpp"
#include "cpufree/formats/packet_operand.hpp"
#include "cpufree/formats/slice_codes.hpp"
#include "cpufree/solvers/prefetch.hpp"
#include "cpufree/solvers/resident.hpp"

namespace cpufree {

// `Format`: the matrices that the kernel is for (slice_codes.hpp).
template <Port P, class M, class Format = AnySlices>
class Context {
 public:
  using T = typename M::Value;
  using PortType = P;
  using Share = BlockShare<M>;
  using Args = SolveArgs<M>;

  // What changes during a solve.
  struct State {
    Epoch exchanges = 0;
    Epoch reductions = 0;
    unsigned notes = 0;
    unsigned scratch = 0;
    bool gone = false;  // a packet of mine never came
  };

  // `share` and `mine` are views that outlive the context (solve_kernel).
  CPUFREE_KERNEL_FN Context(P& port, const SolveArgs<M>& arguments, const Share& share,
                            const BlockVectors<T>& mine, const State& state)
      : args(arguments),
        vectors(mine),
        port_(port),
        share_(share),
        arrivals_(port, share_.board, state.exchanges),
        reduction_(port, arguments.slots, state.reductions),
        notes_(state.notes),
        scratch_(state.scratch),
        gone_(state.gone) {}

  // For what is done out of line, in a context of its own that takes over from this one.
  CPUFREE_KERNEL_FN const Share& share() const { return share_; }
  CPUFREE_KERNEL_FN State state() const {
    return {arrivals_.epoch(), reduction_.epoch(), notes_, scratch_, gone_};
  }
  CPUFREE_KERNEL_FN void go_on_from(const State& state) {
    arrivals_.go_on_from(state.exchanges);
    reduction_.go_on_from(state.reductions);
    notes_ = state.notes;
    scratch_ = state.scratch;
    gone_ = state.gone;
  }

  const SolveArgs<M>& args;
  const BlockVectors<T>& vectors;

  CPUFREE_KERNEL_FN P& port() { return port_; }
  // A copy of a number that loops keep in a register.
  template <class U>
  CPUFREE_KERNEL_FN U in_register(U value) const {
    return port_.in_register(value);
  }
  // Vectors as hot loops hold them. In kernels for shares that stay on chip whole the compiler
  // learns that they are in shared memory, which is true of those that a method asks room for
  // (wanted_by).
  template <class U>
  CPUFREE_KERNEL_FN Private<U> hot(const Private<U>& v) const {
    return {on_chip(v.data)};
  }
  CPUFREE_KERNEL_FN Ghosted<T> hot(const Ghosted<T>& v) const {
    if constexpr (Format::on_chip)
      return {on_chip(v.data), v.halo, nullptr, v.first};
    else
      return v;
  }
  CPUFREE_KERNEL_FN bool is_reporter() const {  // the one thread that writes what all threads know
    return port_.pe() == 0 && port_.block() == 0 && port_.lane() == 0;
  }
  CPUFREE_KERNEL_FN std::int32_t global_row(Row row) const {
    return args.global_row[share_.first_private + row.j];
  }
  CPUFREE_KERNEL_FN unsigned notes() const { return notes_; }
  CPUFREE_KERNEL_FN std::int64_t reductions() const {
    return static_cast<std::int64_t>(reduction_.epoch());
  }
  CPUFREE_KERNEL_FN std::int64_t exchanges() const {
    return static_cast<std::int64_t>(arrivals_.epoch());
  }

  // f(row, lane) for all my rows. `read...`, here and below: vectors that f reads at its row, which
  // the engine may fetch ahead from far memory; those of the first rows, `sum` fetches for it.
  template <class F, class... V>
  CPUFREE_KERNEL_FN void rows(F&& f, const V&... read) {
    if constexpr (!P::computes) return;
    parts([&](const Part& part, auto) {
      const std::int32_t shift = part.shift;
      each(part, [&, shift](std::int32_t i, int lane) {
        go_on_ahead(part, i, read...);
        f(Row{i, i - shift}, lane);
      });
    });
  }

  // v[row] = f(row, lane) for all my rows, boundary values also to my neighbours: steps 1 to 4 of
  // an exchange (channel.hpp). Boundary rows come first, so that they travel while the interior is
  // computed. Since `v` was last read there has been a reduction, hence proof (i), and a barrier.
  template <class F, class... V>
  CPUFREE_KERNEL_FN void exchange(const Ghosted<T>& v, F&& f, const V&... read) {
    arrivals_.begin();
    const Ghosted<T> to = v;
    parts([&](const Part& part, auto boundary) {
      const std::int32_t shift = part.shift;
      if constexpr (!P::computes) {
        if (!boundary) return;
      }
      each(part, [&](std::int32_t i, int lane) {
        go_on_ahead(part, i, read...);
        const Row row{i, i - shift};
        T value = 0;
        if constexpr (P::computes) {
          value = f(row, lane);
          to.set(row, value);
        }
        if (boundary) send(to, row, value);
      });
      if constexpr (P::communicates)
        if (boundary && v.halo == nullptr) arrivals_.arrive_remote();
      if constexpr (P::communicates && RemotePort<P>)
        if (boundary) arrivals_.arrive_afar(v.data);
    });
    arrivals_.arrive_local();
  }

  // f(row, lane, (A v)(row)) for all my rows, after `exchange(v, ...)`: steps 5 and 6. Interior
  // rows are multiplied while ghosts may still be under way.
  template <class F, class... V>
  CPUFREE_KERNEL_FN bool multiply(const Ghosted<T>& v, F&& f, const V&... read) {
    return multiply_by(hot(v), [](const auto& x) { return x; }, f, read...);
  }
  // The same for cold code: a product that is short and accurate rather than fast. f is given an
  // AccurateSum.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply_cold(const Ghosted<T>& v, F&& f) {
    return multiply_by(v, [](const auto& x) { return ColdOperand{x}; }, f);
  }

  // `exchange` of one of two scratch vectors, taken in turn: between two exchanges of the same one
  // lies an exchange of the other, hence proof (ii). Returns the vector; its rows may be read until
  // the next but one call.
  template <class F>
  CPUFREE_KERNEL_FN Ghosted<T> exchange_scratch(F&& f) {
    const Ghosted<T> v = (scratch_++ & 1U) == 0U ? vectors.scratch[0] : vectors.scratch[1];
    if (v.halo != nullptr) port_.sync_block();  // all my reads before my first put: proof (ii)
    exchange(v, f);
    return v;
  }

  // f() once for the block, by one thread: for what all threads would do alike, with objects that
  // the block holds. All see it afterwards. Nobody reads what f changes any more: since the last
  // `once`, there has been a verb with a barrier (a reduction, an exchange); else `once_more`.
  template <class F>
  CPUFREE_KERNEL_FN void once(F&& f) {
    if (port_.lane() == 0) f();
    port_.sync_block();
  }

  template <class F>
  CPUFREE_KERNEL_FN void once_more(F&& f) {
    port_.sync_block();
    once(f);
  }

  // Sums over all rows of all PEs. `push` and `pull` alternate. While the sums travel, one thread
  // of the block calls meanwhile(). `next...`: what the loop over rows after it reads.
  template <int K, class F>
  CPUFREE_KERNEL_FN void push(const Lanes<P> (&partial)[K], F&& meanwhile) {
    double sums[K];
    for (int k = 0; k < K; ++k) sums[k] = partial[k].sum();
    reduction_.push(sums);
    if (port_.bookkeeper()) meanwhile();
    port_.mark(Phase::vector);
  }
  template <int K, class... V>
  CPUFREE_KERNEL_FN bool pull(double (&total)[K], const V&... next) {
    begin_ahead(next...);
    port_.mark(Phase::vector);
    const bool here = reduction_.pull(total, notes_, gone_);
    port_.mark(Phase::reduction_wait);
    return here;
  }
  // The totals of the last of these again, so that no register holds them for rare uses.
  template <int K>
  CPUFREE_KERNEL_FN void recall(double (&total)[K]) {
    reduction_.recall(total);
  }
  template <int K>
  CPUFREE_KERNEL_FN bool sum(const Lanes<P> (&partial)[K], double (&total)[K]) {
    return sum(partial, total, [] {});
  }
  template <int K, class F, class... V>
  CPUFREE_KERNEL_FN bool sum(const Lanes<P> (&partial)[K], double (&total)[K], F&& meanwhile,
                             const V&... next) {
    double sums[K];
    for (int k = 0; k < K; ++k) sums[k] = partial[k].sum();
    const bool here = reduction_.sum(sums, total, notes_, gone_, [&] {
      if (port_.bookkeeper()) meanwhile();
      begin_ahead(next...);
      port_.mark(Phase::vector);
    });
    port_.mark(Phase::reduction_wait);
    return here;
  }

 private:
  // My boundary or my interior rows.
  struct Part {
    typename M::Rows rows;
    std::int32_t shift;
    bool boundary;
  };
  template <class U>
  CPUFREE_KERNEL_FN U* on_chip(U* array) const {
    if constexpr (Format::on_chip) return port_.on_chip(array);
    return array;
  }
  CPUFREE_KERNEL_FN bool block_halos() const { return Format::on_chip || args.block_halos; }
  CPUFREE_KERNEL_FN Part boundary() const { return {share_.boundary, share_.boundary_shift, true}; }
  CPUFREE_KERNEL_FN Part interior() const {
    return {share_.interior, share_.interior_shift, false};
  }

  // f(row, lane) for the part's rows, as the format gives them to threads.
  template <class F>
  CPUFREE_KERNEL_FN void each(const Part& part, F&& f) {
    if constexpr (requires { M::template each<Format>(port_, part.rows, f); })
      M::template each<Format>(port_, part.rows, f);
    else
      for_each(port_, part.rows.begin, part.rows.end, f);
  }

  // Where threads are many, one copy of a loop's code for both parts: registers and instruction
  // cache are what is short. Where the compiler vectorises, a copy for each; f's second argument
  // says whether the part is the boundary, there by its type.
  static constexpr bool one_copy = P::width == 1;
  template <class F>
  CPUFREE_KERNEL_FN void parts(F&& f) {
    if constexpr (one_copy) {
      CPUFREE_ONE_COPY
      for (int k = 0; k < 2; ++k) f(k == 0 ? boundary() : interior(), k == 0);
    } else {
      f(boundary(), std::true_type());
      f(interior(), std::false_type());
    }
  }
  template <class F>
  CPUFREE_KERNEL_FN void parts_backwards(F&& f) {
    if constexpr (one_copy) {
      CPUFREE_ONE_COPY
      for (int k = 0; k < 2; ++k) f(k == 0 ? interior() : boundary());
    } else {
      f(interior());
      f(boundary());
    }
  }

  template <class X, class F, class... V>
  CPUFREE_KERNEL_FN void product(const Part& part, const X& x, F&& f, const V&... read) {
    const std::int32_t shift = part.shift;  // a copy: vectorisers do not trust references
    begin_ahead_of(part, read...);
    share_.matrix.template multiply<Format>(port_, part.rows, x,
                                            [&, shift](std::int32_t i, int lane, auto value) {
                                              go_on_ahead(part, i, read...);
                                              if constexpr (P::computes)
                                                f(Row{i, i - shift}, lane, value);
                                            });
  }

  // `as` makes of an operand the one that the format is given.
  template <class As, class F, class... V>
  CPUFREE_KERNEL_FN bool multiply_by(const Ghosted<T>& v, As&& as, F&& f, const V&... read) {
    port_.mark(Phase::vector);
    if (!arrivals_.wait_local()) return false;
    const auto plain = as(Operand<T>{v.data});
    const bool collects = block_halos();
    const bool packets = v.halo != nullptr && !collects;
    const auto any = as(PacketOperandOf<P, T>{port_, v.data, v.halo, args.source, args.rows,
                                              arrivals_.epoch(), gone_});
    bool here = true;
    parts_backwards([&](const Part& part) {
      if (part.boundary && packets) return;
      if (part.boundary && collects) collect(v);
      if constexpr (P::communicates)
        if (part.boundary && !collects) here = arrivals_.wait_halo();
      port_.mark(Phase::halo_wait);
      if constexpr (P::computes)
        if (here) product(part, plain, f, read...);
      port_.mark(Phase::spmv);
    });
    if (packets) product(boundary(), any, f);
    port_.mark(Phase::spmv);
    return here;
  }

  // The three below prefetch (prefetch.hpp) what the next loop over rows reads; over a part's rows;
  // and while a loop is at `row`.
  template <class... V>
  CPUFREE_KERNEL_FN void begin_ahead(const V&... read) {
    if constexpr (P::computes && sizeof...(V) > 0 && FetchingPort<P>)
      if (args.residency.prefetch)
        parts([&](const Part& part, auto) { begin_ahead_of(part, read...); });
  }
  template <class... V>
  CPUFREE_KERNEL_FN void begin_ahead_of(const Part& part, const V&... read) {
    if constexpr (sizeof...(V) > 0 && FetchingPort<P>)
      if (args.residency.prefetch)
        prefetch_first_rounds(port_, part.rows.begin, part.rows.end, part.shift, read...);
  }
  template <class... V>
  CPUFREE_KERNEL_FN void go_on_ahead(const Part& part, std::int32_t row, const V&... read) {
    if constexpr (sizeof...(V) > 0 && FetchingPort<P>)
      if (args.residency.prefetch)
        prefetch_later_round(port_, row, part.rows.end, part.shift, read...);
  }

  // What my rows read of other blocks, from packets to behind my part of v. Each is fetched once,
  // however many rows read it.
  CPUFREE_KERNEL_FN void collect(const Ghosted<T>& v) {
    constexpr int N = P::batch < 4 ? P::batch : 4;
    T* const to = v.data + share_.rows();
    const int lanes = port_.lanes();
    // Warps stay together: all of a warp's threads go on as long as one has something to read.
    const int own = port_.lane() % P::warp_width;
    for (int first = port_.lane(); first - own < share_.read_count && !gone_; first += N * lanes) {
      const int left = first < share_.read_count ? (share_.read_count - 1 - first) / lanes + 1 : 0;
      const auto number = [&](int k) { return at_home(on_chip(share_.reads)[first + k * lanes]); };
      const auto packet = [&](int k) { return v.halo + number(k); };
      const auto site = [&](int k) {
        const std::int32_t from = args.source[number(k)];
        return WaitSite{Channel::halo_arrival, from / port_.blocks(), from % port_.blocks()};
      };
      Packet got[N] = {};
      const int count = left < N ? left : N;
      gone_ = !wait_packets_together(port_, packet, count, arrivals_.epoch(), site, got);
      CPUFREE_UNROLL
      for (int k = 0; k < N; ++k)
        if (k < left) to[first + k * lanes] = static_cast<T>(got[k].value);
    }
    port_.sync_block();
  }

  // The packet itself; where PEs do not communicate, one of my own in place of one that another PE
  // would send. A block that reads some has boundary rows, and so puts some.
  CPUFREE_KERNEL_FN std::int32_t at_home(std::int32_t packet) const {
    if constexpr (!P::communicates)
      if (args.source[packet] / port_.blocks() != port_.pe()) return share_.first_packet;
    return packet;
  }

  CPUFREE_KERNEL_FN void send(const Ghosted<T>& v, Row row, T value) {
    if (block_halos())
      port_.put_packet(v.halo + (share_.first_packet + row.i - share_.boundary.begin), port_.pe(),
                       static_cast<double>(value), make_tag(arrivals_.epoch(), 0U));
    if (row.i >= share_.remote_end || !P::communicates) return;
    const std::int32_t k = row.i - share_.send_shift;
    for (std::int64_t d = args.send_ptr[k]; d < args.send_ptr[k + 1]; ++d) {
      const Destination to = args.destinations[d];
      if (v.halo != nullptr)
        port_.put_packet(v.halo + to.index, to.pe, static_cast<double>(value),
                         make_tag(arrivals_.epoch(), 0U));
      else
        port_.put(v.data + to.index, to.pe, value);
    }
  }

  P& port_;
  const Share& share_;
  Arrivals<P> arrivals_;
  ReductionOf<P> reduction_;
  unsigned notes_;
  unsigned scratch_;
  bool gone_;
};

}  // namespace cpufree
