// Levels that the first GPU has made for several PEs (level_sharer.cpp), and the memory of set-ups,
// on the stand-in for GPUs.
#include "cpufree/gpu/memory.hpp"
#include "gpu_multigrid.hpp"

using namespace testing_multigrid;

TEST(levels_of_several_pes_are_those_of_the_host_whether_they_are_gathered_or_not) {
  for (const std::int32_t gathered : {0, 300}) {
    auto where = spec_for(3);
    where.factors.gathered = gathered;
    check_alike_by_host_and_gpu(grid2d(90, 80), where, 3);
    check_alike_by_host_and_gpu(irregular(900, 6), where);
    check_alike_by_host_and_gpu(grid2d<float>(50, 40, 0.1), where);
  }
  for (const std::int32_t n : {1, 2, 7}) check_alike_by_host_and_gpu(grid2d(n, 1), spec_for(3));
  check_alike_by_host_and_gpu(with_isolated_rows(grid2d(40, 30)), spec_for(2));
}

TEST(set_ups_of_several_pes_by_gpus_leave_the_same_bits) {
  auto where = spec_for(3);
  where.layout = 1;
  const auto a = grid2d(50, 45);
  CHECK(solve(a, where, solve_spec()).x == solve(a, where, solve_spec()).x);
}

namespace {
Matrix<double> grid3d(std::int32_t m) {
  Entries e;
  for (std::int32_t i = 0; i < m * m * m; ++i) {
    e[{i, i}] = 6.0;
    if (i % m + 1 < m) e[{i, i + 1}] = e[{i + 1, i}] = -1.0;
    if (i / m % m + 1 < m) e[{i, i + m}] = e[{i + m, i}] = -1.0;
    if (i / m / m + 1 < m) e[{i, i + m * m}] = e[{i + m * m, i}] = -1.0;
  }
  return from_entries<double>(m * m * m, e);
}
}  // namespace

// What is asked for before a matrix is sent: for each entry, and for each row.
TEST(a_set_up_takes_no_more_memory_than_is_asked_for_before) {
  const auto a = grid3d(40);
  const double entries = 12.0 * static_cast<double>(a.col.size());
  for (const int pes : {1, 2}) {
    auto where = spec_for(pes);
    where.layout = 1;
    host_gpu::configure({});
    const double before = static_cast<double>(host_gpu::most_taken());
    const auto system = make_system<double>(a.view(), slabs(a.n(), pes), {}, where);
    const double most = static_cast<double>(host_gpu::most_taken()) - before;
    CHECK(most > 4.0 * entries);
    CHECK(most <= (pes == 1 ? 8.5 : 11.0) * entries + 128.0 * a.n());
  }
}

// As 80 GB are to the 125 million rows of poisson3d 500^3: there the host makes the levels.
TEST(a_large_grid_fits_as_it_is_said_to) {
  const auto a = grid3d(40);
  host_gpu::Settings settings;
  settings.memory = static_cast<std::size_t>(80e9 * a.n() / 125e6);
  host_gpu::configure(settings);
  const double before = static_cast<double>(host_gpu::most_taken());
  auto where = spec_for(1);
  where.layout = 1;
  const auto system = make_system<double>(a.view(), {}, {}, where);
  CHECK(system->plan().levels.size() > 2);
  CHECK(static_cast<double>(host_gpu::most_taken()) - before <
        static_cast<double>(settings.memory));
  host_gpu::configure({});
}

TEST(copies_between_gpus_that_are_late_change_nothing) {
  const auto a = grid2d(50, 45);
  auto where = spec_for(3);
  where.layout = 1;
  where.factors.gathered = 100;
  auto how = solve_spec(0.0);
  how.maxiter = 3;
  const auto expected = solve(a, where, how).x;
  for (const unsigned seed : {1U, 2U, 3U}) {
    host_gpu::Settings settings;
    settings.deferred = true;
    settings.seed = seed;
    host_gpu::configure(settings);
    CHECK(solve(a, where, how).x == expected);
  }
  host_gpu::configure({});
}
