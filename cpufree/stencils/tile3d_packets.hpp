// The exchange of 3-D tiles in registers, by packets: values that carry the number of their
// exchange, 16 bytes in one store, three floats or one double each.
//
// An exchange has `Links`, with whom and where, the same for all threads of the block; and, called
// by all of them in this order, once an iteration:
//   begin()              the next one begins;
//   hand_out<kFrom>(s)   by warps that work: sends what the blocks around need. Plane z lies in
//                        s[z + kFrom];
//   tell()               a block barrier;
//   receive()            waits for the halo and leaves it where the tile reads it. Contains a block
//                        barrier. False: leave the kernel.
//
// One hop, no fence, no flag, no barrier between computing and sending: a thread sends what it has
// computed, for columns through its warp, in the order of Tile3dPacking. What arrives is received
// by the warp that needs it: a row of the planes before and after the tile, and its columns; except
// the rows above and below the tile, which are for the first warp and the last alone: group after
// group of planes, they are received by all warps, and the barrier that ends receive() lies between
// that and the warp that reads them.
//
// Bytes. C = 4, Z = 8, float: 1536 packets for the planes of 16 warps before and after, 768 for the
// rows above and below, 96 for the columns: 38 KB, where values take 26.
//
// Looks. A look at all packets of a block's halo takes as much of the way to the L2 cache as
// its values do, so it is taken once: before it lanes wait, each for one packet, the last one that
// each sending warp has stored. They say when to look, and no more: all packets are waited for.
//
// Visibility (read after write): a packet is whole, or is not there; its number says whether it is
// this exchange's.
//
// Mailboxes (write after read): two parities, no credits. Block a writes the mailbox of exchange e
// in b again in e + 2, by threads that have passed the barrier which ends receive(e + 1). Before it
// all warps of a had their packets of e + 1, some of them b's: tiles send to each other or not at
// all. The thread of b that sent those had passed the barrier which ends receive(e), and before
// that all threads of b had read their packets of e, whichever warp they are for. So what is
// written over has been read. A mailbox never holds a later number than the one waited for; until
// it comes, the one of two exchanges before, or zeros: equality of the lower 32 bits is equality
// (device/types.hpp).
//
// Shared memory. Halo rows: read in the sweep; then the barrier of tell(); written in receive();
// then its barrier. The columns on their way out: written and read by one warp, warp_sync between,
// and the next time after a barrier. The barrier of tell() is for rows alone (registers_3d.hpp). A
// second copy of them would do without it, but it delays no one: packets are on their way
// meanwhile.
#pragma once

#include "cpufree/device/value_packet.hpp"
#include "cpufree/device/wait.hpp"
#include "cpufree/stencils/tile3d_place.hpp"

namespace cpufree {

// The mailboxes of a tile's sides, of both parities.
template <class K>
struct Tile3dRoutes {
  K* to[2][6] = {};  // in their memory, as `peer` tells; null: none
  // In mine, from the first packet of all mailboxes; negative: none.
  std::int32_t from[2][6] = {{-1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1}};
};

template <WarpPort P, class T, int C, int Z, bool kSource>
class Tile3dPackets {
 public:
  using Place = Tile3dPlace<P, T, C, Z>;
  using Links = Tile3dRoutes<typename ValuePacket<T>::Type>;

  CPUFREE_KERNEL_FN static Links links_of(const P& port, const TileArgs<T>& tile,
                                          const Mailboxes<T>& mailboxes) {
    const Tile3dLinks links = tile3d_links_of(port, tile);
    Links routes;
    for (int parity = 0; parity < 2; ++parity)
      for (int side = 0; side < 6; ++side) {
        if (links.get[side] < 0) continue;
        const std::int64_t first = parity * mailboxes.size;
        routes.from[parity][side] = static_cast<std::int32_t>(first + links.get[side]);
        routes.to[parity][side] =
            port.peer(packets_of(mailboxes) + first + links.put[side], links.pe[side]);
      }
    return routes;
  }

  CPUFREE_KERNEL_FN Tile3dPackets(P& port, const TileArgs<T>& tile, const Links& links,
                                  const Mailboxes<T>& mailboxes)
      : place_(port, tile), links_(links), mailboxes_(mailboxes) {
    last_ = last_awaited();
  }

