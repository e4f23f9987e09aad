// PEs in several nodes: who is where, what is sent to whom, and whole systems on the CPU engine,
// whose nodes are made of what could reach one another.
#include <algorithm>
#include <cmath>

#include "cpufree/device/node_table.hpp"
#include "cpufree/problem/remote_plan.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"
#include "thread_team.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

SystemSpec spec_for(int pes, int blocks, int node_size, std::shared_ptr<Team> team = nullptr) {
  SystemSpec spec;
  spec.engine = team ? Engine::cpu_processes : Engine::cpu_threads;
  spec.pes = pes;
  spec.blocks = blocks;
  spec.node_size = node_size;
  spec.team = std::move(team);
  return spec;
}

template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  double square = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    square += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(square / size);
}

// Several nodes must find what one finds, but for rounding, and the same bits again.
template <class T>
void expect_near(const Matrix<T>& a, int pes, int blocks, int node_size, const SolveSpec& how) {
  const auto b = wave<T>(a.n());
  const auto part = random_partition(a.n(), pes, 2);
  const auto one =
      make_system<T>(a.view(), part, {}, spec_for(pes, blocks, 0))->solve(b, {}, how, {});
  const auto system = make_system<T>(a.view(), part, {}, spec_for(pes, blocks, node_size));
  const auto found = system->solve(b, {}, how, {});
  CHECK_EQ(system->plan().nodes, (pes + node_size - 1) / node_size);
  CHECK_EQ(found.outcome.reason, one.outcome.reason);
  CHECK(std::abs(found.outcome.iterations - one.outcome.iterations) <= 1);
  CHECK(found.outcome.true_residual <= 2.0 * how.rtol * found.outcome.bnorm);
  CHECK(distance(found.x, one.x) <= 100.0 * how.rtol);
  for (int again = 0; again < 3; ++again) CHECK(system->solve(b, {}, how, {}).x == found.x);
}

// The halo plan of a matrix on PEs, cut into blocks, and what goes to other nodes.
struct Cut {
  Cut(const Matrix<double>& a, const NodeTable& nodes, int blocks) {
    const auto pes = static_cast<int>(nodes.of_pe().size());
    plan = make_halo_plan(a.view(), random_partition(a.n(), pes, 3), {}, pes);
    blocks_of = make_block_plans(plan, blocks);
    before = plan;
    notify = blocks_of;
    for (int pe = 0; pe < pes; ++pe)
      far.push_back(make_remote_plan(plan.local[at(pe)], blocks_of[at(pe)], pe, nodes.of_pe()));
  }
  HaloPlan<double> plan, before;
  std::vector<std::vector<BlockPlan>> blocks_of, notify;
  std::vector<RemotePlan> far;
};

}  // namespace

TEST(nodes_are_numbered_by_their_first_pes) {
  const NodeTable table(std::vector<std::int32_t>{7, 5, 7, 9, 5});
  const Nodes nodes = table.view();
  CHECK_EQ(nodes.count, 3);
  CHECK(table.of_pe() == (std::vector<std::int32_t>{0, 1, 0, 2, 1}));
  CHECK_EQ(nodes.size(0), 2);
  CHECK_EQ(nodes.pe(0, 1), 2);
  CHECK_EQ(nodes.pe(1, 0), 1);
  CHECK_EQ(nodes.place[4], 1);
  CHECK_EQ(nodes.pe(2, 0), 3);
}

TEST(the_last_of_equal_nodes_may_be_smaller) {
  const NodeTable table = NodeTable::of_size(5, 2);
  CHECK(table.of_pe() == (std::vector<std::int32_t>{0, 0, 1, 1, 2}));
}

TEST(what_goes_to_other_nodes_arrives_in_the_ghosts_it_is_for) {
  const auto a = irregular(200, 3);
  Cut cut(a, NodeTable(std::vector<std::int32_t>{0, 0, 1, 2, 1}), 3);
  // vectors[pe]: the number of each row, then ghosts, then what is collected for other nodes.
  std::vector<std::vector<std::int32_t>> vectors;
  for (std::size_t pe = 0; pe < 5; ++pe) {
    const auto& local = cut.plan.local[pe];
    vectors.push_back(local.global_row);
    vectors.back().resize(at(local.rows() + local.ghosts + cut.far[pe].staged), -1);
  }
  for (std::size_t pe = 0; pe < 5; ++pe) {
    const auto& local = cut.plan.local[pe];
    for (std::int32_t k = 0; k < local.boundary(); ++k)
      for (auto d = local.send_ptr[at(k)]; d < local.send_ptr[at(k) + 1]; ++d) {
        const Destination to = local.destinations[at(d)];
        vectors[at(to.pe)][at(to.index)] = local.global_row[at(local.interior + k)];
      }
  }
  std::int64_t sent = 0;
  for (std::size_t pe = 0; pe < 5; ++pe)
    for (const auto& runs : cut.far[pe].runs)
      for (const RemoteRun& run : runs) {
        std::copy_n(vectors[pe].begin() + run.from, run.count,
                    vectors[at(run.pe)].begin() + run.to);
        sent += run.count;
      }
  CHECK(sent > 0);
  for (std::size_t pe = 0; pe < 5; ++pe) {
    const auto& local = cut.plan.local[pe];
    for (std::int32_t g = 0; g < local.ghosts; ++g) {
      const auto& owner = cut.plan.local[at(local.ghost_owner[at(g)])];
      CHECK_EQ(vectors[pe][at(local.rows() + g)], owner.global_row[at(local.ghost_row[at(g)])]);
    }
  }
}

