// Sums over PEs by a library that one thread of each PE calls, under many schedules.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness.hpp"
#include "kernel_rig.hpp"

using namespace testing_rig;
using namespace testing_matrices;
using cpu_fibers::Fault;

namespace {

constexpr int kSchedules = 200;

SolveParams few_iterations() {
  SolveParams p;
  p.rtol = 1e-14;
  p.maxiter = 5;
  p.replace_every = 3;
  p.roundoff = 1e-16;
  p.history_capacity = 8;
  return p;
}

Rig rig_of(int pes, int blocks, Style style, bool by_library) {
  const auto a = grid2d(5, 4);
  Rig rig(a, wave(a.n()), pes, blocks, 5, style);
  rig.params = few_iterations();
  rig.by_library = by_library;
  return rig;
}

double norm(const std::vector<double>& v) {
  double square = 0.0;
  for (const double value : v) square += value * value;
  return std::sqrt(square);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> d(a.size());
  std::ranges::transform(a, b, d.begin(), std::minus<>());
  return norm(d);
}

// Every schedule ends, and bitwise where the first one did, which is where the flat reduction ends
// but for rounding, after as many iterations.
template <template <class, class> class Algorithm, class M>
void check_schedules(int pes, int blocks, Style style) {
  Rig flat = rig_of(pes, blocks, style, false);
  CHECK((flat.run<Algorithm, M>(1)));
  Rig rig = rig_of(pes, blocks, style, true);
  CHECK((rig.run<Algorithm, M>(1)));
  const auto expected = rig.x();
  CHECK_EQ(rig.outcome.iterations, flat.outcome.iterations);
  CHECK_EQ(rig.outcome.reductions, flat.outcome.reductions);
  CHECK(distance(expected, flat.x()) <= 1e-12 * norm(flat.x()));
  int wrong = 0;
  int stuck = 0;
  for (std::uint64_t seed = 2; seed <= kSchedules; ++seed) {
    if (!rig.run<Algorithm, M>(seed)) ++stuck;
    if (rig.x() != expected) ++wrong;
  }
  CHECK_EQ(stuck, 0);
  CHECK_EQ(wrong, 0);
}

template <template <class, class> class Algorithm, class M>
void check_all() {
  for (const Style style : {Style::cpu, Style::gpu, Style::gpu_blocks}) {
    check_schedules<Algorithm, M>(2, 2, style);
    check_schedules<Algorithm, M>(3, 1, style);
    check_schedules<Algorithm, M>(1, 3, style);
  }
}

// What one reduction brings, where PEs have the notes given.
struct Reduced {
  double total = 0.0;
  unsigned notes = 0;
  bool here = false;
};

// Blocks with notes of their own host.
class NotedPort : public cpu_fibers::SumPort {
 public:
  NotedPort(const SumPort& port, unsigned notes) : SumPort(port), notes_(notes) {}
  unsigned host_notes() const { return notes_; }

 private:
  unsigned notes_;
};

// Every block of 3 PEs brings its number to two reductions; what each finds in the second one.
std::vector<Reduced> reduce_twice(std::uint64_t seed, const std::vector<unsigned>& notes) {
  constexpr int kPes = 3, kBlocks = 2;
  SymmetricLayout layout;
  const auto slots =
      layout.reserve<Packet>(static_cast<std::size_t>(reduce_slot_count(kPes, kBlocks)));
  const auto in = layout.reserve<double>(static_cast<std::size_t>(library_in_count()));
  const auto out = layout.reserve<double>(static_cast<std::size_t>(library_out_count()));
  const auto told = layout.reserve<Packet>(static_cast<std::size_t>(library_told_count()));
  cpu_threads::SymmetricHeaps heaps(kPes, layout.bytes());
  std::vector<Reduced> found(kPes * kBlocks);
  cpu_fibers::SumLibrary sums(kPes);
  std::unique_ptr<cpu_fibers::Machine> machine;
  machine = std::make_unique<cpu_fibers::Machine>(
      cpu_fibers::Config{kPes, kBlocks, heaps.bases(), seed, {}}, [&](int pe, int block) {
        std::byte* const heap = heaps.base(pe);
        const LibraryBoard board{in.at(heap), out.at(heap), told.at(heap)};
        NotedPort port(cpu_fibers::SumPort(*machine, pe, block, board, sums),
                       notes[static_cast<std::size_t>(pe)]);
        ReductionOf<NotedPort> reduction(port, slots.at(heap));
        Reduced& mine = found[static_cast<std::size_t>(pe * kBlocks + block)];
        for (int round = 0; round < 2; ++round) {
          const double brought[1] = {static_cast<double>((round + 1) * (pe * kBlocks + block))};
          double total[1];
          mine.here = reduction.sum(brought, total, mine.notes, false, [] {});
          mine.total = total[0];
        }
      });
  CHECK(machine->run());
  return found;
}

}  // namespace

