// PEs in several nodes: what goes between nodes goes by puts with signals, which arrive late, in
// pieces and in any order, and read their source late. The solver kernels under many schedules.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpufree/probes/litmus.hpp"
#include "cpufree/reference/cg.hpp"
#include "harness.hpp"
#include "kernel_rig.hpp"

using namespace testing_rig;
using namespace testing_matrices;
using cpu_fibers::Fault;

namespace {

constexpr int kSchedules = 400;

// Names of the PEs' nodes: two of one PE, two of two, four of one, and uneven ones, one of them not
// in a row.
const std::vector<std::vector<std::int32_t>> kNodes = {
    {0, 1}, {0, 0, 1, 1}, {0, 1, 2, 3}, {0, 0, 0, 1}, {7, 5, 7, 5, 7}, {0, 1, 1, 2, 2, 2}};

SolveParams few_iterations() {
  SolveParams p;
  p.rtol = 1e-14;
  p.maxiter = 5;
  p.replace_every = 3;
  p.chebyshev_degree = 3;
  p.lambda_bound = 2.0;
  p.roundoff = 1e-16;
  p.history_capacity = 8;
  return p;
}

Rig rig_of(const std::vector<std::int32_t>& nodes, int blocks) {
  const auto a = grid2d(5, 4);
  Rig rig(a, wave(a.n()), NodeTable(nodes), static_cast<int>(nodes.size()), blocks, 5);
  rig.params = few_iterations();
  return rig;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  const auto d = reference::axpy(a, -1.0, b);
  return std::sqrt(reference::dot(d, d));
}

// Every schedule ends, and bitwise where the first one did, which is where one node ends but for
// rounding.
template <template <class, class> class Algorithm, class M>
void check_schedules(const std::vector<std::int32_t>& nodes, int blocks, int schedules,
                     const FactorSpec& factors = {}) {
  Rig rig = rig_of(nodes, blocks);
  if (factors.any()) rig.set_factors(factors);
  CHECK((rig.run<Algorithm, M>(1)));
  const auto expected = rig.x();
  CHECK_EQ(rig.outcome.iterations, 5);
  Rig one = rig_of(std::vector<std::int32_t>(nodes.size(), 0), blocks);
  if (factors.any()) one.set_factors(factors);
  CHECK((one.run<Algorithm, M>(1)));
  CHECK(distance(expected, one.x()) <= 1e-12 * std::sqrt(reference::dot(expected, expected)));
  int wrong = 0;
  int stuck = 0;
  for (int seed = 2; seed <= harness::schedules(schedules); ++seed) {
    if (!rig.run<Algorithm, M>(static_cast<std::uint64_t>(seed))) ++stuck;
    if (rig.x() != expected) ++wrong;
  }
  CHECK_EQ(stuck, 0);
  CHECK_EQ(wrong, 0);
}

template <template <class, class> class Algorithm>
void check_all_nodes() {
  for (const auto& nodes : kNodes)
    check_schedules<Algorithm, Jacobi<double>>(nodes, nodes.size() < 5 ? 2 : 1, kSchedules);
}
template <template <class, class> class Algorithm>
void check_chebyshev() {
  for (const auto& nodes : {kNodes[1], kNodes[4]})
    check_schedules<Algorithm, Chebyshev<double>>(nodes, 2, kSchedules / 4);
}

template <template <class, class> class Algorithm>
void check_factors() {
  check_schedules<Algorithm, Factored<double>>(kNodes[1], 2, kSchedules / 4,
                                               {Preconditioner::fsai, 1, 0});
}

// Two nodes of one PE each, with a word of memory for whatever a test does with it.
struct Pair {
  static constexpr std::size_t kValues = 64;
  struct Memory {
    double source[kValues];
    double target[kValues];
    Flag flag;
    Flag flags[2];
  };

  // Runs `sender` on PE 0 and `receiver` on PE 1. True if no wait was given up.
  template <class S, class R>
  bool run(std::uint64_t seed, S&& sender, R&& receiver, const Fault& fault = {}) {
    std::memset(static_cast<void*>(memory), 0, sizeof(memory));
    std::byte* heaps[] = {reinterpret_cast<std::byte*>(&memory[0]),
                          reinterpret_cast<std::byte*>(&memory[1])};
    const NodeTable table = NodeTable::of_size(2, 1);
    const Remote remote{table.view(), {}, nullptr};
    std::unique_ptr<cpu_fibers::Machine> machine;
    machine = std::make_unique<cpu_fibers::Machine>(
        cpu_fibers::Config{2, 1, heaps, seed, fault}, [&](int pe, int block) {
          cpu_fibers::RemotePort port(*machine, pe, block, remote);
          pe == 0 ? sender(port) : receiver(port);
        });
    return machine->run();
  }
  Memory memory[2];
};

void wait_until(cpu_fibers::RemotePort& port, const Flag& flag, Epoch epoch) {
  CHECK(wait_flag(port, &flag, epoch, WaitSite{Channel::halo_arrival, 0, 0}));
}

}  // namespace

