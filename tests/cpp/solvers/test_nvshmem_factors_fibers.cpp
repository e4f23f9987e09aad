// Preconditioners with factors on the engines for GPUs, here on fibers of the host (host_gpu): in
// one process, and in several by the engine nvshmem.
#include <algorithm>
#include <cmath>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "process_team.hpp"
#include "slabs.hpp"
#include "solves.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

constexpr int kPes = 2;
const FactorSpec kInverse = {Preconditioner::fsai, 1};
const FactorSpec kThinned = {Preconditioner::fsai, 2};

SystemSpec spec_for(const FactorSpec& factors, int halo, std::shared_ptr<Team> team) {
  SystemSpec spec;
  spec.engine = team ? Engine::nvshmem : Engine::cuda_p2p;
  spec.pes = kPes;
  spec.blocks = 2;
  spec.threads = 64;
  spec.halo = halo;
  spec.factors = factors;
  if (team) spec.gpus = {team->rank()};
  spec.team = std::move(team);
  spec.remote_library = CPUFREE_TEST_REMOTE;
  return spec;
}

void require_that(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// The engine for GPUs has the preconditioner of the CPU engine: as many iterations, but for
// rounding, and as many entries.
void expect_as_on_cpu(const Matrix<double>& a, SystemSpec spec, Method method) {
  const auto part = random_partition(a.n(), kPes, 2);
  const auto b = wave(a.n());
  SystemSpec host;
  host.pes = kPes;
  host.factors = spec.factors;
  const SolveSpec how = solve_spec(method, spec.factors.kind);
  const auto on_cpu = make_system<double>(a.view(), part, {}, host);
  const auto expected = on_cpu->solve(b, {}, how, {});
  const auto system = make_system<double>(a.view(), part, {}, spec);
  const auto found = system->solve(b, {}, how, {});
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
  CHECK(std::abs(found.outcome.iterations - expected.outcome.iterations) <= 1);
  CHECK(distance(found.x, expected.x) < 1e-7);
  CHECK_EQ(system->plan().factor_entries, on_cpu->plan().factor_entries);
}

// D A D with positive numbers f(i) on the diagonal of D.
template <class F>
Matrix<double> scaled(Matrix<double> a, F&& f) {
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      a.val[k] *= f(i) * f(a.col[k]);
  return a;
}

}  // namespace

TEST(factors_are_those_of_the_cpu_however_halos_travel) {
  const auto a = irregular(230, 5);
  for (const int halo : {0, 1, 2})
    for (const FactorSpec& factors : {kInverse, kThinned})
      expect_as_on_cpu(a, spec_for(factors, halo, nullptr), Method::prcg);
}

TEST(factors_are_those_of_the_cpu_by_all_methods_and_wherever_vectors_lie) {
  const auto a = grid2d(19, 11, 0.01);
  harness::Sample sample(3);
  for (const Method method : kMethods)
    for (const int residency : {0, 1, -1}) {
      if (!sample.next()) continue;
      SystemSpec spec = spec_for(kThinned, -1, nullptr);
      spec.residency = residency;
      expect_as_on_cpu(a, spec, method);
    }
}

TEST(factors_in_processes_give_bitwise_what_one_process_gives) {
  const auto a = irregular(150, 4);
  const auto part = random_partition(a.n(), kPes, 3);
  const auto b = wave(a.n());
  for (const FactorSpec& factors : {kInverse, kThinned}) {
    const auto how = solve_spec(Method::pipecg, factors.kind);
    const auto said = run_processes(kPes, [&](const std::shared_ptr<Team>& team) {
      const auto system = make_system<double>(a.view(), part, {}, spec_for(factors, -1, team));
      const auto found = system->solve(b, {}, how, {});
      require_that(found.outcome.reason == Reason::converged_rtol, "not converged");
      const auto one = make_system<double>(a.view(), part, {}, spec_for(factors, -1, nullptr));
      require_that(system->plan().factor_entries == one->plan().factor_entries, "other entries");
      if (team->rank() != 0) return;
      require_that(found.x == one->solve(b, {}, how, {}).x, "other bits than in one process");
    });
    for (const std::string& words : said) CHECK_EQ(words, std::string());
  }
}

TEST(factors_of_own_rows_give_bitwise_what_the_whole_matrix_gives) {
  const auto a = grid2d(12, 9, 0.1);
  const Cuts cuts = {0, 43, 108};  // in the middle of a block of five rows
  const auto b = wave(a.n());
  for (const FactorSpec& factors : {kInverse, kThinned}) {
    const auto how = solve_spec(Method::prcg, factors.kind);
    const auto said = run_processes(kPes, [&](const std::shared_ptr<Team>& team) {
      const std::size_t rank = at(team->rank());
      const auto own = [&](const std::vector<double>& v) {
        return entries_of(v, cuts[rank], cuts[rank + 1]);
      };
      const auto rows = rows_of(a, cuts[rank], cuts[rank + 1]);
      const auto system =
          make_system(plan_slab(rows.slab(), *team, {1e-5}), spec_for(factors, -1, team));
      const auto found = system->solve(own(b), {}, how, {});
      const auto whole =
          make_system<double>(a.view(), part_of(cuts), {}, spec_for(factors, -1, nullptr));
      require_that(found.x == own(whole->solve(b, {}, how, {}).x), "other bits");
    });
    for (const std::string& words : said) CHECK_EQ(words, std::string());
  }
}

TEST(factors_between_nodes_find_what_one_node_finds) {
  const auto a = irregular(150, 4);
  const auto part = random_partition(a.n(), kPes, 3);
  const auto b = wave(a.n());
  const auto how = solve_spec(Method::prcg, Preconditioner::fsai);
  const auto said = run_processes(kPes, [&](const std::shared_ptr<Team>& team) {
    SystemSpec spec = spec_for(kThinned, -1, team);
    const auto expected = make_system<double>(a.view(), part, {}, spec)->solve(b, {}, how, {});
    spec.node_size = 1;
    spec.remote_kernels = "kernels of the host";
    const auto found = make_system<double>(a.view(), part, {}, spec)->solve(b, {}, how, {});
    require_that(found.outcome.reason == Reason::converged_rtol, "not converged");
    require_that(std::abs(found.outcome.iterations - expected.outcome.iterations) <= 1,
                 "other iterations");
    if (team->rank() != 0) return;
    require_that(distance(found.x, expected.x) < 1e-7, "another solution");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(an_update_makes_the_factors_of_the_new_values_on_gpus) {
  // Too many values to code, so that the new ones fit.
  const auto a =
      scaled(irregular(450, 5), [](std::int32_t i) { return 1.0 + std::abs(std::sin(i)); });
  const auto other = scaled(a, [](std::int32_t i) { return 2.0 + std::cos(i); });
  const auto part = random_partition(a.n(), kPes, 2);
  const auto b = wave(a.n());
  for (const FactorSpec& factors : {kInverse, kThinned}) {
    const auto how = solve_spec(Method::prcg, factors.kind);
    const auto updated = make_system<double>(a.view(), part, {}, spec_for(factors, 0, nullptr));
    const auto fresh = make_system<double>(other.view(), part, {}, spec_for(factors, 0, nullptr));
    CHECK(updated->update(other.view()));
    CHECK(updated->solve(b, {}, how, {}).x == fresh->solve(b, {}, how, {}).x);
    CHECK_EQ(updated->plan().factor_entries, fresh->plan().factor_entries);
  }
}
