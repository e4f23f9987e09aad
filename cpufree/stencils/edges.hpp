// The exchange of halos among tiles, on one PE or on several alike: no barrier over the grid of
// blocks, neighbours talk to neighbours only.
//
// Each edge that a tile receives has a mailbox in the receiver's symmetric memory, for two
// parities. Exchange e, seen from block a:
//
//   1. a has computed its points, and a block barrier lies behind that;
//   2. send: a puts the points along its edges into the mailboxes of its neighbours, parity e;
//   3. receive: a waits for the points of e in its own mailboxes, and copies them to its halo; a
//      block barrier ends it.
//
// Small halos travel as packets, which carry e: one hop, no fence. Large ones are values, with one
// fence for all neighbours and a flag for each.
//
// Visibility (read after write). A packet is whole or not there. Values: the sender published all
// that its block had put before it stored the flag, and the receiver acquires after it saw the
// flag.
//
// Reuse (write after read). Tiles either send to each other or not at all (make_tiling). Let a send
// to b. The mailbox of e is written again in e + 2, by threads of a that have passed the barrier at
// the end of receive(e + 1), so a has got b's points of e + 1, all of them. b put the first of
// these after a barrier that followed receive(e), in which b had read the mailbox of e to its end.
// So when a writes it again, b has read it: two parities suffice, without credits, and no mailbox
// ever holds a later epoch than the one waited for. Nothing else is shared among tiles.
#pragma once

#include "cpufree/stencils/neighbours.hpp"
#include "cpufree/stencils/sweep.hpp"

namespace cpufree {

template <Port P, class T>
class Edges {
 public:
  CPUFREE_KERNEL_FN Edges(P& port, const TileArgs<T>& tile, const Mailboxes<T>& mailboxes)
      : port_(port), tile_(tile), mailboxes_(mailboxes) {}

  CPUFREE_KERNEL_FN Epoch epoch() const { return epoch_; }

  // Steps 1 and 2, for the points in `values`.
  CPUFREE_KERNEL_FN void send(const Layer<T>& values) {
    ++epoch_;
    if (tile_.edges == 0) return;
    mailboxes_.packets != nullptr ? send_packets(values) : send_values(values);
  }

  // Step 3. False: leave the kernel.
  CPUFREE_KERNEL_FN bool receive(const Layer<T>& values) {
    if (tile_.edges == 0) return true;
    return mailboxes_.packets != nullptr ? receive_packets(values) : receive_values(values);
  }

 private:
  CPUFREE_KERNEL_FN std::int64_t parity() const {
    return static_cast<std::int64_t>(epoch_ & 1U) * mailboxes_.size;
  }

  // f(edge, k, value) for my threads' share of all points k of all edges.
  template <class F>
  CPUFREE_KERNEL_FN void each_of_all(const TileEdge* edges, const Layer<T>& values, F&& f) {
    std::int32_t e = 0;
    const std::int32_t all = edges[tile_.edges - 1].first + edges[tile_.edges - 1].points;
    for (std::int32_t q = port_.lane(); q < all; q += port_.lanes()) {
      while (q >= edges[e].first + edges[e].points) ++e;
      const TileEdge& edge = edges[e];
      if (!exchanges_with(port_, edge.pe)) continue;
      const std::int32_t k = q - edge.first;
      const std::int32_t width = edge.hi[2] - edge.lo[2];
      const std::int32_t rows = edge.hi[1] - edge.lo[1];
      const std::int32_t row = k / width;
      T* const to = values.row(tile_.shape, edge.lo[0] + row / rows, edge.lo[1] + row % rows);
      f(edge, k, to[edge.lo[2] + (k - row * width)]);
    }
  }

