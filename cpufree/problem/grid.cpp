#include "cpufree/problem/grid.hpp"

#include <algorithm>
#include <array>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kMostPoints = (std::int64_t{1} << 31) - 1024;  // along an axis
// In values. Rows of a tile begin on lines of a cache, and never a multiple of 4 KiB apart, where
// caches would take them for one another. No line of a mailbox has two writers.
constexpr std::int64_t kLine = 16;
constexpr std::int64_t kAlias = 512;

using Cuts = std::array<int, 3>;
using Extents = std::array<std::int64_t, 3>;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

int product(const Cuts& cuts) { return cuts[0] * cuts[1] * cuts[2]; }

// Points of the largest part that `cuts` leave of `extents`, and of its faces at their cost.
double cost_of(const Extents& extents, const Cuts& cuts, const FaceCost& cost) {
  double sum = 1.0;
  for (std::size_t a = 0; a < 3; ++a) sum *= static_cast<double>(ceil_div(extents[a], cuts[a]));
  const double volume = sum;
  for (std::size_t a = 0; a < 3; ++a)
    if (cuts[a] > 1)
      sum += 2.0 * cost.axis[a] * volume / static_cast<double>(ceil_div(extents[a], cuts[a]));
  return sum;
}

// Calls f(cuts) for all ways to cut `extents` into at most `count` parts, as many as there can be
// for the first two cuts.
template <class F>
void each_way(const Extents& extents, int count, F&& f) {
  const auto most = [](std::int64_t points, int parts) {
    return static_cast<int>(std::min<std::int64_t>(points, parts));
  };
  for (int c0 = 1; c0 <= most(extents[0], count); ++c0)
    for (int c1 = 1; c1 <= most(extents[1], count / c0); ++c1)
      f(Cuts{c0, c1, most(extents[2], count / (c0 * c1))});
}

// The cheapest way among those with the most parts, or with at least `share` of them.
Cuts cheapest(const Extents& extents, int count, double share, const FaceCost& cost) {
  int most = 1;
  each_way(extents, count, [&](const Cuts& cuts) { most = std::max(most, product(cuts)); });
  Cuts best{1, 1, 1};
  double least = -1.0;
  each_way(extents, count, [&](const Cuts& cuts) {
    if (product(cuts) < share * most) return;
    const double here = cost_of(extents, cuts, cost);
    if (least < 0.0 || here < least) least = here, best = cuts;
  });
  return best;
}

// A tile's place among all tiles, and what surrounds it.
struct Place {
  int index[3] = {};
  int pe = 0, block = 0;
};

class Builder {
 public:
  Builder(const Grid& grid, const Division& division, int layers, int thickness)
      : grid_(grid), division_(division), layers_(layers), thickness_(thickness) {}

  Tiling build() {
    Tiling tiling;
    tiling.division = division_;
    tiling.layers = layers_;
    tiling.tiles.resize(at(division_.pes_in_all()));
    for (auto& of_pe : tiling.tiles) of_pe.resize(at(division_.blocks_in_all()));
    each_place([&](const Place& p) { tile(tiling, p).shape = shape_of(p); });
    std::vector<std::int64_t> mailbox(tiling.tiles.size(), 0);
    std::vector<int> flags(tiling.tiles.size(), 0);
    each_place([&](const Place& p) {
      Tile& mine = tile(tiling, p);
      each_direction(p, [&](const Place& from, const int (&d)[3]) {
        TileEdge edge = halo_of(mine.shape, d);
        edge.pe = from.pe;
        edge.block = from.block;
        edge.flag = flags[at(p.pe)]++;
        edge.mailbox = mailbox[at(p.pe)];
        mailbox[at(p.pe)] += ceil_div(edge.points, kLine) * kLine;
        add(mine.receives, edge);
      });
    });
    each_place([&](const Place& p) { fill_sends(tiling, p); });
    tiling.mailbox = *std::ranges::max_element(mailbox);
    tiling.flags = *std::ranges::max_element(flags);
    return tiling;
  }

 private:
  static Tile& tile(Tiling& tiling, const Place& p) { return tiling.tiles[at(p.pe)][at(p.block)]; }

