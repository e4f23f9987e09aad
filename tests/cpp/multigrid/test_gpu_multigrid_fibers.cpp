// Multigrid by the engine for GPUs, here on fibers of the host (host_gpu): its layouts and
// protocols.
#include "gpu_multigrid.hpp"
#include "process_team.hpp"

using namespace cpufree;
using namespace testing_multigrid;

TEST(gpus_need_as_many_iterations_as_cpus) {
  const auto a = grid2d(33, 29);
  for (const int pes : {1, 2, 3}) {
    const auto where = spec_for(pes);
    const auto found = solve(a, where, solve_spec(), 2);
    CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
    CHECK(residual(a, wave(a.n()), found.x) < 2e-8);
    const auto expected = on_cpu(a, where, solve_spec());
    CHECK(std::abs(found.outcome.iterations - expected.outcome.iterations) <= 1);
  }
}

TEST(a_solve_has_the_same_bits_twice) {
  const auto a = grid2d(33, 29);
  const auto where = spec_for(2);
  CHECK(solve(a, where, solve_spec()).x == solve(a, where, solve_spec()).x);
}

TEST(cycles_are_those_of_cpus_whether_levels_are_gathered_or_not) {
  const auto a = grid2d(90, 80);
  auto how = solve_spec(0.0);
  how.maxiter = 2;
  for (const std::int32_t gathered : {0, 300, 20'000}) {
    auto where = spec_for(2);
    where.factors.gathered = gathered;
    const auto found = solve(a, where, how, 3);
    CHECK_EQ(found.outcome.iterations, std::int64_t{2});
    CHECK(largest_difference(found.x, on_cpu(a, where, how).x) < 1e-5);
  }
}

// Of one PE nothing is gathered; levels of more rows exchange by flags, others by packets.
TEST(cycles_are_the_same_whether_levels_have_packets_or_flags) {
  const auto a = grid2d(90, 80);
  auto how = solve_spec(0.0);
  how.maxiter = 2;
  const auto expected = on_cpu(a, spec_for(1), how).x;
  std::vector<std::vector<double>> found;
  for (const std::int32_t most : {0, 300, 20'000}) {
    auto where = spec_for(1);
    where.factors.gathered = most;
    found.push_back(solve(a, where, how, 3).x);
    CHECK(largest_difference(found.back(), expected) < 1e-5);
    CHECK(found.back() == found.front());
  }
}

TEST(lanes_share_rows_where_these_are_few) {
  const auto a = grid2d(33, 29);
  auto how = solve_spec(0.0);
  how.maxiter = 2;
  const auto expected = on_cpu(a, spec_for(1, 1), how).x;
  for (const int threads : {32, 64, 512})
    CHECK(largest_difference(solve(a, spec_for(1, 2, threads), how).x, expected) < 1e-5);
}

// Rows of a prolongator have few entries, and outnumber the columns. Behind the last vector of a PE
// are NaNs (host_gpu).
TEST(lanes_without_entries_of_their_row_add_nothing_to_it) {
  const auto a = grid2d(33, 29);
  const auto found = solve(a, spec_for(2, 2, 512), solve_spec(), 2);
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
}

TEST(single_precision_solves) {
  const auto a = grid2d<float>(30, 25, 0.1);
  const auto found = solve(a, spec_for(2), solve_spec(1e-5));
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
  CHECK(residual(a, wave<float>(a.n()), found.x) < 2e-5);
}

TEST(small_and_degenerate_systems_are_solved) {
  std::vector<Matrix<double>> systems;
  for (const std::int32_t n : {1, 2, 7}) systems.push_back(grid2d(n, 1));
  Entries diagonal;
  for (std::int32_t i = 0; i < 50; ++i) diagonal[{i, i}] = 1.0 + i;
  systems.push_back(from_entries<double>(50, diagonal));
  for (const auto& a : systems)
    for (const int pes : {1, 3}) {
      const auto found = solve(a, spec_for(pes), solve_spec());
      CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
      CHECK(residual(a, wave(a.n()), found.x) < 2e-8);
    }
}

TEST(pes_without_rows_take_part) {
  const auto a = grid2d(20, 15);
  std::vector<std::int32_t> part(at(a.n()), 2);
  for (std::size_t i = 0; i < 150; ++i) part[i] = 0;
  const auto system = make_system<double>(a.view(), part, {}, spec_for(3, 1));
  CHECK_EQ(system->solve(wave(a.n()), {}, solve_spec(), {}).outcome.reason, Reason::converged_rtol);
}

TEST(other_solves_of_the_system_go_on) {
  const auto a = grid2d(20, 15);
  const auto system = make_system<double>(a.view(), slabs(a.n(), 2), {}, spec_for(2));
  SolveSpec how;
  how.rtol = 1e-6;
  how.maxiter = 500;
  CHECK_EQ(system->solve(wave(a.n()), {}, how, {}).outcome.reason, Reason::converged_rtol);
}

TEST(what_multigrid_leaves_no_choice_of_is_refused) {
  const auto a = grid2d(10, 10);
  for (int SystemSpec::* tuning : {&SystemSpec::halo, &SystemSpec::lanes_log2, &SystemSpec::ring}) {
    auto where = spec_for(1);
    where.*tuning = 2;
    CHECK_THROWS(InvalidInput, make_system<double>(a.view(), {}, {}, where));
  }
}

TEST(iterations_are_the_same_whether_the_host_or_a_gpu_makes_the_levels) {
  for (const int pes : {1, 3}) check_alike_by_host_and_gpu(grid2d(90, 80), spec_for(pes), 3);
  check_alike_by_host_and_gpu(grid2d(50, 40), spec_for(1, 2, 256));
  check_alike_by_host_and_gpu(grid2d<float>(50, 40, 0.1), spec_for(1));
  check_alike_by_host_and_gpu(irregular(900, 6), spec_for(1));
  check_alike_by_host_and_gpu(with_isolated_rows(grid2d(40, 30)), spec_for(1));
  check_alike_by_host_and_gpu(grid2d(2, 1), spec_for(1));
}

TEST(levels_are_reported_alike_whether_the_host_or_a_gpu_makes_them) {
  const auto a = grid2d(90, 80);
  auto where = spec_for(1);
  where.layout = 0;
  const auto host = make_system<double>(a.view(), {}, {}, where);
  where.layout = 1;
  const auto made = make_system<double>(a.view(), {}, {}, where);
  const auto &by_host = host->plan().levels, &by_gpu = made->plan().levels;
  CHECK_EQ(by_gpu.size(), by_host.size());
  for (std::size_t l = 0; l < by_gpu.size(); ++l) {
    CHECK_EQ(by_gpu[l].rows, by_host[l].rows);
    CHECK_EQ(by_gpu[l].nonzeros, by_host[l].nonzeros);
    CHECK_EQ(by_gpu[l].transfer_nonzeros, by_host[l].transfer_nonzeros);
    CHECK_EQ(by_gpu[l].inverted, by_host[l].inverted);
    CHECK_EQ(by_gpu[l].bytes, by_host[l].bytes);
  }
}

TEST(new_values_are_left_to_a_new_system_where_the_host_has_made_the_levels) {
  const auto a = grid2d(10, 10);
  const auto system = make_system<double>(a.view(), {}, {}, spec_for(1));
  CHECK(!system->update(a.view()));
}

namespace {
// An update gives the bits of a new system, whose aggregates are the same.
template <class T>
void check_update(const Matrix<T>& a, T factor) {
  auto where = spec_for(1);
  where.layout = 1;
  auto other = a;
  for (T& value : other.val) value *= factor;
  const auto b = wave<T>(a.n());
  const auto how = solve_spec(1e-5);
  const auto system = make_system<T>(a.view(), {}, {}, where);
  const auto first = system->solve(b, {}, how, {});
  const auto fresh = make_system<T>(other.view(), {}, {}, where);
  CHECK(system->update(other.view()));
  CHECK(system->solve(b, {}, how, {}).x == fresh->solve(b, {}, how, {}).x);
  CHECK(system->update(a.view()));
  CHECK(system->solve(b, {}, how, {}).x == first.x);
}
}  // namespace

TEST(an_update_on_a_gpu_has_the_bits_of_a_new_system) {
  check_update(grid2d(70, 60), 4.0);
  check_update(irregular(900, 6), 4.0);
  check_update(grid2d<float>(50, 40, 0.1), 4.0F);
  check_update(with_isolated_rows(grid2d(40, 30)), 0.25);
}

TEST(values_that_do_not_fit_leave_a_system_with_levels_as_it_was) {
  const auto a = grid2d(70, 60);
  auto other = a;  // without a dictionary of values
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      other.val[k] *= 1.0 + 1e-4 * (i + a.col[k]);
  auto where = spec_for(1);
  where.layout = 1;
  const auto how = solve_spec(1e-5);
  const auto system = make_system<double>(a.view(), {}, {}, where);
  const auto before = system->solve(wave(a.n()), {}, how, {});
  CHECK(!system->update(other.view()));
  CHECK(system->usable());
  CHECK(system->solve(wave(a.n()), {}, how, {}).x == before.x);
  CHECK(system->update(a.view()));
  CHECK(system->solve(wave(a.n()), {}, how, {}).x == before.x);
}

TEST(an_update_on_a_gpu_is_that_of_cpus) {
  const auto a = grid2d(70, 60);
  auto other = a;
  for (double& value : other.val) value = value < 0.0 ? 0.5 * value : value;
  auto how = solve_spec(0.0);
  how.maxiter = 3;
  const auto updated = [&](SystemSpec where) {
    const auto system = make_system<double>(a.view(), {}, {}, where);
    const auto before = system->solve(wave(a.n()), {}, how, {}).x;
    CHECK(system->update(other.view()));
    const auto after = system->solve(wave(a.n()), {}, how, {}).x;
    CHECK(largest_difference(after, before) > 1e-2);
    return after;
  };
  auto where = spec_for(1);
  where.layout = 1;
  const auto on_gpu = updated(where);
  where.engine = Engine::cpu_threads;
  where.threads = 0;
  CHECK(largest_difference(on_gpu, updated(where)) < 1e-6);
}

TEST(a_gpu_without_room_for_the_levels_is_refused_before_anything_is_sent) {
  const auto a = grid2d(90, 80);
  host_gpu::Settings settings;
  settings.memory = 600'000;
  host_gpu::configure(settings);
  for (const int layout : {0, 1}) {
    auto where = spec_for(1);
    where.layout = layout;
    try {
      make_system<double>(a.view(), {}, {}, where);
      CHECK(false);
    } catch (const OutOfMemory& error) {
      CHECK(std::string(error.what()).find("levels of multigrid") != std::string::npos);
    }
  }
  host_gpu::configure({});
}

TEST(an_update_with_another_pattern_is_refused) {
  auto where = spec_for(1);
  where.layout = 1;
  const auto a = grid2d(40, 30);
  const auto system = make_system<double>(a.view(), {}, {}, where);
  const auto b = wave(a.n());
  const auto before = system->solve(b, {}, solve_spec(), {});
  CHECK_THROWS(InvalidInput, system->update(grid2d(30, 40).view()));
  CHECK(system->solve(b, {}, solve_spec(), {}).x == before.x);
}

TEST(processes_give_bitwise_what_one_process_gives) {
  const auto a = grid2d(33, 29);
  const auto expected = solve(a, spec_for(2), solve_spec());
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    auto where = spec_for(2);
    where.engine = Engine::nvshmem;
    where.team = team;
    where.gpus = {team->rank()};
    where.remote_library = CPUFREE_TEST_REMOTE;
    const auto found = solve(a, where, solve_spec(), 2);
    if (team->rank() == 0 && found.x != expected.x) throw std::runtime_error("other bits");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(several_nodes_are_refused_with_the_reason) {
  const auto a = grid2d(10, 10);
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    auto where = spec_for(2);
    where.engine = Engine::nvshmem;
    where.team = team;
    where.gpus = {team->rank()};
    where.remote_library = CPUFREE_TEST_REMOTE;
    where.remote_kernels = "kernels of the host";
    where.node_size = 1;
    solve(a, where, solve_spec());
  });
  for (const std::string& words : said)
    CHECK(words.find("amg is for PEs of one node") != std::string::npos);
}
