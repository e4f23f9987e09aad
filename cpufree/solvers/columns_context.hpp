// The verbs of Context (context.hpp) for K columns at once: loops over my rows, exchanges,
// products, sums. What is said there holds here, row by row with K values in place of one.
//
// Halos are stores and flags, as plain packets hold one value; but where blocks exchange rows of
// their own PE as packets, too (block_halo.hpp), each row is K packets, one for each column:
// packets order nothing but themselves, and each is waited for by itself, so the proofs of
// channel.hpp hold for every column.
#pragma once

#include <type_traits>

#include "cpufree/device/channel.hpp"
#include "cpufree/device/reduction.hpp"
#include "cpufree/formats/columns_product.hpp"
#include "cpufree/solvers/columns_args.hpp"

namespace cpufree {

// Partial sums of a thread, K columns of each SIMD lane.
template <Port P, int K>
struct ColumnSums {
  Columns<double, K> lane[static_cast<unsigned>(P::width)] = {};
  CPUFREE_KERNEL_FN Columns<double, K>& operator[](int l) { return lane[l]; }
  // Over the lanes, halves first, as Lanes::sum.
  CPUFREE_KERNEL_FN Columns<double, K> sum() const {
    Columns<double, K> v[static_cast<unsigned>(P::width)];
    for (int l = 0; l < P::width; ++l) v[l] = lane[l];
    for (int half = P::width / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) v[l] += v[l + half];
    return v[0];
  }
};

template <Port P, class M, int K>
class ColumnsContext {
 public:
  using T = typename M::Value;
  using PortType = P;
  using Values = Columns<T, K>;
  using Sums = ColumnSums<P, K>;
  using Totals = Columns<double, K>;
  using Vector = GhostedColumns<T, K>;
  using Share = BlockShare<M>;
  static constexpr int kColumns = K;
  static_assert(!RemotePort<P>, "PEs of one node alone");

  // `share` is a view that outlives the context.
  CPUFREE_KERNEL_FN ColumnsContext(P& port, const ColumnsArgs<M, K>& arguments, const Share& share)
      : args(arguments),
        x{args.x + share.first_private},
        r{args.r + share.first_private},
        s{args.s + share.first_private},
        b{args.b + share.first_private},
        inverse_diagonal{args.inverse_diagonal + share.first_private},
        p(exchanged(args.p, args.halo[0], share)),
        port_(port),
        share_(share),
        arrivals_(port, share_.board),
        reduction_(port, args.slots) {}

  const ColumnsArgs<M, K>& args;
  const Private<Values> x, r, s;
  const Private<const Values> b;
  const Private<const T> inverse_diagonal;
  const Vector p;

  CPUFREE_KERNEL_FN P& port() { return port_; }
  CPUFREE_KERNEL_FN bool reports() const { return port_.pe() == 0 && port_.block() == 0; }
  CPUFREE_KERNEL_FN unsigned notes() const { return notes_; }
  CPUFREE_KERNEL_FN std::int64_t reductions() const {
    return static_cast<std::int64_t>(reduction_.epoch());
  }
  CPUFREE_KERNEL_FN std::int64_t exchanges() const {
    return static_cast<std::int64_t>(arrivals_.epoch());
  }

  // f(row, lane) for all my rows.
  template <class F>
  CPUFREE_KERNEL_FN void rows(F&& f) {
    parts([&](const Part& part, auto) {
      const std::int32_t shift = part.shift;
      each_of_columns<M>(port_, part.rows,
                         [&, shift](std::int32_t i, int lane) { f(Row{i, i - shift}, lane); });
    });
  }

