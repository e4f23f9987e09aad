// What generated kernels whose values stay on chip are made of, under random schedules and late
// stores: exchanges by packets give the serial result, without any fence; with one slot instead of
// two, or with ghosts on one side only, they do not; a packet that is lost ends with a diagnosis.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/programs/tile_runtime.hpp"
#include "harness.hpp"

using namespace cpufree;
using namespace cpufree::programs;

namespace {

constexpr int kRows = 13, kColumns = 9, kSteps = 6;

struct Case {
  int pes = 1, rows = 1, columns = 1;  // of blocks
  int reach = 1;
  bool ring = true, corners = false;
  bool one_slot = false;
  std::uint64_t seed = 0;
  cpu_fibers::Fault fault = {};

  int high() const { return (most() + rows - 1) / rows; }
  int wide() const { return (kColumns + columns - 1) / columns; }
  int most() const { return (kRows + pes - 1) / pes; }
  std::size_t tile_bytes() const {
    const auto points = static_cast<std::size_t>((high() + 2 * reach) * (wide() + 2 * reach));
    return 2 * sizeof(double) * points;
  }
};

struct Places {
  std::int64_t u, v, tiles;
  TileShape shape;
};

bool inside(const Case& one, std::int64_t i, std::int64_t j) {
  const int r = one.reach;
  return one.ring || (i >= r && i < kRows - r && j >= r && j < kColumns - r);
}

// A mean of points that are `reach` away: aside, or along both axes.
template <class F>
double mean(const Case& one, F&& at) {
  const int r = one.reach;
  const double straight = at(-r, 0) + at(r, 0) + (at(0, -r) + at(0, r));
  if (!one.corners) return 0.25 * straight;
  return 0.125 * (straight + (at(-r, -r) + at(r, r) + (at(-r, r) + at(r, -r))));
}

template <GridPort P>
bool kernel(P& port, const GridArgs<1>& args, std::byte* heap, const GridPlan& plan,
            const Places& places, const Case& one) {
  const BlockGrid blocks{one.rows, one.columns,  kColumns,
                         0,        places.tiles, static_cast<std::int64_t>(one.tile_bytes())};
  TileRuntime<P, GridArgs<1>> rt(port, args, heap, plan, blocks);
  const TileShape& s = places.shape;
  auto u = rt.template tiled<double>(places.u, kRows, 0, 0);
  auto v = rt.template tiled<double>(places.v, kRows, 1, static_cast<int>(one.tile_bytes() / 2));
  Epoch epoch = 0;
  rt.load(u, s);
  rt.load(v, s);
  rt.sync();
  const int stride = s.columns + 2 * s.beside;
  for (int step = 0; step < kSteps; ++step) {
    if (!rt.turn(true, true)) return false;
    if (!rt.exchange(Exchanged<double>{u, s, epoch})) return false;
    const Part rows = rt.part(rt.rows(), 0, 1, kRows);
    const Part columns = rt.part(rt.columns(), 0, 1, kColumns);
    for (int i = rows.first; i < rows.end; ++i)
      for (int j = columns.first; j < columns.end; ++j) {
        const int at = (i - rows.first + s.around) * stride + j - columns.first + s.beside;
        const double* const p = rt.tile(u) + at;
        rt.tile(v)[at] =
            inside(one, i, j) ? mean(one, [&](int a, int b) { return p[a * stride + b]; }) : *p;
      }
    const auto old = u;
    u.take(v);
    v.take(old);
  }
  rt.sync();
  rt.store(u, s);
  return true;
}

double first_value(std::int64_t row, std::int64_t column) {
  return static_cast<double>((7 * row + 3 * column) % 13);
}

std::vector<double> serial(const Case& one) {
  std::vector<double> u(kRows * kColumns), v;
  const auto index = [](std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>((i + kRows) % kRows * kColumns + (j + kColumns) % kColumns);
  };
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) u[index(i, j)] = first_value(i, j);
  v = u;
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j)
        if (inside(one, i, j))
          v[index(i, j)] = mean(one, [&](int a, int b) { return u[index(i + a, j + b)]; });
    u.swap(v);  // what lies beside the inside is the same in both
  }
  return u;
}

TileShape shape_of(const Case& one, std::int64_t packets) {
  TileShape s;
  s.rows = one.high(), s.columns = one.wide();
  s.around = s.beside = one.reach;
  s.n0 = kRows, s.n1 = kColumns;
  s.ring0 = s.ring1 = one.ring;
  s.corners = one.corners;
  s.heap_row = kColumns;
  s.heap_below = s.heap_above = one.reach;
  s.packets = packets;
  s.slot = one.one_slot ? 0 : (one.most() + 2 * one.reach) * kColumns;
  return s;
}

