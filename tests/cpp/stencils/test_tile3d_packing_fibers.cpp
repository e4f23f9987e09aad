// What packets of 3-D tiles carry: one exchange of a tile that is its own neighbour on all six
// sides, whose values are numbers of points.
#include <map>

#include "warp_stencil_rig.hpp"

using namespace warp_stencils;

namespace {

// Counts the packets that are sent to each place.
struct CountingPort : warp_rig::Port {
  using warp_rig::Port::Port;
  static inline std::map<const void*, int> sent;
  template <class K, class... A>
  void send_packet(K* there, const A&... parts) {
    ++sent[there];
    warp_rig::Port::send_packet(there, parts...);
  }
};

template <class T, int C, int Z>
class Tile {
 public:
  using Exchange = Tile3dPackets<CountingPort, T, C, Z, false>;

  Tile(int depth, int height, int width)
      : n_{depth, height, width}, c_(grid3d(depth, height, width, 7U), 1) {
    const Tile3dShape shapes[] = {{C, Z}};
    auto found = lay_out_registers_3d(c_.grid, c_.spec, c_.run, 1, sizeof(T), false,
                                      {{}, 4, kFastBytes, shapes});
    CHECK(found.has_value() && found->warps == height);
    found_ = *found;
    found_.layout.plan.threads = 32 * found_.warps;
  }

  // Whether all halo values arrive, in the first exchanges.
  bool exchange(std::uint64_t seed) {
    HostStencil<T> stencil(c_.problem(), found_.layout, c_.run);
    CountingPort::sent.clear();
    const bool ended = warp_rig::run<CountingPort>(
        1, 1, found_.layout.plan.threads, at(found_.layout.plan.fast_bytes), stencil.heaps(), seed,
        [&](CountingPort& port, int pe) { exchange_of_thread(port, stencil.args(pe)); });
    first_ = stencil.args(0).mailboxes.packets;
    return ended;
  }

  // Whether each packet of each mailbox has been sent once an exchange, and nothing elsewhere.
  void check_places() const {
    const Tile3dPacking packing = packing_of({C, Z}, sizeof(T));
    const std::int64_t of_axis[] = {n_[1] * packing.row(),
                                    packing.groups() * packing.of_group() * 32,
                                    n_[1] * packing.column()};
    std::int64_t places = 0;
    for (int parity = 0; parity < 2; ++parity)
      for (const TileEdge& edge : found_.layout.tiling.tiles[0][0].receives) {
        const TileShape& s = found_.layout.tiling.tiles[0][0].shape;
        const int axis = edge.hi[0] <= s.lo[0] || edge.lo[0] >= s.hi[0]   ? 0
                         : edge.hi[1] <= s.lo[1] || edge.lo[1] >= s.hi[1] ? 1
                                                                          : 2;
        for (std::int64_t k = 0; k < of_axis[axis]; ++k, ++places) {
          const auto found = CountingPort::sent.find(
              first_ + parity * found_.layout.tiling.mailbox + edge.mailbox + k);
          CHECK(found != CountingPort::sent.end() && found->second == 1);
        }
      }
    CHECK_EQ(static_cast<std::int64_t>(CountingPort::sent.size()), places);
  }

 private:
  T value(int exchange, std::int64_t z, std::int64_t y, std::int64_t x) const {
    return static_cast<T>(((exchange * n_[0] + z) * n_[1] + y) * n_[2] + x + 1);
  }

  void exchange_of_thread(CountingPort& port, const JacobiArgs<T>& args) {
    const TileArgs<T>& tile = port.keep(args.tiles[0]);
    const auto& links = port.keep(Exchange::links_of(port, tile, args.mailboxes));
    Exchange exchange(port, tile, links, args.mailboxes);
    for (int e = 0; e < 2; ++e) {
      T slot[Z + 1][C] = {};
      for (int z = 0; z < Z; ++z)
        for (int c = 0; c < C; ++c)
          slot[z + 1][c] = value(e, z, exchange.place().warp(), exchange.place().column() + c);
      exchange.begin();
      if (exchange.place().works()) exchange.template hand_out<1>(slot);
      exchange.tell();
      CHECK(exchange.receive());
      check_halo(exchange.place(), e);
      port.sync_block();
    }
  }

  template <class Place>
  void check_halo(const Place& place, int e) const {
    const std::int64_t y = place.warp(), depth = n_[0], height = n_[1], width = n_[2];
    for (int c = 0; c < C; ++c) {
      const std::int64_t x = place.column() + c;
      if (x >= width) continue;
      CHECK_EQ(place.row(-1, place.warp())[c], value(e, depth - 1, y, x));
      CHECK_EQ(place.row(Z, place.warp())[c], value(e, 0, y, x));
      for (int z = 0; z < depth; ++z) {
        CHECK_EQ(place.row(z, -1)[c], value(e, z, height - 1, x));
        CHECK_EQ(place.row(z, static_cast<int>(height))[c], value(e, z, 0, x));
      }
    }
    for (int z = 0; z < depth; ++z) {
      CHECK_EQ(place.edge(0)[z], value(e, z, y, width - 1));
      CHECK_EQ(place.edge(1)[z], value(e, z, y, 0));
    }
  }

  std::int64_t n_[3];
  Case<T> c_;
  Tile3dLayout found_;
  const Packet* first_ = nullptr;
};

template <class T, int C, int Z>
void check_shape() {
  std::uint64_t seed = 1;
  for (const int depth : {Z, Z - 1})
    for (const int height : {1, 3, 4})
      for (const int width : {C, 32 * C, 32 * C - 5}) {
        if (width < C || (height == 3) != (width == 32 * C - 5)) continue;
        Tile<T, C, Z> tile(depth, height, width);
        CHECK(tile.exchange(seed++));
        tile.check_places();
      }
}

}  // namespace

TEST(all_values_of_all_faces_of_floats_arrive_once) {
  check_shape<float, 1, 4>();
  check_shape<float, 2, 4>();
  check_shape<float, 4, 4>();
  check_shape<float, 2, 8>();
  check_shape<float, 4, 8>();
  check_shape<float, 4, 16>();
}

TEST(all_values_of_all_faces_of_doubles_arrive_once) {
  check_shape<double, 1, 4>();
  check_shape<double, 2, 4>();
  check_shape<double, 1, 8>();
  check_shape<double, 2, 8>();
  check_shape<double, 2, 16>();
}

TEST(packets_of_floats_take_little_more_than_their_values) {
  const Tile3dPacking packing = packing_of({4, 8}, sizeof(float));
  CHECK_EQ(packing.row(), 48);                          // of 128 values: 43 would do
  CHECK_EQ(packing.groups() * packing.of_group(), 12);  // a lane, of 32 values: 11
  CHECK_EQ(packing.column(), 3);                        // of 8 values
  CHECK_EQ(packing.mailbox(0, 16), 16 * 48);
}