TEST(every_pe_that_was_notified_is_notified_or_sent_to) {
  const NodeTable table(std::vector<std::int32_t>{0, 1, 0, 1});
  Cut cut(irregular(100, 4), table, 2);
  for (std::size_t pe = 0; pe < 4; ++pe)
    for (std::size_t b = 0; b < 2; ++b) {
      std::vector<std::int32_t> reached = cut.blocks_of[pe][b].notify;
      for (const std::int32_t other : reached)
        CHECK_EQ(table.of_pe()[at(other)], table.of_pe()[pe]);
      for (const RemoteRun& run : cut.far[pe].runs[b]) {
        CHECK(run.count > 0);
        reached.push_back(run.pe);
      }
      std::ranges::sort(reached);
      CHECK(reached == cut.notify[pe][b].notify);
    }
}

TEST(one_node_leaves_a_plan_as_it_is) {
  const Cut cut(irregular(100, 4), NodeTable(3), 2);
  for (std::size_t pe = 0; pe < 3; ++pe) {
    CHECK_EQ(cut.far[pe].staged, 0);
    const auto& now = cut.plan.local[pe].destinations;
    const auto& before = cut.before.local[pe].destinations;
    CHECK_EQ(now.size(), before.size());
    for (std::size_t d = 0; d < now.size(); ++d)
      CHECK(now[d].pe == before[d].pe && now[d].index == before[d].index);
  }
}

TEST(a_plan_whose_ghosts_are_not_sorted_is_refused) {
  const auto a = irregular(100, 4);
  auto plan = make_halo_plan(a.view(), random_partition(a.n(), 2, 3), {}, 2);
  auto blocks = make_block_plans(plan, 1);
  auto& destinations = plan.local[0].destinations;
  std::swap(destinations.front().index, destinations.back().index);
  const std::vector<std::int32_t> nodes{0, 1};
  CHECK_THROWS(EngineError, make_remote_plan(plan.local[0], blocks[0], 0, nodes));
}

TEST(several_nodes_find_what_one_finds_by_all_methods) {
  const auto a = irregular(300, 6);
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners)
      expect_near(a, 4, 2, 2, solve_spec(method, pc));
}

TEST(nodes_of_any_size_find_what_one_finds) {
  const auto a = irregular(300, 6);
  for (const int size : {1, 3, 4})
    expect_near(a, 5, 1, size, solve_spec(Method::prcg, Preconditioner::jacobi));
}

TEST(several_nodes_solve_in_single_precision) {
  SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  how.rtol = 1e-5;
  expect_near(grid2d<float>(20, 15, 0.5), 3, 2, 1, how);
}

TEST(processes_in_nodes_give_bitwise_what_one_process_gives) {
  const auto a = irregular(300, 6);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 4, 2);
  for (const Method method : kMethods) {
    const SolveSpec how = solve_spec(method, Preconditioner::chebyshev);
    const auto expected =
        make_system<double>(a.view(), part, {}, spec_for(4, 2, 2))->solve(b, {}, how, {});
    const auto thrown = run_team(4, [&](const std::shared_ptr<Team>& team) {
      const auto system = make_system<double>(a.view(), part, {}, spec_for(4, 2, 2, team));
      const auto found = system->solve(b, {}, how, {});
      CHECK_EQ(system->plan().nodes, 2);
      CHECK_EQ(found.outcome.iterations, expected.outcome.iterations);
      if (team->rank() == 0) CHECK(found.x == expected.x);
    });
    for (const std::exception_ptr& error : thrown) CHECK(error == nullptr);
  }
}

TEST(an_interrupt_ends_the_solve_of_all_nodes) {
  // Far from convergence for long.
  const auto a = grid2d(100'000, 1, -2.0);
  const auto b = wave(a.n());
  SolveSpec how = solve_spec(Method::cg, Preconditioner::none);
  how.rtol = 1e-14;
  how.maxiter = std::int64_t{1} << 40;
  const auto system = make_system<double>(a.view(), {}, {}, spec_for(4, 1, 2));
  std::int64_t calls = 0;
  const auto found = system->solve(b, {}, how, [&](std::int64_t, double) { return ++calls < 0; });
  CHECK_EQ(found.outcome.reason, Reason::interrupted);
}

TEST(a_wait_for_another_node_that_lasts_too_long_is_told) {
  const auto a = grid2d(40, 40);
  SolveSpec how = solve_spec(Method::cg, Preconditioner::none);
  how.rtol = 0.0;
  how.maxiter = std::int64_t{1} << 40;
  how.wait_limit = 1e-9;  // the first wait that is not over at once
  const auto system = make_system<double>(a.view(), {}, {}, spec_for(4, 2, 1));
  const auto b = wave(a.n());
  CHECK_THROWS(WaitTimeout, system->solve(b, {}, how, {}));
}

TEST(nodes_are_refused_where_they_are_not_known) {
  SystemSpec spec = spec_for(4, 1, 2);
  check(spec);
  spec.halo = 1;
  CHECK_THROWS(InvalidInput, check(spec));
  spec.halo = -1;
  spec.engine = Engine::cuda_p2p;
  CHECK_THROWS(InvalidInput, check(spec));
  spec.node_size = 4;  // one node
  check(spec);
  spec.node_size = -1;
  CHECK_THROWS(InvalidInput, check(spec));
}

TEST(studies_of_several_nodes_are_refused) {
  const auto a = grid2d(10, 10);
  const auto b = wave(a.n());
  SolveSpec how = solve_spec(Method::cg, Preconditioner::none);
  how.study = Study::split;
  const auto system = make_system<double>(a.view(), {}, {}, spec_for(2, 1, 1));
  CHECK_THROWS(Unsupported, system->solve(b, {}, how, {}));
}