bool right(const Case& one) {
  const int blocks = one.rows * one.columns, reach = one.reach;
  const auto values = static_cast<std::size_t>((one.most() + 2 * reach) * kColumns);
  SymmetricLayout layout;
  const auto counter = layout.reserve<Flag>(1), flags = layout.reserve<Flag>(2),
             stop = layout.reserve<Flag>(1);
  const auto reductions =
      layout.reserve<Packet>(static_cast<std::size_t>(grid_packets(one.pes, blocks)));
  const auto u = layout.reserve<double>(values), v = layout.reserve<double>(values);
  const auto packets = layout.reserve<Packet>(2 * values);
  const auto tiles =
      layout.reserve<double>(one.tile_bytes() / sizeof(double) * static_cast<std::size_t>(blocks));
  const cpu_threads::SymmetricHeaps heaps(one.pes, layout.bytes());
  const auto offset = [](const auto& object) { return static_cast<std::int64_t>(object.offset); };
  const GridPlan plan{kRows,        offset(counter), offset(flags), offset(reductions),
                      offset(stop), one.ring};
  const Places places{offset(u), offset(v), offset(tiles), shape_of(one, offset(packets))};
  std::int64_t results[1] = {}, faults[2] = {};
  const GridArgs<1> args{results, faults, {}};
  const auto first = [&](int pe) { return kRows * pe / one.pes; };
  const auto index = [&](int pe, int r, int c) { return (r - first(pe) + reach) * kColumns + c; };
  for (int pe = 0; pe < one.pes; ++pe)
    for (int r = first(pe) - reach; r < first(pe + 1) + reach; ++r)
      for (int c = 0; c < kColumns; ++c)
        u.at(heaps.base(pe))[index(pe, r, c)] = first_value((r + kRows) % kRows, c);
  cpu_fibers::Config config;
  config.pes = one.pes;
  config.blocks = blocks;
  config.heaps = heaps.bases();
  config.seed = one.seed;
  config.fault = one.fault;
  cpu_fibers::Machine* machine = nullptr;
  cpu_fibers::Machine all(config, [&](int pe, int block) {
    cpu_fibers::Port port(*machine, pe, block);
    kernel(port, args, heaps.base(pe), plan, places, one);
  });
  machine = &all;
  if (!all.run()) return false;
  const std::vector<double> expected = serial(one);
  for (int pe = 0; pe < one.pes; ++pe)  // an even number of swaps
    for (int r = first(pe); r < first(pe + 1); ++r)
      for (int c = 0; c < kColumns; ++c)
        if (u.at(heaps.base(pe))[index(pe, r, c)] !=
            expected[static_cast<std::size_t>(r * kColumns + c)])
          return false;
  return true;
}

int wrong_of_many(Case one, std::uint64_t seeds = 15) {
  int wrong = 0;
  for (one.seed = 0; one.seed < seeds; ++one.seed) wrong += right(one) ? 0 : 1;
  return wrong;
}

}  // namespace

TEST(tile_runtime_gives_the_serial_result_under_every_schedule) {
  for (const bool ring : {true, false})
    for (const bool corners : {true, false})
      for (const int reach : {1, 2})
        for (const int pes : {1, 2, 3})
          for (const int rows : {1, 2, 3})
            for (const int columns : {1, 2, 4})
              CHECK(wrong_of_many({pes, rows, columns, reach, ring, corners}, 4) == 0);
}

TEST(tile_runtime_needs_no_fences) {
  Case one{3, 2, 2, 1, true, true};
  one.fault.kind = cpu_fibers::Fault::Kind::skip_publish;
  CHECK(wrong_of_many(one, 60) == 0);
}

TEST(tile_runtime_is_wrong_with_one_slot) {
  Case one{2, 2, 2, 1, true, false};
  one.one_slot = true;
  CHECK(wrong_of_many(one, 60) > 0);
}

TEST(tile_runtime_ends_with_a_diagnosis_where_a_packet_is_lost) {
  Case one{2, 2, 1, 1, true, false};
  one.fault.kind = cpu_fibers::Fault::Kind::drop_signal;
  one.fault.pe = 1;
  int ended = 0;
  for (one.fault.at = 0; one.fault.at < 12; ++one.fault.at) ended += right(one) ? 0 : 1;
  CHECK(ended > 0);
}
