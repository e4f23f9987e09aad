// Messages between ranks, under random schedules and late stores: a ring of ranks that smooth their
// own arrays gives the serial result, where messages go both ways or one way, with blocks in roles
// too; a fence that is missing, a grant that is too early, or a flag that is lost is found.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/programs/grid_runtime.hpp"
#include "cpufree/programs/messages.hpp"
#include "cpufree/programs/solo_port.hpp"
#include "harness.hpp"

using namespace cpufree;
using namespace cpufree::programs;

namespace {

constexpr std::int64_t kRows = 5, kColumns = 4, kSteps = 4;  // of a rank
constexpr int kSites = 4;  // to the rank before and behind, of either array

// Where the regions of the next turn are granted: behind the barrier after their last use; in
// front of the exchange itself; or, wrongly, before they are used.
enum class Grants { early, late, too_early };

struct Case {
  int pes = 1, blocks = 1, slices = 1;
  bool roles = false;
  Grants grants = Grants::early;
  bool one_way = false;  // to the rank behind only, which may lag behind, then
  std::uint64_t seed = 0;
  cpu_fibers::Fault fault = {};
};

// Offsets in the heap of a rank.
struct Places {
  GridPlan grid;
  MessagePlan messages;
  std::int64_t a, b;
};

template <class R>
void smooth(R& rt, double* to, const double* from, std::int64_t first, std::int64_t end,
            bool one_way = false) {
  const auto points = static_cast<int>((end - first) * kColumns);
  rt.template sweep<1>(points, [&](int point, int) {
    const std::int64_t k = (first + 1) * kColumns + point;
    to[k] = 0.5 * (from[k - kColumns] + from[one_way ? k : k + kColumns]);
  });
}

template <GridPort P>
bool kernel(P& port, const GridArgs<1>& args, std::byte* heap, const Places& at, const Case& one) {
  Messages<P> messages(port, heap, at.messages);
  SoloPort<P> solo(port);
  GridRuntime<SoloPort<P>, GridArgs<1>> rt(solo, args, heap, at.grid);
  double* const arrays[2] = {reinterpret_cast<double*>(heap + at.a),
                             reinterpret_cast<double*>(heap + at.b)};
  Exchange x[2];
  if (one.grants != Grants::late) messages.grant(x[0], 0, 2);
  for (int half = 0; half < 2 * kSteps; ++half) {
    const int now = half % 2, next = 1 - now;
    if (!rt.turn(true, true)) return false;
    if (!rt.barrier(false)) return false;
    if (one.grants == Grants::early) messages.grant(x[next], 2 * next, 2);
    if (one.grants == Grants::late) messages.grant(x[now], 2 * now, 2);
    if (!one.roles) {
      messages.start(x[now], 2 * now, 2);
      if (!messages.finish(x[now], 2 * now, 2)) return false;
      if (one.grants == Grants::too_early) messages.grant(x[now], 2 * now, 2);
      smooth(rt, arrays[next], arrays[now], 0, kRows, one.one_way);
      if (one.grants == Grants::too_early && half == 0) messages.grant(x[next], 2 * next, 2);
      continue;
    }
    const Roles roles = divide_roles(port.blocks(), 2, kRows - 2, 2 * one.slices);
    messages.start(x[now], 2 * now, 2, roles.boundary);
    if (roles.inside(port.block())) {
      solo.only(roles.first_inside(), roles.count_inside());
      smooth(rt, arrays[next], arrays[now], 1, kRows - 1);
      solo.only(0, 0);
    }
    if (roles.at_boundary(port.block())) {
      if (!messages.finish(x[now], 2 * now, 2)) return false;
      solo.only(0, roles.boundary);
      smooth(rt, arrays[next], arrays[now], 0, 1);
      smooth(rt, arrays[next], arrays[now], kRows - 1, kRows);
      solo.only(0, 0);
    }
  }
  return true;
}

double first_value(std::int64_t row, std::int64_t column) {
  return static_cast<double>((7 * row + 3 * column) % 13);
}

std::vector<double> serial(int pes, bool one_way) {
  const std::int64_t rows = kRows * pes;
  std::vector<double> u(static_cast<std::size_t>(rows * kColumns)), v = u;
  const auto at = [&](std::int64_t r, std::int64_t c) {
    return static_cast<std::size_t>((r + rows) % rows * kColumns + c);
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c) u[at(r, c)] = first_value(r, c);
  for (int half = 0; half < 2 * kSteps; ++half) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        v[at(r, c)] = 0.5 * (u[at(r - 1, c)] + u[at(one_way ? r : r + 1, c)]);
    u.swap(v);
  }
  return u;
}

// Site 2 k sends the first row of array k to the rank before, whose last ghost row it is, and site
// 2 k + 1 the last row to the rank behind; sites of receiving have the same numbers.
void write_table(std::byte* heap, int pe, const Case& one, const Places& at, std::int64_t credits) {
  auto* const head = heap + at.messages.table;
  *reinterpret_cast<std::int64_t*>(head) = 0;
  auto* const sends = reinterpret_cast<SendSite*>(head + 128);
  auto* const receives = reinterpret_cast<ReceiveSite*>(sends + kSites);
  for (int k = 0; k < kSites; ++k) {
    const std::int64_t base = k < 2 ? at.a : at.b, row = 8 * kColumns;
    const bool before = k % 2 == 0;
    SendSite& s = sends[k];
    s = {};
    s.peer = (pe + (before ? one.pes - 1 : 1)) % one.pes;
    s.arrival = at.messages.arrivals + 128 * one.slices * k;
    s.threads = before ? 1 : 1 << 20;  // where one copies, the block does not meet
    s.bytes = 8;
    s.to = base + (before ? (kRows + 1) * row : 0);
    s.from = base + (before ? row : kRows * row);
    s.to_step[2] = s.from_step[2] = 1;
    s.count[0] = s.count[1] = 1, s.count[2] = kColumns;
    s.slices = one.slices;
    receives[k].peer = (pe + (before ? 1 : one.pes - 1)) % one.pes;
    receives[k].credit = credits + 128 * k;
    if (!one.one_way || !before) continue;
    s.peer = receives[k].peer = -1;
    auto* const flags = reinterpret_cast<Flag*>(heap + s.arrival);
    for (int j = 0; j < one.slices; ++j) flags[j].value = Epoch{1} << 62;
    reinterpret_cast<Flag*>(heap + credits)[k].value = Epoch{1} << 62;
  }
}