  static void add(std::vector<TileEdge>& edges, TileEdge edge) {
    edge.first = edges.empty() ? 0 : edges.back().first + edges.back().points;
    edges.push_back(edge);
  }

  Place place(int i0, int i1, int i2) const {
    Place p{{i0, i1, i2}};
    for (int a = 0; a < 3; ++a) {
      p.pe = p.pe * division_.pes[a] + p.index[a] / division_.blocks[a];
      p.block = p.block * division_.blocks[a] + p.index[a] % division_.blocks[a];
    }
    return p;
  }

  template <class F>
  void each_place(F&& f) const {
    for (int i0 = 0; i0 < division_.parts(0); ++i0)
      for (int i1 = 0; i1 < division_.parts(1); ++i1)
        for (int i2 = 0; i2 < division_.parts(2); ++i2) f(place(i0, i1, i2));
  }

  // f(neighbour, direction) for all that the tile exchanges with, always in the same order.
  template <class F>
  void each_direction(const Place& p, F&& f) const {
    for (int code = 0; code < 27; ++code) {
      const int d[3] = {code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1};
      const int steps = std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]);
      if (steps == 0 || (layers_ == 1 && steps > 1)) continue;
      int to[3];
      bool there = true;
      for (int a = 0; a < 3; ++a) {
        const int parts = division_.parts(a);
        to[a] = p.index[a] + d[a];
        there = there && (d[a] == 0 || (grid_.active(a) &&
                                        (grid_.periodic[a] || (to[a] >= 0 && to[a] < parts))));
        to[a] = (to[a] + parts) % parts;
      }
      if (there) f(place(to[0], to[1], to[2]), d);
    }
  }

  bool exchanged(int a) const {
    return grid_.active(a) && (grid_.periodic[a] || division_.parts(a) > 1);
  }

  std::int64_t cut(int a, int part) const {
    return grid_.first(a) + grid_.updated(a) * part / division_.parts(a);
  }

  TileShape shape_of(const Place& p) const {
    TileShape s;
    for (int a = 0; a < 3; ++a) {
      const std::int64_t begin = cut(a, p.index[a]);
      const std::int64_t end = cut(a, p.index[a] + 1);
      const std::int32_t halo = exchanged(a) ? layers_ : grid_.active(a) ? 1 : 0;
      const bool ring = grid_.active(a) && !grid_.periodic[a];
      s.origin[a] = begin - halo;
      s.lo[a] = halo;
      s.hi[a] = static_cast<std::int32_t>(end - s.origin[a]);
      s.extent[a] = s.hi[a] + halo;
      const auto clipped = [&](std::int64_t number) {
        return static_cast<std::int32_t>(
            std::clamp<std::int64_t>(number - s.origin[a], 0, s.extent[a]));
      };
      s.bound_lo[a] = ring ? clipped(grid_.first(a)) : 0;
      s.bound_hi[a] = ring ? clipped(grid_.end(a)) : s.extent[a];
      s.grid_lo[a] = ring ? clipped(0) : 0;
      s.grid_hi[a] = ring ? clipped(grid_.n[a]) : s.extent[a];
      s.out_lo[a] = s.lo[a] - (ring && begin == grid_.first(a) ? 1 : 0);
      s.out_hi[a] = s.hi[a] + (ring && end == grid_.end(a) ? 1 : 0);
    }
    s.lead = (kLine - s.lo[2] % kLine) % kLine;
    s.skew = std::min(thickness_, s.extent[0]) + 1;
    s.planes = s.extent[0] + layers_ * s.skew;
    s.row = ceil_div(s.extent[2], kLine) * kLine;
    if (8 * (s.row - s.extent[2]) > s.row) s.row = s.extent[2];  // short: room counts for more
    s.row += s.row % kAlias == 0 ? kLine : 0;
    s.plane = s.row * s.extent[1];
    s.plane += s.plane % kAlias == 0 ? kLine : 0;
    return s;
  }

  // Where an edge ends along axes that it does not cross. With several layers it takes along the
  // points that keep their values there: each pass leaves them behind in the halo.
  std::int32_t beside(std::int32_t owned, std::int32_t with_ring) const {
    return layers_ > 1 ? with_ring : owned;
  }

  // The part of the halo that lies in direction d.
  TileEdge halo_of(const TileShape& s, const int (&d)[3]) const {
    TileEdge edge;
    edge.points = 1;
    for (int a = 0; a < 3; ++a) {
      edge.lo[a] = d[a] > 0 ? s.hi[a] : d[a] < 0 ? s.lo[a] - layers_ : beside(s.lo[a], s.out_lo[a]);
      edge.hi[a] = d[a] == 0 ? beside(s.hi[a], s.out_hi[a]) : edge.lo[a] + layers_;
      edge.points *= edge.hi[a] - edge.lo[a];
    }
    return edge;
  }

  // My points in direction d go where the neighbour there receives from the direction of me.
  void fill_sends(Tiling& tiling, const Place& p) const {
    Tile& mine = tile(tiling, p);
    each_direction(p, [&](const Place& to, const int (&d)[3]) {
      std::size_t k = 0;
      TileEdge theirs;
      each_direction(to, [&](const Place&, const int (&e)[3]) {
        if (e[0] == -d[0] && e[1] == -d[1] && e[2] == -d[2]) theirs = tile(tiling, to).receives[k];
        ++k;
      });
      TileEdge edge = theirs;
      for (int a = 0; a < 3; ++a) {
        const TileShape& s = mine.shape;
        edge.lo[a] = d[a] > 0   ? s.hi[a] - layers_
                     : d[a] < 0 ? s.lo[a]
                                : beside(s.lo[a], s.out_lo[a]);
        edge.hi[a] = d[a] == 0 ? beside(s.hi[a], s.out_hi[a]) : edge.lo[a] + layers_;
      }
      edge.pe = to.pe;
      edge.block = to.block;
      add(mine.sends, edge);
    });
  }

  const Grid& grid_;
  const Division& division_;
  int layers_;
  int thickness_;
};

}  // namespace