  CPUFREE_KERNEL_FN const Place& place() const { return place_; }
  CPUFREE_KERNEL_FN Epoch epoch() const { return epoch_; }
  CPUFREE_KERNEL_FN void begin() { ++epoch_; }

  template <int kFrom>
  CPUFREE_KERNEL_FN void hand_out(const T (&slot)[Z + 1][C]) {
    T last[C];
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      last[c] = place_.full() ? slot[Z - 1 + kFrom][c] : slot[Z - 2 + kFrom][c];
    send_row(to(0), slot[kFrom]);
    send_row(to(1), last);
    send_columns<kFrom>(slot);
    const bool first_row = place_.warp() == 0, last_row = place_.warp() == place_.height() - 1;
    if (!first_row && !last_row) return;
    for (int side = 2; side < 4; ++side)
      if (side == 2 ? first_row : last_row) send_planes<kFrom>(to(side), slot);
  }

  CPUFREE_KERNEL_FN void tell() { port().sync_block(); }

  CPUFREE_KERNEL_FN bool receive() {
    int job = place_.warp();
    bool here = await_last();
    if (here && place_.works()) {
      here = take(job);
      job += port().warps();
    }
    for (; here && job < kJobs; job += port().warps()) here = take_group(job);
    return port().all(here);
  }

 private:
  using Room = Tile3dRoom<T, C, Z>;
  using Kind = ValuePacket<T>;
  using Sent = typename Kind::Type;
  static constexpr Tile3dPacking kPacking = packing_of({C, Z}, sizeof(T));
  static constexpr int kValues = kPacking.values, kOwn = kPacking.own(), kRest = kPacking.rest();
  static constexpr bool kPaired = kPacking.paired();
  static constexpr int kOfLane = kPacking.of_lane(), kOfRow = kPacking.row();
  static constexpr int kGroup = kPacking.group(), kOfGroup = kPacking.of_group();
  static constexpr int kGroups = kPacking.groups(), kOfColumn = kPacking.column();
  static constexpr int kInLast = Z - (kOfColumn - 1) * kValues;  // values of a column's last packet
  static constexpr int kJobs = 2 * kGroups;  // groups of the rows above, then below
  static_assert(Z % kGroup == 0 && kOfColumn <= P::warp_width / 2);

  CPUFREE_KERNEL_FN P& port() const { return place_.port(); }
  CPUFREE_KERNEL_FN std::uint32_t lane() const {
    return static_cast<std::uint32_t>(port().lane()) % P::warp_width;
  }
  CPUFREE_KERNEL_FN std::int32_t lane_at() const { return static_cast<std::int32_t>(lane()); }
  CPUFREE_KERNEL_FN static int side_of(int job) { return job < kGroups ? 2 : 3; }
  CPUFREE_KERNEL_FN static int group_of(int job) { return job < kGroups ? job : job - kGroups; }
  CPUFREE_KERNEL_FN static Sent* packets_of(const Mailboxes<T>& mailboxes) {
    return reinterpret_cast<Sent*>(mailboxes.packets);
  }

  // The mailboxes of this exchange.
  CPUFREE_KERNEL_FN Sent* to(int side) const { return links_.to[epoch_ & 1U][side]; }
  CPUFREE_KERNEL_FN std::int32_t from(int side) const { return links_.from[epoch_ & 1U][side]; }

  // Where in a mailbox the warp's row begins, and its column; my packets of a group of planes. Of
  // the row, my packets but the last are 32 apart from lane to lane; where the last is for two.
  CPUFREE_KERNEL_FN std::int32_t row_begin() const { return place_.warp() * kOfRow; }
  CPUFREE_KERNEL_FN std::int32_t column_begin() const { return place_.warp() * kOfColumn; }
  CPUFREE_KERNEL_FN static std::int32_t group_begin(int group) { return group * kOfGroup * 32; }
  CPUFREE_KERNEL_FN std::int32_t in_row(int k) const {
    return 32 * k + static_cast<std::int32_t>(k == kOwn && kPaired ? lane() / 2 : lane());
  }

  CPUFREE_KERNEL_FN void send(Sent* to, const T (&values)[kValues]) {
    Kind::send(port(), to, values, epoch_);
  }

