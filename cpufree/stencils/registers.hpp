// Tiles in registers: two dimensions, for blocks that are made of warps.
//
// Lane l of warp y holds R rows (or R - 1) of C columns of the block's tile: columns C l and on, of
// rows that follow those of warp y - 1. Neighbours above and below are the thread's own, those
// beside come from the next lane. Only a warp's first and last row pass through shared memory, for
// the warps above and below.
//
//   bytes     C R values a thread: 64 floats of 512 threads are 128 KB of the register file's 256
//   work      3 additions and 1 multiplication a point, 1 selection; 2 shuffles, 2 selections and
//             1 read for C points: 6 instructions a point where C = 4
//
// One exchange follows every iteration. All halos are packets, straight from the thread that has
// computed a value (through the warp for columns), to the thread that needs it: no barrier lies
// between a value and its neighbour in another block. One block barrier an iteration serves the
// warps' rows.
//
// In place without copies. The rows lie in R + 1 slots. Going down, row r is written to slot r
// while rows r and r + 1 are still in the slots r + 1 and r + 2; going up, from slot r to slot r +
// 1 again. So the iterations go down and up in turn, and every slot stays a register.
//
// The warps' rows: two parities. In iteration i a warp reads parity i, written before the barrier
// of i - 1, and writes parity i + 1, last read before that barrier.
//
// Mailboxes: two parities, and no barrier needed. Let t be the lane that sends point p across a
// face, and u the one that sends the point q beside it back. Tiles side by side have the same rows
// or columns, hence the same lanes. t writes the mailbox of p for exchange e + 2 after it computed
// p in iteration e + 2, for which q of exchange e + 1 was read; u sent that after it had computed q
// in iteration e + 1, for which p of exchange e was read out of the mailbox. (Where the lane that
// reads a mailbox is not the one that computes with it, both are of one warp, and warp_sync lies
// between.) So what t overwrites has been read, and no mailbox ever holds a later epoch than the
// one waited for.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/device/warp_port.hpp"
#include "cpufree/stencils/iterate.hpp"
#include "cpufree/stencils/register_shape.hpp"
#include "cpufree/stencils/tile_values.hpp"

namespace cpufree {

// With whom a tile exchanges across its four sides: 0 above, 1 below, 2 left, 3 right.
struct RegisterLinks {
  std::int64_t get[4] = {-1, -1, -1, -1};  // mailbox in my memory; negative: none
  std::int64_t put[4] = {-1, -1, -1, -1};  // mailbox in theirs
  std::int32_t pe[4] = {}, block[4] = {};
};

CPUFREE_KERNEL_FN int side_of(const TileShape& s, const TileEdge& halo) {
  if (halo.lo[0] < s.lo[0]) return 0;
  if (halo.lo[0] >= s.hi[0]) return 1;
  return halo.lo[2] < s.lo[2] ? 2 : 3;
}

template <class P, class T>
CPUFREE_KERNEL_FN RegisterLinks links_of(const P& port, const TileArgs<T>& tile) {
  RegisterLinks links;
  for (std::int32_t e = 0; e < tile.edges; ++e) {  // sends and receives are in the same order
    const TileEdge& edge = tile.receives[e];
    if (!exchanges_with(port, edge.pe)) continue;
    const int side = side_of(tile.shape, edge);
    links.get[side] = edge.mailbox;
    links.pe[side] = edge.pe;
    links.block[side] = edge.block;
    links.put[side] = tile.sends[e].mailbox;
  }
  return links;
}

template <WarpPort P, class T, int C, int R, bool kSource>
class RegisterTile {
 public:
  static_assert(R <= 16, "a lane receives one packet of the columns");

