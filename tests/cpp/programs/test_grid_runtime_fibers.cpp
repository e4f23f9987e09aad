// What generated kernels of many blocks are made of, under random schedules and late stores: ghosts
// that their owners store, barriers and reductions give the serial result; a fence or a barrier
// that is missing is found.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/programs/grid_runtime.hpp"
#include "harness.hpp"

using namespace cpufree;
using namespace cpufree::programs;

namespace {

constexpr std::int64_t kRows = 11, kColumns = 3, kSteps = 6;
constexpr int kLanes = 2;

enum class Between { barrier, reduction, own_barrier };

struct Case {
  int pes = 1, blocks = 1;
  bool ring = true;
  Between between = Between::barrier;
  std::uint64_t seed = 0;
  cpu_fibers::Fault fault = {};
};

// new = half of the row before and the row behind; where there is no ring, the ends stay.
template <GridPort P>
bool kernel(P& port, const GridArgs<1>& args, std::byte* heap, const GridPlan& plan,
            std::int64_t at_u, std::int64_t at_v, Between between) {
  GridRuntime<P, GridArgs<1>> rt(port, args, heap, plan);
  auto u = rt.template field<double>(at_u, kRows, 0);
  auto v = rt.template field<double>(at_v, kRows, 1);
  const auto ghosts = rt.ghosts(kRows, kColumns, 1, 1);
  const std::int64_t start = plan.ring ? 0 : 1, count = plan.ring ? kRows : kRows - 2;
  double most = 0.0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    if (!rt.turn(true, true)) return false;
    double largest = -1.0;
    const std::int64_t a = rt.first(start, 1), b = rt.end(start, 1, count), lo = rt.lo();
    const std::int64_t points = b > a ? (b - a) * kColumns : 0;
    const int tiles = static_cast<int>((points + kLanes - 1) / kLanes);
    rt.template sweep<kLanes>(tiles, [&](int tile, int lane) {
      const std::int64_t point = std::int64_t{tile} * kLanes + lane;
      if (point >= points) return;
      const std::int64_t i = start + a + point / kColumns - lo, column = point % kColumns;
      const double* const p = u.base + (i + 1) * kColumns + column;
      const double value = 0.5 * (p[-kColumns] + p[kColumns]);
      rt.store(ghosts, v.base + (i + 1) * kColumns + column, i, value);
      largest = maximum(largest, value);
    });
    if (between == Between::reduction) {
      if (!rt.join(largest, Max{})) return false;
    } else {
      if (!rt.barrier(between == Between::barrier)) return false;
    }
    most = largest;
    const auto old = u;
    u.take(v);
    v.take(old);
  }
  rt.result(0, most);
  return true;
}

double first_value(std::int64_t row, std::int64_t column) {
  return static_cast<double>((7 * row + 3 * column) % 13);
}

std::vector<double> serial(bool ring, double& largest) {
  std::vector<double> u(kRows * kColumns), v;
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c)
      u[static_cast<std::size_t>(r * kColumns + c)] = first_value(r, c);
  v = u;
  const std::int64_t begin = ring ? 0 : 1, end = ring ? kRows : kRows - 1;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    largest = -1.0;
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const auto at = [&](std::int64_t row) {
          return u[static_cast<std::size_t>((row + kRows) % kRows * kColumns + c)];
        };
        const double value = 0.5 * (at(r - 1) + at(r + 1));
        v[static_cast<std::size_t>(r * kColumns + c)] = value;
        largest = value > largest ? value : largest;
      }
    u.swap(v);
  }
  return u;
}

