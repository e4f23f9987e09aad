// The verbs in which the solvers are written: loops over my rows, exchanges, products, sums.
// One Context per thread; all threads of all blocks call the same verbs in the same order.
// A verb that returns false found that a wait gave up: leave the kernel at once.
//
// Several columns. A row of a vector then has K values side by side (`Values`), and so have sums.
// What a verb says of one value holds for each of them: a product reads each entry of A once for
// all columns, and no verb combines two columns. Their halos are stores and flags, as plain packets
// hold one value; but where blocks exchange rows of their own PE as packets, too (block_halo.hpp),
// each row is K packets, one for each column: packets order nothing but themselves, and each is
// waited for by itself, so the proofs of channel.hpp hold for every column.
//
// Studies have verbs of their own: study.hpp.
#pragma once

#include <type_traits>

#include "cpufree/device/channel.hpp"
#include "cpufree/device/reduction.hpp"
#include "cpufree/formats/local.hpp"
#include "cpufree/formats/packet_operand.hpp"
#include "cpufree/solvers/block_rows.hpp"
#include "cpufree/solvers/monitor.hpp"

namespace cpufree {

// `Format`: the matrices that the kernel is for (slice_codes.hpp). K: columns.
template <Port P, class M, class Format = AnySlices, int K = 1>
class Context : public BlockRows<P, M, Format, K> {
  using Rows = BlockRows<P, M, Format, K>;

 public:
  using Rows::args;
  using typename Rows::Args, typename Rows::Share;
  using T = typename M::Value;
  using Values = ValuesOf<T, K>;
  using Sums = Lanes<P, K>;            // partial sums of a thread
  using Totals = ValuesOf<double, K>;  // sums over all rows of all PEs
  using Vector = Ghosted<Values>;
  using BlockVectors = cpufree::BlockVectors<T, K>;
  using Monitor = cpufree::Monitor;
  using PortType = P;
  static constexpr int kColumns = K;
  static constexpr bool kComputes = true;
  // Whether ghosts may arrive as packets, without being collected.
  static constexpr bool kPackets = has_kind(Format::kinds, kHaloPackets) && !Format::on_chip;
  static_assert(K == 1 || !RemotePort<P>, "several columns are for PEs of one node");

  // What changes during a solve.
  struct State {
    Epoch exchanges = 0;
    Epoch reductions = 0;
    unsigned notes = 0;
    unsigned scratch = 0;
    bool gone = false;  // a packet of mine never came
  };

  // `share` and `mine` are views that outlive the context (solve_kernel).
  CPUFREE_KERNEL_FN Context(P& port, const Args& arguments, const Share& share,
                            const BlockVectors& mine, const State& state)
      : Rows(port, arguments, share),
        vectors(mine),
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

  const BlockVectors& vectors;

  CPUFREE_KERNEL_FN P& port() { return port_; }
  CPUFREE_KERNEL_FN bool reports() const {  // the one block that writes what all blocks know
    return port_.pe() == 0 && port_.block() == 0;
  }
  CPUFREE_KERNEL_FN std::int32_t global_row(Row row) const {
    return args.global_row[share_.first_private + row.j];
  }
  // 1 / a_ii; 0 where that was not given.
  CPUFREE_KERNEL_FN double inverse_diagonal(Row row) const {
    const T* const all = args.inverse_diagonal;
    return all == nullptr ? 0.0 : static_cast<double>(all[share_.first_private + row.j]);
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
    parts([&](const Part& part, auto) {
      const std::int32_t shift = part.shift;
      each(part, [&, shift](std::int32_t i, int lane) {
        prefetch_next(part, i, read...);
        f(Row{i, i - shift}, lane);
      });
    });
  }

