// The engine nvshmem as a whole, without a GPU: processes, memory of NVSHMEM, the layout of
// systems, and the kernels that run on GPUs, here on fibers of the host (host_gpu).
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "cpufree/engines/remote/nvshmem/library.hpp"
#include "cpufree/launch/gpu/gpus.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "process_team.hpp"
#include "slabs.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr const char* kLibrary = CPUFREE_TEST_REMOTE;

SystemSpec spec_for(int pes, int halo, std::shared_ptr<Team> team) {
  SystemSpec spec;
  spec.engine = team ? Engine::nvshmem : Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = 2;
  spec.threads = 32;
  spec.halo = halo;
  if (team) spec.gpus = {team->rank()};
  spec.team = std::move(team);
  spec.remote_library = kLibrary;
  return spec;
}

SolveSpec solve_spec(Method method, Preconditioner preconditioner) {
  SolveSpec spec;
  spec.method = method;
  spec.preconditioner = preconditioner;
  spec.rtol = 1e-9;
  spec.maxiter = 500;
  return spec;
}

void require_that(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Rank 0 of processes must find, bit for bit, what all PEs find in one process, twice in a row.
template <class T>
void expect_same(const Matrix<T>& a, std::span<const std::int32_t> part, int pes, int halo,
                 const SolveSpec& how) {
  const auto b = wave<T>(a.n());
  const auto said = run_processes(pes, [&](const std::shared_ptr<Team>& team) {
    const auto system = make_system<T>(a.view(), part, {}, spec_for(pes, halo, team));
    const auto first = system->solve(b, {}, how, {});
    const auto again = system->solve(b, {}, how, {});
    require_that(first.outcome.reason == Reason::converged_rtol, "not converged");
    require_that(system->plan().engine == "nvshmem", "another engine");
    if (team->rank() != 0) return;
    const auto one =
        make_system<T>(a.view(), part, {}, spec_for(pes, halo, nullptr))->solve(b, {}, how, {});
    require_that(first.x == one.x, "other bits than in one process");
    require_that(again.x == one.x, "other bits when solved again");
    require_that(first.history == one.history, "another history");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

SystemSpec in_nodes_of(int size, int pes, const std::shared_ptr<Team>& team) {
  SystemSpec spec = spec_for(pes, -1, team);
  spec.node_size = size;
  spec.remote_kernels = "kernels of the host";
  return spec;
}

using MakeSpec = std::function<SystemSpec(const std::shared_ptr<Team>&)>;

// Ranks must find with other `spec`s what those of one node find by packets, but for rounding,
// twice the same bits.
template <class T>
void expect_near(const Matrix<T>& a, int pes, int halo, const SolveSpec& how,
                 const MakeSpec& spec) {
  const auto b = wave<T>(a.n());
  const auto part = random_partition(a.n(), pes, 2);
  const auto said = run_processes(pes, [&](const std::shared_ptr<Team>& team) {
    const auto one = make_system<T>(a.view(), part, {}, spec_for(pes, halo, team));
    const auto expected = one->solve(b, {}, how, {});
    const SystemSpec other = spec(team);
    const auto system = make_system<T>(a.view(), part, {}, other);
    const auto found = system->solve(b, {}, how, {});
    const auto again = system->solve(b, {}, how, {});
    const int node_size = other.node_size > 0 ? other.node_size : pes;
    require_that(system->plan().nodes == (pes + node_size - 1) / node_size, "other nodes");
    require_that(found.outcome.reason == Reason::converged_rtol, "not converged");
    require_that(std::abs(found.outcome.iterations - expected.outcome.iterations) <= 1,
                 "other iterations");
    if (team->rank() != 0) return;
    require_that(found.x == again.x, "other bits when solved again");
    for (std::size_t i = 0; i < found.x.size(); ++i)
      require_that(std::abs(found.x[i] - expected.x[i]) <= 1e3 * how.rtol, "another solution");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

template <class T>
void expect_near_in_nodes(const Matrix<T>& a, int pes, int node_size, const SolveSpec& how) {
  expect_near(a, pes, 0, how, [&](const auto& team) { return in_nodes_of(node_size, pes, team); });
}

}  // namespace

TEST(processes_give_bitwise_what_one_process_gives_however_halos_travel) {
  const auto a = irregular(120, 5);
  const auto part = random_partition(a.n(), 3, 2);
  for (const int halo : {-1, 0, 1, 2})
    expect_same(a, part, 3, halo, solve_spec(Method::prcg, Preconditioner::jacobi));
}

TEST(processes_give_bitwise_what_one_process_gives_by_all_methods) {
  const auto a = irregular(100, 4);
  const auto part = random_partition(a.n(), 2, 3);
  expect_same(a, part, 2, -1, solve_spec(Method::cg, Preconditioner::none));
  expect_same(a, part, 2, 0, solve_spec(Method::pipecg, Preconditioner::jacobi));
  expect_same(a, part, 2, 1, solve_spec(Method::pipecg, Preconditioner::chebyshev));
}

TEST(processes_solve_in_single_precision) {
  const auto a = grid2d<float>(12, 9, 0.5);
  SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  how.rtol = 1e-5;
  expect_same(a, random_partition(a.n(), 2, 4), 2, -1, how);
}

TEST(parts_of_very_different_size_share_one_layout_of_memory) {
  const auto a = grid2d(15, 10, 0.1);
  std::vector<std::int32_t> part(150, 1);
  for (std::size_t i = 0; i < 5; ++i) part[i] = 0;
  for (std::size_t i = 140; i < 150; ++i) part[i] = 2;
  expect_same(a, part, 3, -1, solve_spec(Method::cg, Preconditioner::jacobi));
}

// Each rank must find, bit for bit, its part of what all PEs find from the whole matrix.
template <class T>
void expect_same_from_own_rows(const Matrix<T>& a, const Cuts& cuts, int halo,
                               const SolveSpec& how) {
  const int ranks = static_cast<int>(cuts.size()) - 1;
  const auto b = wave<T>(a.n());
  const auto said = run_processes(ranks, [&](const std::shared_ptr<Team>& team) {
    const std::size_t rank = at(team->rank());
    const auto own = [&](const std::vector<T>& v) {
      return entries_of(v, cuts[rank], cuts[rank + 1]);
    };
    const auto rows = rows_of(a, cuts[rank], cuts[rank + 1]);
    const auto system =
        make_system(plan_slab(rows.slab(), *team, {1e-5}), spec_for(ranks, halo, team));
    const auto found = system->solve(own(b), {}, how, {});
    require_that(found.outcome.reason == Reason::converged_rtol, "not converged");
    const auto whole = make_system<T>(a.view(), part_of(cuts), {}, spec_for(ranks, halo, nullptr));
    const auto expected = whole->solve(b, {}, how, {});
    require_that(found.x == own(expected.x), "other bits than from the whole matrix");
    require_that(found.history == expected.history, "another history");
    require_that(system->plan().block_halo == whole->plan().block_halo, "other halos of blocks");
    require_that(system->plan().halo == whole->plan().halo, "other halos");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(own_rows_give_bitwise_what_the_whole_matrix_gives_however_halos_travel) {
  const auto a = irregular(120, 5);
  for (const int halo : {-1, 0, 1, 2})
    expect_same_from_own_rows(a, {0, 30, 75, 120}, halo,
                              solve_spec(Method::prcg, Preconditioner::jacobi));
}

TEST(own_rows_give_bitwise_what_the_whole_matrix_gives_by_all_methods) {
  const auto a = grid2d(12, 9, 0.1);
  expect_same_from_own_rows(a, {0, 50, 108}, -1, solve_spec(Method::cg, Preconditioner::none));
  expect_same_from_own_rows(a, {0, 50, 108}, 0,
                            solve_spec(Method::pipecg, Preconditioner::chebyshev));
  expect_same_from_own_rows(a, {0, 0, 50, 108}, 1,
                            solve_spec(Method::prcg, Preconditioner::chebyshev));
}

TEST(own_rows_in_single_precision) {
  SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  how.rtol = 1e-5;
  expect_same_from_own_rows(grid2d<float>(12, 9, 0.5), {0, 40, 108}, -1, how);
}

TEST(a_system_waits_for_a_start_that_came_before) {
  const auto a = grid2d(12, 12, 0.1);
  const auto b = wave(a.n());
  const SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  const auto said = run_processes(3, [&](const std::shared_ptr<Team>& team) {
    for (int k = 0; k < 2; ++k) start_remote(team, {"nvshmem", kLibrary}, team->rank(), 1 << 20);
    const auto found =
        make_system<double>(a.view(), {}, {}, spec_for(3, -1, team))->solve(b, {}, how, {});
    require_that(found.outcome.reason == Reason::converged_rtol, "not converged");
    await_remote("nvshmem");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(a_start_that_fails_is_told_where_it_is_waited_for_and_again_to_a_system) {
  const auto a = grid2d(12, 12, 0.1);
  setenv("CPUFREE_TEST_BROKEN", "1", 1);
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    start_remote(team, {"nvshmem", kLibrary}, team->rank(), 1 << 20);
    bool told = false;
    try {
      await_remote("nvshmem");
    } catch (const EngineError&) {
      told = true;
    }
    require_that(told, "the start has not failed");
    make_system<double>(a.view(), {}, {}, spec_for(2, -1, team));
  });
  unsetenv("CPUFREE_TEST_BROKEN");
  for (const std::string& words : said)
    CHECK(words.find("nvshmemx_hostlib_init_attr failed (status 7)") != std::string::npos);
}

TEST(memory_that_all_ranks_have_free_is_used_again) {
  const auto a = grid2d(12, 12, 0.1);
  const auto b = wave(a.n());
  const SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    setenv("CPUFREE_TEST_ROOM", "60000", 1);  // for a few systems at once, not for fifty
    for (int k = 0; k < 50; ++k) {
      const auto system = make_system<double>(a.view(), {}, {}, spec_for(2, 0, team));
      if (k % 10 == 0)
        require_that(system->solve(b, {}, how, {}).outcome.reason == Reason::converged_rtol,
                     "not converged");
    }
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(a_heap_that_is_too_small_is_told_on_all_ranks) {
  const auto a = grid2d(12, 12, 0.1);
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    setenv("CPUFREE_TEST_ROOM", "1000", 1);
    make_system<double>(a.view(), {}, {}, spec_for(2, -1, team));
  });
  for (const std::string& words : said)
    CHECK(words.find("NVSHMEM has no room for") != std::string::npos);
}

TEST(a_gpu_out_of_reach_is_named) {
  const auto a = grid2d(12, 12, 0.1);
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    setenv("CPUFREE_TEST_FAR", "1", 1);
    make_system<double>(a.view(), {}, {}, spec_for(2, -1, team));
  });
  CHECK(said[0].find("the GPU of rank 1 is out of reach") != std::string::npos);
  CHECK(said[1].find("the GPU of rank 0 is out of reach") != std::string::npos);
}

TEST(ranks_in_nodes_find_what_those_of_one_node_find) {
  expect_near_in_nodes<double>(irregular(120, 5), 4, 2,
                               solve_spec(Method::prcg, Preconditioner::jacobi));
  expect_near_in_nodes<double>(irregular(120, 5), 3, 1,
                               solve_spec(Method::cg, Preconditioner::none));
  expect_near_in_nodes<double>(irregular(90, 4), 3, 2,
                               solve_spec(Method::pipecg, Preconditioner::chebyshev));
}

TEST(ranks_in_nodes_solve_in_single_precision) {
  SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  how.rtol = 1e-5;
  expect_near_in_nodes<float>(grid2d<float>(12, 9, 0.5), 2, 1, how);
}

TEST(nodes_of_several_machines_are_those_that_nvshmem_says) {
  const auto a = irregular(120, 5);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 4, 2);
  const SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  const auto said = run_processes(4, [&](const std::shared_ptr<Team>& team) {
    const auto forced = make_system<double>(a.view(), part, {}, in_nodes_of(2, 4, team));
    const auto expected = forced->solve(b, {}, how, {});
    setenv("CPUFREE_TEST_FAR", "2", 1);
    SystemSpec spec = in_nodes_of(0, 4, team);
    spec.several_machines = true;
    const auto system = make_system<double>(a.view(), part, {}, spec);
    require_that(system->plan().nodes == 2, "other nodes");
    const auto found = system->solve(b, {}, how, {});
    if (team->rank() == 0) require_that(found.x == expected.x, "other bits than in forced nodes");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(kernels_for_several_nodes_that_are_not_built_are_told) {
  const auto a = grid2d(12, 12, 0.1);
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    SystemSpec spec = in_nodes_of(1, 2, team);
    spec.remote_kernels = "";
    make_system<double>(a.view(), {}, {}, spec);
  });
  for (const std::string& words : said)
    CHECK(words.find("have not been built") != std::string::npos);
}

TEST(a_library_that_is_not_there_is_told_with_its_name) {
  CHECK_THROWS(Unsupported, nvshmem::load("no_such_library.so"));
}

TEST(the_version_of_the_library_is_read) {
  CHECK_EQ(nvshmem::load(kLibrary).version, std::string("3.4.5"));
}