  // f(k, row, width) for the rows of an edge, by one team each: points k and on of the edge.
  template <class F>
  CPUFREE_KERNEL_FN void each_row_of(const TileEdge& edge, const Layer<T>& values, F&& f) {
    const TileBox box{{edge.lo[0], edge.lo[1], edge.lo[2]}, {edge.hi[0], edge.hi[1], edge.hi[2]}};
    const std::int32_t width = box.hi[2] - box.lo[2];
    each_row(port_, box, [&](std::int32_t i0, std::int32_t i1) {
      const std::int32_t row = (i0 - box.lo[0]) * (box.hi[1] - box.lo[1]) + (i1 - box.lo[1]);
      f(row * width, values.row(tile_.shape, i0, i1) + box.lo[2], width);
    });
  }

  // f(edge) for those of other PEs, by the first thread: for a port that traces.
  template <class F>
  CPUFREE_KERNEL_FN void tell(const TileEdge* edges, F&& f) {
    if (port_.lane() != 0) return;
    for (std::int32_t e = 0; e < tile_.edges; ++e)
      if (edges[e].pe != port_.pe()) f(edges[e]);
  }

  CPUFREE_KERNEL_FN void send_packets(const Layer<T>& values) {
    const std::uint64_t tag = make_tag(epoch_, 0U);
    Packet* const packets = mailboxes_.packets + parity();
    if constexpr (TracingPort<P>)
      tell(tile_.sends,
           [&](const TileEdge& edge) { port_.puts(packets + edge.mailbox, edge.pe, epoch_); });
    each_of_all(tile_.sends, values, [&](const TileEdge& edge, std::int32_t k, const T& value) {
      port_.put_packet(packets + edge.mailbox + k, edge.pe, static_cast<double>(value), tag);
    });
  }

  CPUFREE_KERNEL_FN bool receive_packets(const Layer<T>& values) {
    const Packet* const packets = mailboxes_.packets + parity();
    bool here = true;
    each_of_all(tile_.receives, values, [&](const TileEdge& edge, std::int32_t k, T& value) {
      Packet got[1] = {};
      const auto site = [&](int) { return WaitSite{Channel::halo_arrival, edge.pe, edge.block}; };
      here =
          here && wait_packets(
                      port_, [&](int) { return packets + edge.mailbox + k; }, 1, epoch_, site, got);
      value = static_cast<T>(got[0].value);
    });
    here = port_.all(here);
    if constexpr (TracingPort<P>)
      if (here)
        tell(tile_.receives, [&](const TileEdge& edge) {
          port_.has_come(packets + edge.mailbox, edge.pe, epoch_);
        });
    return here;
  }

  CPUFREE_KERNEL_FN void send_values(const Layer<T>& values) {
    T* const to = mailboxes_.values + parity();
    for (std::int32_t e = 0; e < tile_.edges; ++e) {
      const TileEdge& edge = tile_.sends[e];
      if (!exchanges_with(port_, edge.pe)) continue;
      each_row_of(edge, values, [&](std::int32_t k, const T* row, std::int32_t width) {
        T* const mailbox = to + edge.mailbox + k;
        each_point(port_, 0, width,
                   [&](std::int32_t x) { port_.put(mailbox + x, edge.pe, row[x]); });
      });
    }
    tell_neighbours(port_, tile_, mailboxes_.flags, epoch_);
  }

  CPUFREE_KERNEL_FN bool receive_values(const Layer<T>& values) {
    if (!await_neighbours(port_, tile_, mailboxes_.flags, epoch_)) return false;
    const T* const from = mailboxes_.values + parity();
    for (std::int32_t e = 0; e < tile_.edges; ++e) {
      const TileEdge& edge = tile_.receives[e];
      if (!exchanges_with(port_, edge.pe)) continue;
      each_row_of(edge, values, [&](std::int32_t k, T* row, std::int32_t width) {
        const T* const mailbox = from + edge.mailbox + k;
        each_point(port_, 0, width, [=](std::int32_t x) { row[x] = mailbox[x]; });
      });
    }
    port_.sync_block();
    return true;
  }

  P& port_;
  const TileArgs<T>& tile_;
  const Mailboxes<T>& mailboxes_;
  Epoch epoch_ = 0;
};

}  // namespace cpufree