  CPUFREE_KERNEL_FN void send_row(Sent* mailbox, const T (&row)[C]) {
    if (mailbox == nullptr) return;
    CPUFREE_UNROLL
    for (int k = 0; k < kOfLane; ++k) {
      T values[kValues] = {};
      CPUFREE_UNROLL
      for (int j = 0; j < kValues; ++j)
        if (k * kValues + j < C) values[j] = row[k * kValues + j < C ? k * kValues + j : 0];
      bool mine = true;
      if (k == kOwn && kPaired) {
        CPUFREE_UNROLL
        for (int j = 0; j < kRest; ++j) values[kRest + j] = port().warp_down(values[j]);
        mine = lane() % 2 == 0;
      }
      if (mine) send(mailbox + (row_begin() + in_row(k)), values);
    }
  }

  // My columns of all planes.
  template <int kFrom>
  CPUFREE_KERNEL_FN void send_planes(Sent* mailbox, const T (&slot)[Z + 1][C]) {
    if (mailbox == nullptr) return;
    Sent* const mine = mailbox + lane();
    CPUFREE_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      CPUFREE_UNROLL
      for (int k = 0; k < kOfGroup; ++k) {
        T values[kValues] = {};
        CPUFREE_UNROLL
        for (int j = 0; j < kValues; ++j) {
          const int q = k * kValues + j;
          if (q < kGroup * C) values[j] = slot[g * kGroup + q / C + kFrom][q % C];
        }
        send(mine + (group_begin(g) + 32 * k), values);
      }
    }
  }

  // The warp's first and last column, from the lanes that have them to those that send them: packet
  // r of one side from lane r, of the other from lane 16 + r.
  template <int kFrom>
  CPUFREE_KERNEL_FN void send_columns(const T (&slot)[Z + 1][C]) {
    const std::uint32_t last = static_cast<std::uint32_t>(place_.width()) - 1;
    T* const leaving = place_.memory() + Room::leaving(port().warps(), kSource, place_.warp());
    const bool begins = lane() == 0;
    if (begins || lane() == last / C) {
      T* const mine = leaving + (begins ? 0 : Z * C);
      CPUFREE_UNROLL
      for (int z = 0; z < Z; ++z) store_pack(mine + z * C, slot[z + kFrom]);
    }
    port().warp_sync();
    const std::int32_t r = lane_at() % 16, side = 4 + lane_at() / 16;
    Sent* const mailbox = to(side);
    if (r >= kOfColumn || mailbox == nullptr) return;
    const T* const column = leaving + (side == 4 ? 0U : (last < C ? 0U : Z * C) + last % C);
    T values[kValues] = {};
    CPUFREE_UNROLL
    for (int j = 0; j < kValues; ++j)
      if (j < kInLast || r + 1 < kOfColumn) values[j] = column[(r * kValues + j) * C];
    send(mailbox + (column_begin() + r), values);
  }

  // --- Receiving ---

  // Waits for N packets, at(k) where awaited(k); side(k) says whose they are.
  template <int N, class A, class B, class S>
  CPUFREE_KERNEL_FN bool wait_for(A&& at, B&& awaited, S&& side, Sent (&got)[N]) {
    const auto site = [&](int k) {
      const TileArgs<T>& tile = place_.tile();
      int e = 0;
      while (side_of_tile3d(tile.shape, tile.receives[e]) != side(k)) ++e;
      return WaitSite{Channel::halo_arrival, tile.receives[e].pe, tile.receives[e].block};
    };
    return wait_some_together(port(), at, awaited, epoch_, site, got);
  }

  // A packet in a mailbox of mine, or where there is none, in some other.
  CPUFREE_KERNEL_FN const Sent* packet(std::int32_t mailbox, std::int32_t place) const {
    return packets_of(mailboxes_) + ((mailbox < 0 ? 0 : mailbox) + place);
  }