  // Starts with the values of `args`. Ends with a block barrier.
  CPUFREE_KERNEL_FN RegisterTile(P& port, const TileShape& shape, const RegisterLinks& links,
                                 const JacobiArgs<T>& args)
      : port_(port), shape_(shape), links_(links), mailboxes_(args.mailboxes) {
    const std::int32_t warps = (height() + R - 1) / R;
    const std::int32_t taller = height() - warps * (R - 1);  // warps that have R rows
    warp_ = port.warp();
    works_ = warp_ < warps;
    last_ = warp_ == warps - 1;
    full_ = warp_ < taller;
    row_ = warp_ * (R - 1) + (full_ ? warp_ : taller);
    column_ = port.warp_lane() * C;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) owned_[c] = column_ + c < width();
    load(args);
    port.sync_block();
  }

  CPUFREE_KERNEL_FN Epoch exchanges() const { return epoch_; }
  CPUFREE_KERNEL_FN std::int32_t steps(std::int32_t) const { return 1; }

  CPUFREE_KERNEL_FN void advance(std::int32_t, bool measured, Change<P>& change) {
    if constexpr (!P::computes) {
      touch();
    } else if (works_) {
      if (measured)
        odd_ ? sweep<false, true>(change) : sweep<true, true>(change);
      else
        odd_ ? sweep<false, false>(change) : sweep<true, false>(change);
    }
    odd_ = !odd_;
  }

  CPUFREE_KERNEL_FN void send() {
    ++epoch_;
    if (works_) odd_ ? hand_out<0>() : hand_out<1>();
    alive_ = port_.all(here_);
  }

  // A wait that was given up here is seen at the next exchange.
  CPUFREE_KERNEL_FN bool receive() {
    if (!alive_) return false;
    if (works_) {
      const int side = warp_ == 0 ? 0 : 1;
      const bool rows = (warp_ == 0 || last_) && links_.get[side] >= 0;
      here_ = here_ && (rows ? take<C + 1>(side, true) : take<1>(side, true));
      if (warp_ == 0 && last_ && links_.get[1] >= 0) here_ = here_ && take<C + 1>(1, false);
    }
    port_.warp_sync();
    return true;
  }