TEST(cg_between_nodes_is_right_under_every_schedule) { check_all_nodes<ConjugateGradient>(); }
TEST(prcg_between_nodes_is_right_under_every_schedule) { check_all_nodes<PredictRecompute>(); }
TEST(pipecg_between_nodes_is_right_under_every_schedule) { check_all_nodes<PipelinedCg>(); }
TEST(cg_with_chebyshev_between_nodes_is_right_under_every_schedule) {
  check_chebyshev<ConjugateGradient>();
}
TEST(prcg_with_chebyshev_between_nodes_is_right_under_every_schedule) {
  check_chebyshev<PredictRecompute>();
}
TEST(pipecg_with_chebyshev_between_nodes_is_right_under_every_schedule) {
  check_chebyshev<PipelinedCg>();
}

TEST(prcg_with_factors_between_nodes_is_right_under_every_schedule) {
  check_factors<PredictRecompute>();
}
TEST(pipecg_with_factors_between_nodes_is_right_under_every_schedule) {
  check_factors<PipelinedCg>();
}

TEST(restarts_between_nodes_are_right_under_every_schedule) {
  Rig rig = rig_of(kNodes[1], 1);
  rig.params.rtol = 0.0;
  rig.params.maxiter = 200;
  CHECK((rig.run<PipelinedCg, Jacobi<double>>(1)));
  CHECK_EQ(rig.outcome.reason, Reason::stagnated);
  CHECK(rig.outcome.handed_over_at > 0);
  const auto expected = rig.x();
  for (std::uint64_t seed = 2; seed < 60; ++seed)
    CHECK((rig.run<PipelinedCg, Jacobi<double>>(seed)) && rig.x() == expected);
}

TEST(result_between_nodes_is_that_of_the_reference) {
  const auto a = irregular(60, 3);
  const auto b = wave(a.n());
  const auto expected = reference::cg(a.view(), b, 1e-12, 200);
  for (const auto& nodes : kNodes) {
    Rig rig(a, b, NodeTable(nodes), static_cast<int>(nodes.size()), 2, 9);
    rig.params = few_iterations();
    rig.params.rtol = 1e-10;
    rig.params.maxiter = 200;
    CHECK((rig.run<PredictRecompute, Jacobi<double>>(17)));
    CHECK(distance(rig.x(), expected.x) <=
          1e-7 * std::sqrt(reference::dot(expected.x, expected.x)));
  }
}

TEST(a_lost_signal_between_nodes_names_who_waits_and_for_whom) {
  int halos = 0, sums = 0;
  for (std::int64_t at = 0; at < 40; ++at) {
    Rig rig = rig_of(kNodes[2], 1);  // all that PE 1 sends to others goes to other nodes
    if (rig.run<PredictRecompute, Jacobi<double>>(3, {Fault::Kind::drop_signal, 1, 0, at}))
      continue;  // a packet to itself is no signal between nodes
    const auto& records = rig.machine().records();
    for (std::size_t waiting = 0; waiting < records.size(); ++waiting) {
      const WaitRecord& r = records[waiting];
      if (r.from_pe != 1 || r.from_block != 0 || waiting == 1 || reached(r.seen, r.want)) continue;
      halos += r.channel == Channel::halo_arrival ? 1 : 0;
      sums += r.channel == Channel::node_reduction ? 1 : 0;
    }
  }
  CHECK(halos > 0);
  CHECK(sums > 0);
}

TEST(every_lost_signal_between_nodes_ends_in_a_diagnosis) {
  for (std::int64_t at = 0; at < 30; ++at) {
    Rig rig = rig_of(kNodes[1], 1);
    CHECK(!(rig.run<ConjugateGradient, Jacobi<double>>(3, {Fault::Kind::drop_signal, 2, 0, at})));
    CHECK(std::ranges::any_of(rig.machine().records(), [](const WaitRecord& r) {
      return r.state == BlockState::expired && r.from_pe == 2 && !reached(r.seen, r.want);
    }));
  }
}

TEST(a_late_signal_between_nodes_changes_nothing) {
  Rig rig = rig_of(kNodes[2], 1);
  CHECK((rig.run<ConjugateGradient, Jacobi<double>>(1)));
  const auto expected = rig.x();
  for (std::int64_t at = 0; at < 40; ++at) {
    CHECK((rig.run<ConjugateGradient, Jacobi<double>>(static_cast<std::uint64_t>(at),
                                                      {Fault::Kind::delay_signal, 1, 0, at})));
    CHECK(rig.x() == expected);
  }
}