void check(const Grid& grid) {
  require(grid.dims == 2 || grid.dims == 3,
          "a grid has 2 or 3 dimensions, not " + std::to_string(grid.dims));
  double points = 1.0;
  for (int a = 0; a < 3; ++a) {
    require(grid.n[a] >= 1 && grid.n[a] <= kMostPoints,
            "a grid has between 1 and " + std::to_string(kMostPoints) +
                " points along an axis, not " + std::to_string(grid.n[a]));
    points *= static_cast<double>(grid.n[a]);
  }
  require(points < 1e18, "the grid has more points than any machine can hold");
}

Division divide(const Grid& grid, int pes, int blocks, const FaceCost& cost) {
  constexpr double kEnoughBlocks = 15.0 / 16.0;
  Extents extents{grid.updated(0), grid.updated(1), grid.updated(2)};
  const Cuts outer = cheapest(extents, pes, 1.0, cost);
  for (std::size_t a = 0; a < 3; ++a) extents[a] /= outer[a];  // what every PE has at least
  const Cuts inner = cheapest(extents, blocks, kEnoughBlocks, cost);
  Division division;
  for (std::size_t a = 0; a < 3; ++a) {
    division.pes[a] = outer[a];
    division.blocks[a] = inner[a];
  }
  return division;
}

std::int64_t most_layers(const Grid& grid, const Division& division) {
  std::int64_t most = kMostPoints;
  for (int a = 0; a < 3; ++a)
    if (grid.active(a) && (grid.periodic[a] || division.parts(a) > 1))
      most = std::min(most, grid.updated(a) / division.parts(a));
  return most;
}

Tiling make_tiling(const Grid& grid, const Division& division, int layers, int thickness) {
  require(layers >= 1 && layers <= most_layers(grid, division),
          "tiles of this grid can exchange between 1 and " +
              std::to_string(most_layers(grid, division)) + " layers, not " +
              std::to_string(layers));
  return Builder(grid, division, layers, thickness).build();
}

std::string text_of(const int (&parts)[3], int dims) {
  std::string text = std::to_string(parts[0]);
  if (dims == 3) text += " x " + std::to_string(parts[1]);
  return text + " x " + std::to_string(parts[2]);
}

}  // namespace cpufree