  // v[row] = f(row, lane) for all my rows, boundary values also to my neighbours.
  template <class F>
  CPUFREE_KERNEL_FN void exchange(const Vector& v, F&& f) {
    arrivals_.begin();
    const Vector to = v;
    parts([&](const Part& part, auto boundary) {
      const std::int32_t shift = part.shift;
      each_of_columns<M>(port_, part.rows, [&](std::int32_t i, int lane) {
        const Row row{i, i - shift};
        const Values value = f(row, lane);
        to[row] = value;
        if (boundary) send(to, row, value);
      });
      if (boundary && v.halo == nullptr) arrivals_.arrive_remote();
    });
    arrivals_.arrive_local();
  }

  // f(row, lane, (A v)(row)) for all my rows, after `exchange(v, ...)`.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply(const Vector& v, F&& f) {
    return parts_of_product(v, [&](const Part& part) {
      const std::int32_t shift = part.shift;
      multiply_columns(port_, share_.matrix, part.rows, const_cast<const Values*>(v.data),
                       [&, shift](std::int32_t i, int lane, const Values& value) {
                         f(Row{i, i - shift}, lane, value);
                       });
    });
  }
  // The same for cold code, accurate rather than fast: f(row, lane, column, an AccurateSum), column
  // after column.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply_cold(const Vector& v, F&& f) {
    return parts_of_product(v, [&](const Part& part) {
      const std::int32_t shift = part.shift;
      CPUFREE_ONE_COPY
      for (int k = 0; k < K; ++k)
        multiply_column(port_, share_.matrix, part.rows, const_cast<const Values*>(v.data), k,
                        [&, shift](std::int32_t i, int lane, const AccurateSum<T>& value) {
                          f(Row{i, i - shift}, lane, k, value);
                        });
    });
  }

  // `exchange` of one of two scratch vectors, taken in turn: proof (ii), with the barrier that it
  // asks for where packets travel.
  template <class F>
  CPUFREE_KERNEL_FN Vector exchange_scratch(F&& f) {
    const unsigned turn = scratch_++ & 1U;
    const Vector v = exchanged(args.scratch[turn], args.halo[1U + turn], share_);
    if (v.halo != nullptr) port_.sync_block();
    exchange(v, f);
    return v;
  }

  // f(k) for every column, each by one thread of the block, which sees what the others have done
  // afterwards. Since what f changes was last read there has been a verb with a barrier.
  template <class F>
  CPUFREE_KERNEL_FN void each_column(F&& f) {
    for (int k = port_.lane(); k < K; k += port_.lanes()) f(k);
    port_.sync_block();
  }

  // Sums over all rows of all PEs: N sums of each column, in one all-reduce where that is wide
  // enough, else in one for each sum.
  template <int N>
  CPUFREE_KERNEL_FN bool sum(const Sums (&partial)[N], Totals (&total)[N]) {
    if constexpr (N * K <= kReduceWidth) {
      double mine[N * K];
      double all[N * K];
      CPUFREE_UNROLL
      for (int n = 0; n < N; ++n) {
        const Totals lanes = partial[n].sum();
        CPUFREE_UNROLL
        for (int k = 0; k < K; ++k) mine[n * K + k] = lanes[k];
      }
      const bool here = reduction_.sum(mine, all, notes_, gone_, [] {});
      CPUFREE_UNROLL
      for (int n = 0; n < N; ++n) total[n] = Totals::each([&](int k) { return all[n * K + k]; });
      return here;
    } else {
      static_assert(K <= kReduceWidth);
      unsigned notes = 0;  // of all of them: a note comes with one
      CPUFREE_UNROLL
      for (int n = 0; n < N; ++n) {
        double mine[K];
        double all[K];
        const Totals lanes = partial[n].sum();
        CPUFREE_UNROLL
        for (int k = 0; k < K; ++k) mine[k] = lanes[k];
        if (!reduction_.sum(mine, all, notes_, gone_, [] {})) return false;
        total[n] = Totals::each([&](int k) { return all[k]; });
        notes |= notes_;
      }
      notes_ = notes;
      return true;
    }
  }

 private:
  // My boundary or my interior rows.
  struct Part {
    typename M::Rows rows;
    std::int32_t shift;
    bool boundary;
  };
  CPUFREE_KERNEL_FN Part boundary() const { return {share_.boundary, share_.boundary_shift, true}; }
  CPUFREE_KERNEL_FN Part interior() const {
    return {share_.interior, share_.interior_shift, false};
  }

  // One copy of a loop's code for both parts, or two: as in Context.
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

  // f(part) once what the part's rows read has come. False: a wait gave up.
  template <class F>
  CPUFREE_KERNEL_FN bool parts_of_product(const Vector& v, F&& f) {
    if (!arrivals_.wait_local()) return false;
    bool here = true;
    parts_backwards([&](const Part& part) {
      if (part.boundary && args.block_halos) collect(v);
      if (part.boundary && !args.block_halos) here = arrivals_.wait_halo();
      if (here) f(part);
    });
    return here;
  }

  // My block's view of an exchanged vector.
  CPUFREE_KERNEL_FN Vector exchanged(Values* all, Packet* halo, const Share& share) const {
    if (!args.block_halos) return {all, nullptr, 0};
    return {all + share.first_operand, halo, share.boundary.begin};
  }

  CPUFREE_KERNEL_FN void send(const Vector& v, Row row, const Values& value) {
    if (args.block_halos)
      send_packets(v.halo, share_.first_packet + row.i - share_.boundary.begin, port_.pe(), value);
    if (row.i >= share_.remote_end) return;
    const std::int32_t k = row.i - share_.send_shift;
    for (std::int64_t d = args.send_ptr[k]; d < args.send_ptr[k + 1]; ++d) {
      const Destination to = args.destinations[d];
      if (args.block_halos) {
        send_packets(v.halo, to.index, to.pe, value);
      } else {
        const std::int32_t first = args.first_ghost != nullptr ? args.first_ghost[to.pe] : 0;
        port_.put(v.data + first + to.index, to.pe, value);
      }
    }
  }

  CPUFREE_KERNEL_FN void send_packets(Packet* halo, std::int32_t number, int pe,
                                      const Values& value) {
    Packet* const to = halo + static_cast<std::int64_t>(number) * K;
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k)
      port_.put_packet(to + k, pe, static_cast<double>(value[k]), make_tag(arrivals_.epoch(), 0U));
  }

  // What my rows read of other blocks, from packets to behind my part of v.
  CPUFREE_KERNEL_FN void collect(const Vector& v) {
    constexpr int N = P::batch < 4 ? P::batch : 4;
    T* const to = (v.data + share_.rows())->values();
    const int lanes = port_.lanes();
    const int count = share_.read_count * K;
    // Warps stay together: all of a warp's threads go on as long as one has something to read.
    const int own = port_.lane() % P::warp_width;
    for (int first = port_.lane(); first - own < count && !gone_; first += N * lanes) {
      const int left = first < count ? (count - 1 - first) / lanes + 1 : 0;
      const auto read = [&](int n) { return share_.reads[(first + n * lanes) / K]; };
      const auto packet = [&](int n) {
        return v.halo + static_cast<std::int64_t>(read(n)) * K + (first + n * lanes) % K;
      };
      const auto site = [&](int n) {
        const std::int32_t from = args.source[read(n)];
        return WaitSite{Channel::halo_arrival, from / port_.blocks(), from % port_.blocks()};
      };
      Packet got[N] = {};
      const int now = left < N ? left : N;
      gone_ = !wait_packets_together(port_, packet, now, arrivals_.epoch(), site, got);
      CPUFREE_UNROLL
      for (int n = 0; n < N; ++n)
        if (n < left) to[first + n * lanes] = static_cast<T>(got[n].value);
    }
    port_.sync_block();
  }

  P& port_;
  const Share& share_;
  Arrivals<P> arrivals_;
  AllReduce<P> reduction_;
  unsigned notes_ = 0;
  unsigned scratch_ = 0;
  bool gone_ = false;  // a packet of mine never came
};

}  // namespace cpufree
