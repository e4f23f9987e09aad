// What generated kernels are made of, under random schedules and late stores: halos and reductions
// give the serial result, and a fence that is missing is found.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/programs/runtime.hpp"
#include "harness.hpp"

using namespace cpufree;
using namespace cpufree::programs;

namespace {

constexpr std::int64_t kRows = 11, kColumns = 3, kStride = 4, kSteps = 6;

// new = old of the row before + old of the row behind, around the ring.
struct Neighbours {
  static constexpr int dims = 2;
  Points box[2];
  Array<const double, 2> in;
  Array<double, 2> out;
  const double* below;
  const double* above;
  double* o;
  CPUFREE_FN void row(std::int64_t r0) {
    below = in.base + (r0 - 1 - in.first) * in.stride[0];
    above = in.base + (r0 + 1 - in.first) * in.stride[0];
    o = out.base + (r0 - out.first) * out.stride[0];
  }
  CPUFREE_FN std::int64_t segment(std::int64_t, std::int64_t e) { return e; }
  CPUFREE_FN void point(std::int64_t r1) const { o[r1] = 0.5 * (below[r1] + above[r1]); }
};

struct Largest {
  static constexpr int dims = 2;
  Points box[2];
  Array<const double, 2> in;
  const double* p;
  double total;
  CPUFREE_FN void row(std::int64_t r0) { p = in.base + (r0 - in.first) * in.stride[0]; }
  CPUFREE_FN std::int64_t segment(std::int64_t, std::int64_t e) { return e; }
  CPUFREE_FN double point(std::int64_t r1) const { return p[r1]; }
  CPUFREE_FN void reduce(std::int64_t lo, std::int64_t hi) {
    total = maximum(total, reduce_points<double>(*this, total, lo, hi, Max{}));
  }
};

// Exchanges, computes, reduces and swaps, as a generated kernel does; writes the last maximum.
template <Port P>
bool kernel(P& port, const Args& args, std::byte* heap) {
  Runtime<P> rt(port, args, heap);
  auto u = rt.template field<double, 2>(3, 0, true);
  auto v = rt.template field<double, 2>(8, 1, true);
  auto channel = rt.channel(13, true);
  double largest = 0.0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    if (!rt.turn(true)) return false;
    rt.put(channel, rt.halo(u, 1, 1));
    if (!rt.wait(channel, rt.halo(u, 1, 1))) return false;
    Rows<Neighbours> stage{};
    stage.stage.box[0] = {0, 1, kRows};
    stage.stage.box[1] = {0, 1, kColumns};
    stage.stage.in = u;
    stage.stage.out = v;
    Rows<Largest> most{};
    most.stage.box[0] = {0, 1, kRows};
    most.stage.box[1] = {0, 1, kColumns};
    most.stage.in = v;
    most.stage.total = -1.0;
    rt.group(2, stage, most);
    if (!rt.join(most.stage.total, Max{})) return false;
    largest = most.stage.total;
    const auto old = u;
    u.take(v);
    v.take(old);
  }
  rt.result(0, largest);
  rt.result(1, std::int64_t{u.id});
  return true;
}

double first_value(std::int64_t row, std::int64_t column) {
  return static_cast<double>((7 * row + 3 * column) % 13);
}

// What the fields hold in the end, and the largest value, computed in one place.
std::vector<double> serial(double& largest) {
  std::vector<double> u(kRows * kColumns), v(u.size());
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c)
      u[static_cast<std::size_t>(r * kColumns + c)] = first_value(r, c);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    largest = -1.0;
    for (std::int64_t r = 0; r < kRows; ++r)
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

struct Outcome {
  bool ended = false;
  bool right = false;
};

Outcome run(int pes, std::uint64_t seed, cpu_fibers::Fault fault = {}) {
  SymmetricLayout layout;
  const auto slots = layout.reserve<Packet>(static_cast<std::size_t>(4 * pes));
  const std::int64_t most = (kRows + pes - 1) / pes + 2;
  const auto values = static_cast<std::size_t>(most * kStride);
  const auto u = layout.reserve<double>(values), v = layout.reserve<double>(values);
  const auto flags = layout.reserve<Flag>(2), stop = layout.reserve<Flag>(1);
  const std::int64_t slot = 2 * kStride * 8;
  const auto mail = layout.reserve<std::byte>(static_cast<std::size_t>(2 * slot));
  const cpu_threads::SymmetricHeaps heaps(pes, layout.bytes());
  const auto offset = [](const auto& object) { return static_cast<std::int64_t>(object.offset); };
  const std::int64_t numbers[] = {kRows,
                                  offset(slots),
                                  offset(stop),
                                  offset(u),
                                  kRows,
                                  1,
                                  kStride,
                                  1,
                                  offset(v),
                                  kRows,
                                  1,
                                  kStride,
                                  1,
                                  offset(flags),
                                  offset(mail),
                                  slot,
                                  kStride * 8};
  std::vector<std::int64_t> results(2), faults(static_cast<std::size_t>(2 * pes));
  const Args args{numbers, nullptr, results.data(), faults.data()};
  const auto first = [&](int pe) { return kRows * pe / pes; };
  for (int pe = 0; pe < pes; ++pe)
    for (std::int64_t r = first(pe); r < first(pe + 1); ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        u.at(heaps.base(pe))[(r - first(pe) + 1) * kStride + c] = first_value(r, c);
  cpu_fibers::Config config;
  config.pes = pes;
  config.heaps = heaps.bases();
  config.seed = seed;
  config.fault = fault;
  cpu_fibers::Machine* machine = nullptr;
  cpu_fibers::Machine all(config, [&](int pe, int block) {
    cpu_fibers::Port port(*machine, pe, block);
    kernel(port, args, heaps.base(pe));
  });
  machine = &all;
  Outcome outcome;
  outcome.ended = all.run();
  double largest = 0.0;
  const std::vector<double> expected = serial(largest);
  double found = 0.0;
  std::memcpy(&found, results.data(), sizeof found);
  outcome.right = found == largest;
  for (int pe = 0; pe < pes; ++pe)  // an even number of swaps
    for (std::int64_t r = first(pe); r < first(pe + 1); ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        if (u.at(heaps.base(pe))[(r - first(pe) + 1) * kStride + c] !=
            expected[static_cast<std::size_t>(r * kColumns + c)])
          outcome.right = false;
  return outcome;
}

}  // namespace

TEST(program_runtime_gives_the_serial_result_under_every_schedule) {
  for (int pes : {1, 2, 3, 5})
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Outcome outcome = run(pes, seed);
      CHECK(outcome.ended);
      CHECK(outcome.right);
    }
}

TEST(program_runtime_is_wrong_without_its_fences) {
  cpu_fibers::Fault fault;
  fault.kind = cpu_fibers::Fault::Kind::skip_publish;
  fault.pe = 1;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Outcome outcome = run(3, seed, fault);
    wrong += !outcome.ended || !outcome.right;
  }
  CHECK(wrong > 0);
}

TEST(program_runtime_ends_with_a_diagnosis_where_a_flag_is_lost) {
  cpu_fibers::Fault fault;
  fault.kind = cpu_fibers::Fault::Kind::drop_signal;
  fault.pe = 1;
  for (std::int64_t at = 0; at < 8; ++at) {
    fault.at = at;
    CHECK(!run(3, 7, fault).ended);
  }
}