  // v[row] = f(row, lane) for all my rows, boundary values also to my neighbours: steps 1 to 4 of
  // an exchange (channel.hpp). Boundary rows come first, so that they travel while the interior is
  // computed. Since `v` was last read there has been a reduction, hence proof (i), and a barrier.
  template <class F, class... V>
  CPUFREE_KERNEL_FN void exchange(const Vector& v, F&& f, const V&... read) {
    arrivals_.begin();
    const Vector to = v;
    parts([&](const Part& part, auto boundary) {
      const std::int32_t shift = part.shift;
      each(part, [&](std::int32_t i, int lane) {
        prefetch_next(part, i, read...);
        const Row row{i, i - shift};
        const Values value = f(row, lane);
        to.set(row, value);
        if (boundary) send(to, row, value);
      });
      if (boundary) arrive(v);
    });
    arrivals_.arrive_local();
  }

  // f(row, lane, (A v)(row)) for all my rows, after `exchange(v, ...)`: steps 5 and 6. Interior
  // rows are multiplied while ghosts may still be under way.
  template <class F, class... V>
  CPUFREE_KERNEL_FN bool multiply(const Vector& v, F&& f, const V&... read) {
    if constexpr (K == 1)
      return multiply_by(this->hot(v), [](const auto& x) { return x; }, f, read...);
    else
      return parts_of_product(v, [&](const Part& part) {
        const std::int32_t shift = part.shift;
        multiply_columns<Format>(port_, share_.matrix, part.rows, const_cast<const Values*>(v.data),
                                 [&, shift](std::int32_t i, int lane, const Values& value) {
                                   f(Row{i, i - shift}, lane, value);
                                 });
      });
  }
  // The same for cold code: a product that is short and accurate rather than fast. f is given an
  // AccurateSum, of one column after another, and the column's number.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply_cold(const Vector& v, F&& f) {
    if constexpr (K == 1)
      return multiply_by(
          v, [](const auto& x) { return ColdOperand{x}; },
          [&](Row row, int lane, const AccurateSum<T>& value) { f(row, lane, 0, value); });
    else
      return parts_of_product(v, [&](const Part& part) {
        CPUFREE_ONE_COPY
        for (int k = 0; k < K; ++k)
          multiply_column<Format>(port_, share_.matrix, part.rows,
                                  const_cast<const Values*>(v.data), k,
                                  [&](std::int32_t i, int lane, const auto& value) {
                                    f(Row{i, i - part.shift}, lane, k, value);
                                  });
      });
  }

  // After `exchange(v, ...)`: all entries of v that my PE has are in place, for what reads them
  // otherwise than through A. Halos are stores.
  CPUFREE_KERNEL_FN bool await(const Vector&) {
    return arrivals_.wait_local() && arrivals_.wait_halo();
  }

  // `exchange` of one of two scratch vectors, taken in turn: between two exchanges of the same one
  // lies an exchange of the other, hence proof (ii). Returns the vector; its rows may be read until
  // the next but one call.
  template <class F>
  CPUFREE_KERNEL_FN Vector exchange_scratch(F&& f) {
    const Vector v = next_scratch();
    exchange(v, f);
    return v;
  }