  // The packet of even epochs that I wait for before the others: the last one that a warp stores
  // which sends to this one. Lanes 0 to 5 have one side's each. Negative: nothing.
  CPUFREE_KERNEL_FN std::int32_t last_awaited() const {
    const int side = lane_at(), job = place_.warp();
    if (side >= 6 || links_.from[0][side] < 0) return -1;
    const std::int32_t mailbox = links_.from[0][side];
    if (side == 2 || side == 3)
      return job < kJobs && side == side_of(job) ? mailbox + group_begin(group_of(job) + 1) - 1
                                                 : -1;
    if (!place_.works()) return -1;
    return mailbox + (side < 2 ? row_begin() + kOfRow : column_begin() + kOfColumn) - 1;
  }
  CPUFREE_KERNEL_FN bool await_last() {
    const std::int64_t parity = static_cast<std::int64_t>(epoch_ & 1U) * mailboxes_.size;
    const Sent* const last = packets_of(mailboxes_) + parity + (last_ < 0 ? 0 : last_);
    Sent got[1];
    return wait_for([&](int) { return last; }, [&](int) { return last_ >= 0; },
                    [&](int) { return lane_at(); }, got);
  }

  // The rows before and after the warp's, its columns, and a group, at once.
  CPUFREE_KERNEL_FN bool take(int job) {
    constexpr int column = 2 * kOfLane, group = column + 1;
    const std::int32_t l = lane_at() % 16, beside = lane_at() / 16;
    const std::int32_t r = l < kOfColumn ? l : kOfColumn - 1;  // several lanes read the last one
    const std::int32_t rows[2] = {from(0), from(1)}, of_column = from(4 + beside);
    const std::int32_t of_group = job < kJobs ? from(side_of(job)) : -1;
    const std::int32_t first = job < kJobs ? group_begin(group_of(job)) + lane_at() : 0;
    const auto at = [&](int k) {
      if (k < column) return packet(rows[k / kOfLane], row_begin() + in_row(k % kOfLane));
      if (k == column) return packet(of_column, column_begin() + r);
      return packet(of_group, first) + 32 * (k - group);
    };
    const auto awaited = [&](int k) {
      return (k < column ? rows[k / kOfLane] : k == column ? of_column : of_group) >= 0;
    };
    const auto side = [&](int k) {
      return k < column ? k / kOfLane : k == column ? 4 + beside : side_of(job);
    };
    Sent got[group + kOfGroup];
    if (!wait_for(at, awaited, side, got)) return false;
    if (rows[0] >= 0) leave_row(-1, got);
    if (rows[1] >= 0) leave_row(Z, got + kOfLane);
    if (of_column >= 0) {
      T* const edge = place_.edge(beside) + r * kValues;
      CPUFREE_UNROLL
      for (int j = 0; j < kValues; ++j)
        if (j < kInLast || r + 1 < kOfColumn) edge[j] = Kind::value(got[column], j);
    }
    if (of_group >= 0) leave_group(job, got + group);
    return true;
  }

  CPUFREE_KERNEL_FN bool take_group(int job) {
    const std::int32_t mailbox = from(side_of(job));
    const Sent* const mine = packet(mailbox, group_begin(group_of(job)) + lane_at());
    Sent got[kOfGroup];
    if (!wait_for([&](int k) { return mine + 32 * k; }, [&](int) { return mailbox >= 0; },
                  [&](int) { return side_of(job); }, got))
      return false;
    if (mailbox >= 0) leave_group(job, got);
    return true;
  }

  CPUFREE_KERNEL_FN void leave_row(int z, const Sent* got) const {
    T values[C];
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) {
      const int k = c / kValues, j = c % kValues;
      values[c] = Kind::value(got[k], j);
      if (k == kOwn && kPaired && lane() % 2 != 0) values[c] = Kind::value(got[k], kRest + j);
    }
    store_pack(place_.row(z, place_.warp()), values);
  }

  CPUFREE_KERNEL_FN void leave_group(int job, const Sent* got) const {
    const int y = side_of(job) == 2 ? -1 : place_.height();
    CPUFREE_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      T values[C];
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c)
        values[c] = Kind::value(got[(i * C + c) / kValues], (i * C + c) % kValues);
      store_pack(place_.row(group_of(job) * kGroup + i, y), values);
    }
  }

  Place place_;
  const Links& links_;
  const Mailboxes<T>& mailboxes_;
  std::int32_t last_;
  Epoch epoch_ = 0;
};

}  // namespace cpufree