bool right(const Case& one) {
  SymmetricLayout layout;
  const auto offset = [](const auto& object) { return static_cast<std::int64_t>(object.offset); };
  const auto counter = layout.reserve<Flag>(1), flags = layout.reserve<Flag>(2);
  const auto stop = layout.reserve<Flag>(1);
  const auto packets =
      layout.reserve<Packet>(static_cast<std::size_t>(grid_packets(1, one.blocks)));
  const auto table = layout.reserve<std::int64_t>(16 + 18 * kSites);
  const auto arrivals = layout.reserve<Flag>(static_cast<std::size_t>(kSites * one.slices));
  const auto credits = layout.reserve<Flag>(kSites);
  const auto a = layout.reserve<double>((kRows + 2) * kColumns);
  const auto b = layout.reserve<double>((kRows + 2) * kColumns);
  const cpu_threads::SymmetricHeaps heaps(one.pes, layout.bytes());
  const Places at{{kRows + 2, offset(counter), offset(flags), offset(packets), offset(stop), false},
                  {offset(table), kSites, offset(arrivals), offset(credits), 0, one.slices},
                  offset(a),
                  offset(b)};
  for (int pe = 0; pe < one.pes; ++pe) {
    write_table(heaps.base(pe), pe, one, at, offset(credits));
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        a.at(heaps.base(pe))[(r + 1) * kColumns + c] = first_value(pe * kRows + r, c);
  }
  std::int64_t results[1] = {}, faults[2] = {};
  const GridArgs<1> args{results, faults, {}};
  cpu_fibers::Config config;
  config.pes = one.pes;
  config.blocks = one.blocks;
  config.heaps = heaps.bases();
  config.seed = one.seed;
  config.fault = one.fault;
  cpu_fibers::Machine* machine = nullptr;
  cpu_fibers::Machine all(config, [&](int pe, int block) {
    cpu_fibers::Port port(*machine, pe, block);
    kernel(port, args, heaps.base(pe), at, one);
  });
  machine = &all;
  if (!all.run()) return false;
  const std::vector<double> expected = serial(one.pes, one.one_way);
  for (int pe = 0; pe < one.pes; ++pe)
    for (std::int64_t k = 0; k < kRows * kColumns; ++k)
      if (a.at(heaps.base(pe))[kColumns + k] !=
          expected[static_cast<std::size_t>(pe * kRows * kColumns + k)])
        return false;
  return true;
}

int wrong_of_many(Case one) {
  int wrong = 0;
  for (one.seed = 0; one.seed < 60; ++one.seed) wrong += right(one) ? 0 : 1;
  return wrong;
}

}  // namespace

TEST(messages_give_the_serial_result_under_every_schedule) {
  for (const int pes : {1, 2, 3, 4})
    for (const int blocks : {1, 2, 5})
      for (const int slices : {1, 3})
        for (const Grants grants : {Grants::early, Grants::late})
          for (const bool one_way : {false, true})
            CHECK(wrong_of_many({pes, blocks, slices, false, grants, one_way}) == 0);
}

TEST(blocks_in_roles_give_the_serial_result_under_every_schedule) {
  for (const int pes : {1, 2, 3})
    for (const int blocks : {1, 2, 3, 8})
      for (const int slices : {1, 3}) CHECK(wrong_of_many({pes, blocks, slices, true}) == 0);
}

TEST(messages_are_wrong_without_their_fences) {
  for (const bool roles : {false, true}) {
    Case one{3, 2, 1, roles};
    one.fault.kind = cpu_fibers::Fault::Kind::skip_publish;
    CHECK(wrong_of_many(one) > 0);
  }
}

TEST(messages_are_wrong_where_grants_are_too_early) {
  CHECK(wrong_of_many({3, 2, 1, false, Grants::too_early, true}) > 0);
}

TEST(messages_end_with_a_diagnosis_where_a_flag_is_lost) {
  Case one{2, 1, 1, false, Grants::late, false, 7};
  one.fault.kind = cpu_fibers::Fault::Kind::drop_signal;
  one.fault.pe = 1;
  int lost = 0;  // one that is lost is made good by the next one of its sender, which is larger
  for (one.fault.at = 0; one.fault.at < 64; ++one.fault.at) lost += right(one) ? 0 : 1;
  CHECK(lost > 0);
}

TEST(roles_are_divided_by_work) {
  CHECK(divide_roles(1, 5, 5, 4).boundary == 1);
  CHECK(divide_roles(1, 5, 5, 4).inside(0) && divide_roles(1, 5, 5, 4).at_boundary(0));
  CHECK(divide_roles(100, 10, 90, 1).boundary == 10);
  CHECK(divide_roles(100, 1, 999, 8).boundary == 8);
  CHECK(divide_roles(100, 1, 999, 80).boundary == 25);
  CHECK(divide_roles(100, 90, 10, 1).boundary == 50);
  CHECK(!divide_roles(2, 1, 9, 1).inside(0) && divide_roles(2, 1, 9, 1).inside(1));
}