  // Sums over all rows of all PEs. `push` and `pull` alternate. While the sums travel, one thread
  // of the block calls meanwhile(). `next...`: what the loop over rows after it reads.
  template <int N, class F>
  CPUFREE_KERNEL_FN void push(const Sums (&partial)[N], F&& meanwhile) {
    static_assert(K == 1);
    double sums[N];
    for (int n = 0; n < N; ++n) sums[n] = partial[n].sum();
    reduction_.push(sums);
    if (port_.bookkeeper()) meanwhile();
  }
  template <int N, class... V>
  CPUFREE_KERNEL_FN bool pull(double (&total)[N], const V&... next) {
    prefetch_start(next...);
    return reduction_.pull(total, notes_, gone_);
  }
  // The totals of the last of these again, so that no register holds them for rare uses.
  template <int N>
  CPUFREE_KERNEL_FN void recall(double (&total)[N]) {
    reduction_.recall(total);
  }
  template <int N>
  CPUFREE_KERNEL_FN bool sum(const Sums (&partial)[N], Totals (&total)[N]) {
    return sum(partial, total, [] {});
  }
  // N sums of each column, in one all-reduce.
  template <int N, class F, class... V>
  CPUFREE_KERNEL_FN bool sum(const Sums (&partial)[N], Totals (&total)[N], F&& meanwhile,
                             const V&... next) {
    double sums[N * K], totals[N * K];
    CPUFREE_UNROLL
    for (int n = 0; n < N; ++n) {
      const Totals lanes = partial[n].sum();
      CPUFREE_UNROLL
      for (int k = 0; k < K; ++k) sums[n * K + k] = of_column(lanes, k);
    }
    const bool here = sum_numbers(sums, totals, meanwhile, next...);
    CPUFREE_UNROLL
    for (int n = 0; n < N; ++n) {
      CPUFREE_UNROLL
      for (int k = 0; k < K; ++k) of_column(total[n], k) = totals[n * K + k];
    }
    return here;
  }
  // Sums of N numbers of each thread, in one all-reduce.
  template <int N, class F, class... V>
  CPUFREE_KERNEL_FN bool sum_numbers(const double (&partial)[N], double (&total)[N], F&& meanwhile,
                                     const V&... next) {
    static_assert(N <= most_sums(K));
    return reduction_.sum(partial, total, notes_, gone_, [&] {
      if (port_.bookkeeper()) meanwhile();
      prefetch_start(next...);
    });
  }

 protected:
  using Rows::each, Rows::parts, Rows::parts_backwards, Rows::port_, Rows::share_;
  using Rows::on_chip, Rows::prefetch_next, Rows::prefetch_part, Rows::prefetch_start;
  using typename Rows::Part;

  CPUFREE_KERNEL_FN bool block_halos() const {
    return Format::on_chip || (!Format::stores && args.block_halos);
  }
  CPUFREE_KERNEL_FN Vector next_scratch() {
    const Vector v = (scratch_++ & 1U) == 0U ? vectors.scratch[0] : vectors.scratch[1];
    if (v.halo != nullptr) port_.sync_block();  // all my reads before my first put: proof (ii)
    return v;
  }

  template <class X, class F, class... V>
  CPUFREE_KERNEL_FN void product(const Part& part, const X& x, F&& f, const V&... read) {
    const std::int32_t shift = part.shift;  // a copy: vectorisers do not trust references
    prefetch_part(part, read...);
    share_.matrix.template multiply<Format>(port_, part.rows, x,
                                            [&, shift](std::int32_t i, int lane, auto value) {
                                              prefetch_next(part, i, read...);
                                              f(Row{i, i - shift}, lane, value);
                                            });
  }

  // f(part) once what the part's rows read has come; of several columns.
  template <class F>
  CPUFREE_KERNEL_FN bool parts_of_product(const Vector& v, F&& f) {
    if (!arrivals_.wait_local()) return false;
    bool here = true;
    parts_backwards([&](const Part& part, auto) {
      if (part.boundary && args.block_halos) collect(v);
      if (part.boundary && !args.block_halos) here = arrivals_.wait_halo();
      if (here) f(part);
    });
    return here;
  }

  // `as` makes of an operand the one that the format is given.
  template <class As, class F, class... V>
  CPUFREE_KERNEL_FN bool multiply_by(const Vector& v, As&& as, F&& f, const V&... read) {
    if (!arrivals_.wait_local()) return false;
    const auto plain = as(Operand<T>{v.data});
    const bool collects = block_halos();
    const bool packets = kPackets && v.halo != nullptr && !collects;
    bool here = true;
    parts_backwards([&](const Part& part, auto) {
      if (part.boundary && packets) return;
      if (part.boundary && collects) collect(v);
      if (part.boundary && !collects) here = arrivals_.wait_halo();
      if (here) product(part, plain, f, read...);
    });
    if constexpr (kPackets)
      if (packets) product(this->boundary(), as(packet_operand(v)), f);
    return here;
  }
  CPUFREE_KERNEL_FN PacketOperand<P, T> packet_operand(const Vector& v) {
    return {port_, v.data, v.halo, args.source, args.rows, arrivals_.epoch(), gone_};
  }

