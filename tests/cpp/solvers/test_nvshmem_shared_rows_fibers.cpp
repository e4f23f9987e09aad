// Rows that lanes share of matrices that stay on chip: systems on GPUs, here on fibers of the host
// (host_gpu).
#include <algorithm>
#include <cmath>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "process_team.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

// Bands of 2 h + 1 entries a row, values all different: row i has h = 70 + i % 5, but for row 3.
Matrix<double> band(std::int32_t n, double scale = 1.0) {
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t half = i == 3 ? 150 : 70 + i % 5;
    for (std::int32_t j = i + 1; j <= std::min(i + half, n - 1); ++j)
      e[{i, j}] = e[{j, i}] = -scale * (0.5 + 0.4 * std::sin(i + 7.0 * j));
  }
  std::vector<double> sums(at(n), 0.0);
  for (const auto& [place, v] : e) sums[at(place.first)] -= v;
  for (std::int32_t i = 0; i < n; ++i) e[{i, i}] = sums[at(i)] + scale;
  return from_entries<double>(n, e);
}

SystemSpec spec_for(int pes, const std::shared_ptr<Team>& team = nullptr) {
  SystemSpec spec;
  spec.engine = team ? Engine::nvshmem : Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = 2;
  spec.threads = 128;
  spec.halo = 2;
  if (team) spec.gpus = {team->rank()};
  spec.team = team;
  spec.remote_library = CPUFREE_TEST_REMOTE;
  return spec;
}

SolveSpec how(Method method, Preconditioner preconditioner) {
  SolveSpec spec;
  spec.method = method;
  spec.preconditioner = preconditioner;
  spec.rtol = 1e-11;
  spec.maxiter = 400;
  return spec;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

void require_that(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

TEST(long_rows_of_a_matrix_on_chip_are_shared) {
  const auto a = band(200);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 2, 2);
  const auto system = make_system<double>(a.view(), part, {}, spec_for(2));
  CHECK(system->plan().lanes_per_row > 1);
  CHECK(system->plan().resident_matrix);
  CHECK_EQ(system->plan().ring_slots, 0);
  const auto host = make_system<double>(a.view(), {}, {}, SystemSpec{});
  int pair = 0;  // of which a third is tried: each method, and each preconditioner
  for (const Method method : {Method::cg, Method::prcg, Method::pipecg})
    for (const auto preconditioner :
         {Preconditioner::none, Preconditioner::jacobi, Preconditioner::chebyshev}) {
      if (!harness::thorough && pair++ % 4 != 0) continue;
      const auto spec = how(method, preconditioner);
      const auto expected = host->solve(b, {}, spec, {});
      const auto found = system->solve(b, {}, spec, {});
      CHECK(found.outcome.reason == Reason::converged_rtol);
      CHECK(std::abs(found.outcome.iterations - expected.outcome.iterations) <= 1);
      CHECK(distance(found.x, expected.x) < 1e-8);
      CHECK(system->solve(b, {}, spec, {}).x == found.x);
    }
}

TEST(rows_are_shared_by_as_many_lanes_as_asked_for) {
  const auto a = band(90);
  const auto b = wave(a.n());
  const auto spec = how(Method::prcg, Preconditioner::jacobi);
  const auto expected = make_system<double>(a.view(), {}, {}, SystemSpec{})->solve(b, {}, spec, {});
  for (int lanes = 0; lanes <= 5; ++lanes) {
    SystemSpec with = spec_for(1);
    with.lanes_log2 = lanes;
    const auto system = make_system<double>(a.view(), {}, {}, with);
    CHECK_EQ(system->plan().lanes_per_row, 1 << lanes);
    CHECK(system->plan().resident_matrix);
    CHECK(distance(system->solve(b, {}, spec, {}).x, expected.x) < 1e-8);
  }
}

TEST(short_rows_of_a_matrix_on_chip_are_not_shared) {
  const auto a = grid2d(12, 11, 0.5);
  const auto system = make_system<double>(a.view(), {}, {}, spec_for(1));
  CHECK_EQ(system->plan().lanes_per_row, 1);
  CHECK(system->plan().resident_matrix);
}

TEST(processes_that_share_rows_on_chip_give_bitwise_what_one_process_gives) {
  const auto a = band(200);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 2, 2);
  const auto spec = how(Method::pipecg, Preconditioner::jacobi);
  const auto one = make_system<double>(a.view(), part, {}, spec_for(2))->solve(b, {}, spec, {});
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    const auto system = make_system<double>(a.view(), part, {}, spec_for(2, team));
    require_that(system->plan().lanes_per_row > 1, "rows are not shared");
    require_that(system->plan().resident_matrix, "the matrix is not on chip");
    const auto found = system->solve(b, {}, spec, {});
    require_that(found.history == one.history, "another history");
    if (team->rank() == 0) require_that(found.x == one.x, "other bits");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(ranks_on_several_nodes_share_no_rows_on_chip) {
  const auto a = band(200);
  const auto b = wave(a.n());
  const auto spec = how(Method::cg, Preconditioner::none);
  const auto expected = make_system<double>(a.view(), {}, {}, SystemSpec{})->solve(b, {}, spec, {});
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    SystemSpec with = spec_for(2, team);
    with.halo = -1;
    with.node_size = 1;
    with.remote_kernels = "kernels of the host";
    const auto system = make_system<double>(a.view(), random_partition(a.n(), 2, 2), {}, with);
    require_that(system->plan().lanes_per_row == 1, "rows are shared");
    const auto found = system->solve(b, {}, spec, {});
    if (team->rank() == 0) require_that(distance(found.x, expected.x) < 1e-8, "another solution");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(new_values_of_rows_that_lanes_share_on_chip_give_the_bits_of_a_new_system) {
  const auto a = band(200), other = band(200, 1.7);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 2, 2);
  const auto spec = how(Method::prcg, Preconditioner::chebyshev);
  const auto updated = make_system<double>(a.view(), part, {}, spec_for(2));
  CHECK(updated->update(other.view()));
  CHECK(updated->plan().lanes_per_row > 1);
  const auto fresh = make_system<double>(other.view(), part, {}, spec_for(2));
  CHECK(updated->solve(b, {}, spec, {}).x == fresh->solve(b, {}, spec, {}).x);
}