TEST(a_dead_block_ends_the_kernels_of_other_nodes) {
  for (const std::int64_t at : {0, 5, 50, 150}) {
    Rig rig = rig_of(kNodes[1], 1);
    CHECK(!(rig.run<PredictRecompute, Jacobi<double>>(11, {Fault::Kind::kill_block, 3, 0, at})));
    CHECK_EQ(rig.machine().records()[3].state, BlockState::running);  // it never said goodbye
    for (std::size_t pe = 0; pe < 3; ++pe)
      CHECK_EQ(rig.machine().records()[pe].state, BlockState::expired);
  }
}

TEST(kernels_that_do_not_publish_before_puts_are_caught) {
  Rig rig = rig_of(kNodes[2], 1);
  CHECK((rig.run<PredictRecompute, Jacobi<double>>(1)));
  const auto expected = rig.x();
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    static_cast<void>(
        rig.run<PredictRecompute, Jacobi<double>>(seed, {Fault::Kind::skip_publish, 0, 0, 0}));
    wrong += rig.x() != expected ? 1 : 0;
  }
  CHECK(wrong > 20);
}

// --- The checker: what the testing engine makes of puts. ---

TEST(a_signal_comes_after_all_of_its_values) {
  Pair pair;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    int missing = 0;
    const bool ended = pair.run(
        seed,
        [&](cpu_fibers::RemotePort& port) {
          auto& mine = pair.memory[0];
          std::fill_n(mine.source, Pair::kValues, 1.0);
          port.put_signal(mine.target, 1, mine.source, Pair::kValues, &mine.flag, 1);
        },
        [&](cpu_fibers::RemotePort& port) {
          wait_until(port, pair.memory[1].flag, 1);
          for (const double value : pair.memory[1].target) missing += value != 1.0 ? 1 : 0;
        });
    CHECK(ended);
    CHECK_EQ(missing, 0);
  }
}

TEST(a_source_that_is_written_too_early_is_caught) {
  Pair pair;
  int torn = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    pair.run(
        seed,
        [&](cpu_fibers::RemotePort& port) {
          auto& mine = pair.memory[0];
          std::fill_n(mine.source, Pair::kValues, 1.0);
          port.put_signal(mine.target, 1, mine.source, Pair::kValues, &mine.flag, 1);
          std::fill_n(mine.source, Pair::kValues, 2.0);
        },
        [&](cpu_fibers::RemotePort& port) {
          wait_until(port, pair.memory[1].flag, 1);
          torn += pair.memory[1].target[7] == 2.0 ? 1 : 0;
        });
  CHECK(torn > 100);
}

TEST(puts_overtake_one_another) {
  Pair pair;
  int overtaken = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    pair.run(
        seed,
        [&](cpu_fibers::RemotePort& port) {
          auto& mine = pair.memory[0];
          for (const Epoch epoch : {1, 3})
            port.put_signal(mine.target, 1, mine.source, Pair::kValues, &mine.flag, epoch);
        },
        [&](cpu_fibers::RemotePort& port) { wait_until(port, pair.memory[1].flag, 1); });
    overtaken += pair.memory[1].flag.value == 3 ? 0 : 1;
  }
  CHECK(overtaken > 20);
}

TEST(a_put_of_no_values_is_a_signal) {
  Pair pair;
  CHECK(pair.run(
      3,
      [&](cpu_fibers::RemotePort& port) {
        auto& mine = pair.memory[0];
        port.put_signal(mine.target, 1, mine.source, 0, &mine.flag, 1);
      },
      [&](cpu_fibers::RemotePort& port) { wait_until(port, pair.memory[1].flag, 1); }));
}

TEST(a_flag_that_gets_another_epoch_than_the_next_but_one_is_caught) {
  cpu_fibers::Machine machine({1, 1, nullptr, 1, {}}, [](int, int) {});
  const Flag flags[2] = {};
  machine.expect_rise(&flags[0].value, 1);
  machine.expect_rise(&flags[0].value, 3);
  machine.expect_rise(&flags[1].value, 2);
  CHECK_THROWS(std::logic_error, machine.expect_rise(&flags[1].value, 3));
  CHECK_THROWS(std::logic_error, machine.expect_rise(&flags[0].value, 3));
}

// Values that the litmus test of both PEs finds wrong under many schedules.
std::uint64_t wrong_by_litmus(const Fault& fault) {
  Pair pair;
  std::uint64_t sum = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::uint64_t wrong[2] = {};
    const auto kernel = [&](cpu_fibers::RemotePort& port) {
      auto& mine = pair.memory[port.pe()];
      litmus_kernel(port, LitmusArgs{1 - port.pe(), 6, 16, mine.source, mine.target, mine.flags,
                                     &wrong[port.pe()]});
    };
    CHECK(pair.run(seed, kernel, kernel, fault));
    sum += wrong[0] + wrong[1];
  }
  return sum;
}

TEST(the_litmus_test_finds_flags_that_come_before_their_values_and_nothing_else) {
  CHECK_EQ(wrong_by_litmus({}), std::uint64_t{0});
  CHECK(wrong_by_litmus({Fault::Kind::skip_publish, 0, 0, 0}) > 0);
}