  // What my rows read of other blocks, from packets to behind my part of v. Each is fetched once,
  // however many rows read it.
  CPUFREE_KERNEL_FN void collect(const Vector& v) {
    collect(v, [](std::int32_t packet) { return packet; });
  }
  // The same of place(packet) in place of a packet.
  template <class F>
  CPUFREE_KERNEL_FN void collect(const Vector& v, F&& place) {
    constexpr int N = P::batch < 4 ? P::batch : 4;
    T* const to = reinterpret_cast<T*>(v.data + share_.rows());
    const int lanes = port_.lanes();
    const int all = share_.read_count * K;
    // Warps stay together: all of a warp's threads go on as long as one has something to read.
    const int own = port_.lane() % P::warp_width;
    for (int first = port_.lane(); first - own < all && !gone_; first += N * lanes) {
      const int left = first < all ? (all - 1 - first) / lanes + 1 : 0;
      const auto number = [&](int n) {
        return place(on_chip(share_.reads)[(first + n * lanes) / K]);
      };
      const auto packet = [&](int n) { return packets_of(v, number(n)) + (first + n * lanes) % K; };
      const auto site = [&](int n) {
        const std::int32_t from = args.source[number(n)];
        return WaitSite{Channel::halo_arrival, from / port_.blocks(), from % port_.blocks()};
      };
      Packet got[N] = {};
      const int count = left < N ? left : N;
      gone_ = !wait_packets_together(port_, packet, count, arrivals_.epoch(), site, got);
      CPUFREE_UNROLL
      for (int n = 0; n < N; ++n)
        if (n < left) to[first + n * lanes] = static_cast<T>(got[n].value);
    }
    port_.sync_block();
  }

  // The packets of a row or a ghost of v, by its number.
  CPUFREE_KERNEL_FN static Packet* packets_of(const Vector& v, std::int32_t number) {
    if constexpr (K == 1)
      return v.halo + number;
    else
      return v.halo + static_cast<std::int64_t>(number) * K;
  }

  // Step 1 of an exchange: a boundary row to those that read it, in my PE and in others.
  CPUFREE_KERNEL_FN void send(const Vector& v, Row row, const Values& value) {
    send_within(v, row, value);
    if (row.i >= share_.remote_end) return;
    const std::int32_t k = row.i - share_.send_shift;
    for (std::int64_t d = args.send_ptr[k]; d < args.send_ptr[k + 1]; ++d) {
      const Destination to = args.destinations[d];
      if (v.halo != nullptr)
        put_packets(v, to.index, to.pe, value);
      else if constexpr (K == 1)
        port_.put(v.data + to.index, to.pe, value);
      else
        port_.put(v.data + (args.first_ghost != nullptr ? args.first_ghost[to.pe] : 0) + to.index,
                  to.pe, value);
    }
  }
  CPUFREE_KERNEL_FN void send_within(const Vector& v, Row row, const Values& value) {
    if (block_halos())
      put_packets(v, share_.first_packet + row.i - share_.boundary.begin, port_.pe(), value);
  }
  // Step 2: all of them are sent.
  CPUFREE_KERNEL_FN void arrive(const Vector& v) {
    if (v.halo == nullptr) arrivals_.arrive_remote();
    if constexpr (RemotePort<P>) arrivals_.arrive_afar(v.data);
  }
  CPUFREE_KERNEL_FN void put_packets(const Vector& v, std::int32_t number, int pe,
                                     const Values& value) {
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k)
      port_.put_packet(packets_of(v, number) + k, pe, static_cast<double>(of_column(value, k)),
                       make_tag(arrivals_.epoch(), 0U));
  }

  Arrivals<P> arrivals_;
  ReductionOf<P> reduction_;
  unsigned notes_;
  unsigned scratch_;
  bool gone_;
};

}  // namespace cpufree