  // Writes the owned points to the result.
  CPUFREE_KERNEL_FN void store(const GridView<T>& out) const {
    if (!works_) return;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c)
        if (owned_[c] && (r < R - 1 || full_))
          place(out, row_ + r, column_ + c) = odd_ ? slot_[r][c] : slot_[r + 1][c];
    }
  }

 private:
  using Room = RegisterRoom<T, C, R>;

  CPUFREE_KERNEL_FN std::int32_t height() const { return shape_.hi[0] - shape_.lo[0]; }
  CPUFREE_KERNEL_FN std::int32_t width() const { return shape_.hi[2] - shape_.lo[2]; }
  CPUFREE_KERNEL_FN std::int32_t rows() const { return full_ ? R : R - 1; }
  CPUFREE_KERNEL_FN T* memory() const { return reinterpret_cast<T*>(port_.fast_memory()); }
  // The row next to mine that the warp (or tile) above or below has: what `parity` reads.
  CPUFREE_KERNEL_FN T* row_above(int parity) const {
    return memory() + Room::row(port_.warps(), parity, 2 * warp_) + column_;
  }
  CPUFREE_KERNEL_FN T* row_below(int parity) const {
    return memory() + Room::row(port_.warps(), parity, 2 * warp_ + 3) + column_;
  }
  CPUFREE_KERNEL_FN T* edge(int side) const {
    return memory() + Room::edge(port_.warps(), warp_) + side * R;
  }
  CPUFREE_KERNEL_FN T* leaving(int side) const {
    return memory() + Room::leaving(port_.warps(), warp_) + side * R * C;
  }
  CPUFREE_KERNEL_FN const T* source(int r) const {
    return memory() + Room::source(port_.warps(), warp_) + r * port_.warps() * Room::kWidth +
           column_;
  }

  template <class V>
  CPUFREE_KERNEL_FN V& place(const GridView<V>& view, std::int32_t row, std::int32_t column) const {
    return view(shape_.origin[0] + shape_.lo[0] + row, shape_.origin[1],
                shape_.origin[2] + shape_.lo[2] + column);
  }

  // My points, and the halo before the first iteration: the values there, or those that it keeps.
  CPUFREE_KERNEL_FN void load(const JacobiArgs<T>& args) {
    if (!works_) return;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) {
        const bool mine = owned_[c] && r < rows();
        slot_[r + 1][c] = mine ? place(args.start, row_ + r, column_ + c) : T{};
        if constexpr (kSource)
          const_cast<T*>(source(r))[c] = mine ? place(args.source, row_ + r, column_ + c) : T{};
      }
    }
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) {
      slot_[0][c] = T{};
      if (!owned_[c]) continue;
      row_above(0)[c] = row_above(1)[c] = place(args.start, row_ - 1, column_ + c);
      row_below(0)[c] = row_below(1)[c] = place(args.start, row_ + rows(), column_ + c);
    }
    const std::int32_t r = port_.warp_lane() % 16;
    const int side = port_.warp_lane() / 16;
    if (r < rows()) edge(side)[r] = place(args.start, row_ + r, side == 0 ? -1 : width());
  }

  // For studies without computing: the compiler is not to know that values are those of before. It
  // would keep them twice, as what is sent too, and run out of registers.
  CPUFREE_KERNEL_FN void touch() {
    CPUFREE_UNROLL
    for (int r = 0; r < R + 1; ++r) {
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) slot_[r][c] = port_.in_register(slot_[r][c]);
    }
  }

  // One iteration. kDown: row r lies in slot r + 1 and goes to slot r, else the other way.
  template <bool kDown, bool kMeasured>
  CPUFREE_KERNEL_FN void sweep(Change<P>& change) {
    constexpr int parity = kDown ? 0 : 1;
    constexpr int from = kDown ? 1 : 0, to = 1 - from;
    T above[C], below[C];
    load_pack(row_above(parity), above);
    load_pack(row_below(parity), below);
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      if (!full_) slot_[R - 1 + from][c] = below[c];
    const bool first = port_.warp_lane() == 0, final_lane = port_.warp_lane() == P::warp_width - 1;
    const T* const beside = edge(first ? 0 : 1);
    CPUFREE_UNROLL
    for (int q = 0; q < R; ++q) {
      const int r = kDown ? q : R - 1 - q;
      const T halo = beside[r];
      T centre[C], f[C] = {};
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) centre[c] = owned_[c] ? slot_[r + from][c] : halo;
      if constexpr (kSource) load_pack(source(r), f);
      T left = port_.warp_up(centre[C - 1]);
      T right = port_.warp_down(centre[0]);
      if (first) left = halo;
      if (final_lane) right = halo;
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) {
        const ValuesAround<T> u{r == 0 ? above[c] : slot_[r - 1 + from][c],
                                r == R - 1 ? below[c] : slot_[r + 1 + from][c],
                                T{},
                                T{},
                                c == 0 ? left : centre[c - 1],
                                c == C - 1 ? right : centre[c + 1],
                                f[c]};
        const T value = port_.product(kJacobiWeight<2, T>, jacobi_sum<2, kSource>(u));
        if constexpr (kMeasured)
          if (owned_[c] && (r < R - 1 || full_))
            change.add(0, static_cast<double>(centre[c]), static_cast<double>(value));
        slot_[r + to][c] = value;
      }
    }
  }

  // Sends what the blocks around need, and leaves what the warps around do: rows lie in slots
  // r + kFrom now.
  template <int kFrom>
  CPUFREE_KERNEL_FN void hand_out() {
    T last[C];
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      last[c] = full_ || R == 1 ? slot_[R - 1 + kFrom][c] : slot_[R < 2 ? 0 : R - 2 + kFrom][c];
    if (warp_ == 0) send_row(0, slot_[kFrom]);
    if (last_) send_row(1, last);
    const std::int32_t ending = (width() - 1) / C;  // the lane with the last column
    const std::int32_t lane = port_.warp_lane();
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      if (lane == 0) store_pack(leaving(0) + r * C, slot_[r + kFrom]);
      if (lane == ending) store_pack(leaving(1) + r * C, slot_[r + kFrom]);
    }
    port_.warp_sync();
    const int side = lane / 16;
    const std::int32_t r = lane % 16;
    if (r < rows() && links_.put[2 + side] >= 0) {
      const T value = leaving(side)[r * C + (side == 0 ? 0 : (width() - 1) % C)];
      put(2 + side, row_ + r, value);
    }
    constexpr int next = kFrom == 1 ? 0 : 1;  // the parity that is read next
    store_pack(memory() + Room::row(port_.warps(), next, 2 * warp_ + 1) + column_, slot_[kFrom]);
    store_pack(memory() + Room::row(port_.warps(), next, 2 * warp_ + 2) + column_, last);
  }

  CPUFREE_KERNEL_FN Packet* mailbox(std::int64_t place) const {
    return mailboxes_.packets + static_cast<std::int64_t>(epoch_ & 1U) * mailboxes_.size + place;
  }
  CPUFREE_KERNEL_FN void put(int side, std::int32_t k, T value) {
    port_.put_packet(mailbox(links_.put[side] + k), links_.pe[side], static_cast<double>(value),
                     make_tag(epoch_, 0U));
  }
  CPUFREE_KERNEL_FN void send_row(int side, const T (&values)[C]) {
    if (links_.put[side] < 0) return;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      if (owned_[c]) put(side, column_ + c, values[c]);
  }

  // Waits for my packets of a row of the halo and of the columns, all at once and the warp
  // together, and leaves them where sweep reads them. N: one more than packets of a row.
  template <int N>
  CPUFREE_KERNEL_FN bool take(int side, bool columns) {
    const int beside = 2 + port_.warp_lane() / 16;
    const std::int32_t r = port_.warp_lane() % 16;
    columns = columns && r < rows() && links_.get[beside] >= 0;
    int of_row = 0;  // packets
    CPUFREE_UNROLL
    for (int c = 0; c < N - 1; ++c) of_row += owned_[c] ? 1 : 0;
    const Packet* const row_packets = mailbox(links_.get[side] + column_);
    const Packet* const column_packet = mailbox(links_.get[beside] + row_ + r);
    const auto at = [&](int k) { return k < of_row ? row_packets + k : column_packet; };
    const auto site = [&](int k) {
      const int from = k < of_row ? side : beside;
      return WaitSite{Channel::halo_arrival, links_.pe[from], links_.block[from]};
    };
    Packet got[N] = {};
    if (!wait_packets_together(port_, at, of_row + (columns ? 1 : 0), epoch_, site, got))
      return false;
    T* const row = side == 0 ? row_above(odd_ ? 1 : 0) : row_below(odd_ ? 1 : 0);
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) {
      if (k < of_row)
        row[k] = static_cast<T>(got[k].value);
      else if (columns && k == of_row)
        edge(beside - 2)[r] = static_cast<T>(got[k].value);
    }
    return true;
  }

  P& port_;
  const TileShape& shape_;
  const RegisterLinks& links_;
  const Mailboxes<T>& mailboxes_;
  T slot_[R + 1][C];
  bool owned_[C];
  std::int32_t warp_, row_, column_;
  bool works_, last_, full_;
  bool odd_ = false;  // rows lie in slots r, else r + 1
  bool here_ = true, alive_ = true;
  Epoch epoch_ = 0;
};

// Jacobi iterations in two dimensions, on tiles that fit C columns of a warp's lanes and R rows of
// the block's warps.
template <int C, int R, bool kSource, WarpPort P, class T>
CPUFREE_KERNEL_FN void register_kernel(P& port, const JacobiArgs<T>& args) {
  typename P::template Kept<TileArgs<T>> tile = port.keep(args.tiles[port.block()]);
  typename P::template Kept<RegisterLinks> links = port.keep(links_of(port, tile));
  RegisterTile<P, T, C, R, kSource> worker(port, tile.shape, links, args);
  Checks<P> checks(port, args.slots, args.tolerance);
  JacobiState state;
  if (!iterate(args, worker, checks, state)) return;
  worker.store(args.out);
  keep_rim(port, tile.shape, args.start, args.out);
  report_end(port, args, state, checks, worker.exchanges());
}

}  // namespace cpufree