TEST(cg_with_sums_of_a_library_is_right_under_every_schedule) {
  check_all<ConjugateGradient, Jacobi<double>>();
  check_all<ConjugateGradient, Identity<double>>();
}
TEST(prcg_with_sums_of_a_library_is_right_under_every_schedule) {
  check_all<PredictRecompute, Jacobi<double>>();
  check_all<PredictRecompute, Identity<double>>();
}
TEST(pipecg_with_sums_of_a_library_is_right_under_every_schedule) {
  check_all<PipelinedCg, Jacobi<double>>();
  check_all<PipelinedCg, Identity<double>>();
}

TEST(all_blocks_of_all_pes_get_the_sum_of_a_library) {
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const Reduced& found : reduce_twice(seed, {0, 0, 0})) {
      CHECK(found.here);
      CHECK_EQ(found.total, 2.0 * (0 + 1 + 2 + 3 + 4 + 5));
    }
}

TEST(notes_of_pe_0_come_with_the_sums_of_a_library) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const Reduced& found : reduce_twice(seed, {kNoteTimeLimit, 0, 0}))
      CHECK_EQ(found.notes, unsigned{kNoteTimeLimit});
}

// As many PEs are told of the time limit at once: their notes must not add up to another note.
TEST(notes_of_other_pes_do_not_come_with_the_sums_of_a_library) {
  const unsigned limit = kNoteTimeLimit;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const Reduced& found : reduce_twice(seed, {limit, limit, limit}))
      CHECK_EQ(found.notes, limit);
    for (const Reduced& found : reduce_twice(seed, {0, limit, limit})) CHECK_EQ(found.notes, 0U);
  }
}

TEST(a_lost_packet_names_the_block_that_has_called_the_library) {
  int told = 0;
  for (std::int64_t at = 0; at < 40; ++at) {
    Rig rig = rig_of(2, 2, Style::cpu, true);
    if (rig.run<PredictRecompute, Jacobi<double>>(3, {Fault::Kind::drop_signal, 1, 0, at}))
      continue;
    const auto& records = rig.machine().records();
    told += std::ranges::any_of(records, [](const WaitRecord& r) {
      return r.channel == Channel::library_reduction && r.from_pe == 1 && r.from_block == 0 &&
             r.state == BlockState::expired && !reached(r.seen, r.want);
    });
  }
  CHECK(told > 0);
}

// The library's call knows no bound; all other waits end.
TEST(a_dead_block_ends_the_blocks_of_all_pes_that_are_not_in_the_library) {
  for (const std::int64_t at : {0, 5, 50, 150}) {
    Rig rig = rig_of(2, 3, Style::cpu, true);
    CHECK(!(rig.run<PredictRecompute, Jacobi<double>>(11, {Fault::Kind::kill_block, 1, 2, at})));
    const auto& records = rig.machine().records();
    for (std::size_t slot = 0; slot < records.size(); ++slot) {
      if (slot == 5) continue;  // the dead one
      const bool first = slot % 3 == 0;
      const bool in_library = first && records[slot].state == BlockState::running;
      CHECK(in_library || records[slot].state == BlockState::expired);
    }
  }
}