bool right(const Case& one) {
  SymmetricLayout layout;
  const auto counter = layout.reserve<Flag>(1), flags = layout.reserve<Flag>(2),
             stop = layout.reserve<Flag>(1);
  const auto packets =
      layout.reserve<Packet>(static_cast<std::size_t>(grid_packets(one.pes, one.blocks)));
  const auto values = static_cast<std::size_t>(((kRows + one.pes - 1) / one.pes + 2) * kColumns);
  const auto u = layout.reserve<double>(values), v = layout.reserve<double>(values);
  const cpu_threads::SymmetricHeaps heaps(one.pes, layout.bytes());
  const auto offset = [](const auto& object) { return static_cast<std::int64_t>(object.offset); };
  const GridPlan plan{kRows,           offset(counter), offset(flags),
                      offset(packets), offset(stop),    one.ring};
  std::int64_t results[1] = {}, faults[2] = {};
  const GridArgs<1> args{results, faults, {}};
  const auto first = [&](int pe) { return kRows * pe / one.pes; };
  for (int pe = 0; pe < one.pes; ++pe)
    for (std::int64_t r = first(pe) - 1; r < first(pe + 1) + 1; ++r)
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const std::int64_t at = (r - first(pe) + 1) * kColumns + c;
        u.at(heaps.base(pe))[at] = v.at(heaps.base(pe))[at] = first_value((r + kRows) % kRows, c);
      }
  cpu_fibers::Config config;
  config.pes = one.pes;
  config.blocks = one.blocks;
  config.heaps = heaps.bases();
  config.seed = one.seed;
  config.fault = one.fault;
  cpu_fibers::Machine* machine = nullptr;
  cpu_fibers::Machine all(config, [&](int pe, int block) {
    cpu_fibers::Port port(*machine, pe, block);
    kernel(port, args, heaps.base(pe), plan, offset(u), offset(v), one.between);
  });
  machine = &all;
  if (!all.run()) return false;
  double largest = 0.0, found = 0.0;
  const std::vector<double> expected = serial(one.ring, largest);
  std::memcpy(&found, results, sizeof found);
  if (one.between == Between::reduction && found != largest) return false;
  for (int pe = 0; pe < one.pes; ++pe)  // an even number of swaps
    for (std::int64_t r = first(pe); r < first(pe + 1); ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        if (u.at(heaps.base(pe))[(r - first(pe) + 1) * kColumns + c] !=
            expected[static_cast<std::size_t>(r * kColumns + c)])
          return false;
  return true;
}

int wrong_of_many(Case one) {
  int wrong = 0;
  for (one.seed = 0; one.seed < 60; ++one.seed) wrong += right(one) ? 0 : 1;
  return wrong;
}

}  // namespace

TEST(grid_runtime_gives_the_serial_result_under_every_schedule) {
  for (const Between between : {Between::barrier, Between::reduction})
    for (const bool ring : {true, false})
      for (const int pes : {1, 2, 3, 5})
        for (const int blocks : {1, 2, 3}) CHECK(wrong_of_many({pes, blocks, ring, between}) == 0);
}

TEST(grid_runtime_is_wrong_without_its_fences) {
  for (const Between between : {Between::barrier, Between::reduction}) {
    Case one{3, 2, true, between};
    one.fault.kind = cpu_fibers::Fault::Kind::skip_publish;
    CHECK(wrong_of_many(one) > 0);
  }
}

TEST(grid_runtime_is_wrong_where_neighbours_do_not_wait_for_one_another) {
  CHECK(wrong_of_many({3, 2, true, Between::own_barrier}) > 0);
  CHECK(wrong_of_many({1, 3, false, Between::own_barrier}) == 0);
}

TEST(grid_runtime_ends_with_a_diagnosis_where_a_message_is_lost) {
  Case one{3, 1, true, Between::reduction, 7};
  one.fault.kind = cpu_fibers::Fault::Kind::drop_signal;
  one.fault.pe = 1;
  for (one.fault.at = 0; one.fault.at < 4; ++one.fault.at) CHECK(!right(one));
  // A flag that is lost is made good by the next one of its sender, which is larger; not the last.
  one.between = Between::barrier;
  for (one.fault.at = 0; one.fault.at < 4; ++one.fault.at) CHECK(right(one));
  for (one.fault.at = 2 * kSteps - 2; one.fault.at < 2 * kSteps; ++one.fault.at) CHECK(!right(one));
}
