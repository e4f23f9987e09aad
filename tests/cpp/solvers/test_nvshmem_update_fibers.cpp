// New values for systems on GPUs, here on fibers of the host (host_gpu): in one process, and in
// several by the engine nvshmem.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "process_team.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr int kPes = 2;

SystemSpec spec_for(int halo, std::shared_ptr<Team> team) {
  SystemSpec spec;
  spec.engine = team ? Engine::nvshmem : Engine::cuda_p2p;
  spec.pes = kPes;
  spec.blocks = 2;
  spec.threads = 32;
  spec.halo = halo;
  if (team) spec.gpus = {team->rank()};
  spec.team = std::move(team);
  spec.remote_library = CPUFREE_TEST_REMOTE;
  return spec;
}

// A few iterations, with a preconditioner that needs the diagonal and the bound of the spectrum.
SolveSpec how() {
  SolveSpec spec;
  spec.preconditioner = Preconditioner::chebyshev;
  spec.maxiter = 4;
  return spec;
}

// D A D with positive numbers f(i) on the diagonal of D.
template <class T>
Matrix<T> scaled(Matrix<T> a, const std::function<double(std::int32_t)>& f) {
  for (std::int32_t row = 0; row < a.n(); ++row)
    for (auto k = at(a.row_ptr[at(row)]); k < at(a.row_ptr[at(row) + 1]); ++k)
      a.val[k] = static_cast<T>(static_cast<double>(a.val[k]) * (f(row) * f(a.col[k])));
  return a;
}

double spread_out(std::int32_t i) { return 1.0 + std::abs(std::sin(i)); }

void require_that(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// An order of rows that is not the natural one.
std::vector<std::int32_t> backwards(std::int32_t n) {
  std::vector<std::int32_t> order(at(n));
  for (std::int32_t i = 0; i < n; ++i) order[at(i)] = n - 1 - i;
  return order;
}

// A system of `a` that takes the values of `other` must solve as a new system of `other` does; or,
// where the values do not fit, as before.
template <class T>
void compare(const Matrix<T>& a, const Matrix<T>& other, bool fits, const SystemSpec& spec) {
  const auto part = random_partition(a.n(), kPes, 2);
  const auto order = backwards(a.n());
  const auto b = wave<T>(a.n());
  const auto updated = make_system<T>(a.view(), part, order, spec);
  require_that(updated->update(other.view()) == fits, "whether values fit");
  require_that(updated->usable(), "not usable");
  const auto fresh = make_system<T>(fits ? other.view() : a.view(), part, order, spec);
  const auto found = updated->solve(b, {}, how(), {});
  const auto expected = fresh->solve(b, {}, how(), {});
  require_that(found.history == expected.history, "another history");
  if (spec.team && spec.team->rank() != 0) return;
  require_that(found.x == expected.x, "other bits");
}

template <class T>
void expect_update(const Matrix<T>& a, const Matrix<T>& other, bool fits, int halo) {
  const auto said = run_processes(kPes, [&](const std::shared_ptr<Team>& team) {
    compare(a, other, fits, spec_for(halo, team));
    if (team->rank() == 0) compare(a, other, fits, spec_for(halo, nullptr));
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

}  // namespace

TEST(an_update_gives_the_bits_of_a_new_system_however_halos_travel) {
  const auto a = scaled(irregular(450, 5), spread_out);  // too many values to code, and tails
  const auto other = scaled(a, [](std::int32_t i) { return 2.0 + std::cos(i); });
  for (const int halo : {0, 1, 2}) expect_update(a, other, true, halo);
}

TEST(columns_in_runs_are_for_kernels_that_read_them) {
  const auto points = grid2d(14, 9, 0.5);
  Entries e;  // three unknowns a point
  for (std::int32_t i = 0; i < points.n(); ++i)
    for (auto k = at(points.row_ptr[at(i)]); k < at(points.row_ptr[at(i) + 1]); ++k)
      for (std::int32_t u = 0; u < 9; ++u)
        e[{3 * i + u / 3, 3 * points.col[k] + u % 3}] =
            points.val[k] * ((u / 3 == u % 3 ? 1.0 : 0.0) + 0.1 * (u / 3 + 1) * (u % 3 + 1));
  const auto a = scaled(from_entries<double>(3 * points.n(), e), spread_out);
  const auto b = wave<double>(a.n());
  SolveSpec solve;
  solve.maxiter = 2000;
  solve.rtol = 1e-11;
  SystemSpec host;
  const auto expected = make_system<double>(a.view(), {}, {}, host)->solve(b, {}, solve, {}).x;
  for (const int residency : {0, 1, -1}) {  // in memory, through rings, on chip
    SystemSpec spec = spec_for(1, nullptr);
    spec.pes = 1;
    spec.residency = residency;
    spec.ring = residency == 1 ? 2 : -1;
    const auto system = make_system<double>(a.view(), {}, {}, spec);
    CHECK(system->plan().matrix_bytes < 9.6 * static_cast<double>(a.row_ptr.back()));
    const auto found = system->solve(b, {}, solve, {}).x;
    double far = 0.0;
    for (std::size_t i = 0; i < found.size(); ++i)
      far = std::max(far, std::abs(found[i] - expected[i]));
    CHECK(far < 1e-8);
  }
}

TEST(an_update_of_coded_values_gives_the_bits_of_a_new_system) {
  const auto a = grid2d(20, 15, 0.5);
  expect_update(a, scaled(a, [](std::int32_t) { return 1.5; }), true, 2);
}

TEST(an_update_in_single_precision_gives_the_bits_of_a_new_system) {
  const auto a = grid2d<float>(20, 15, 0.5);
  expect_update(a, scaled(a, [](std::int32_t) { return 1.5; }), true, -1);
}

TEST(values_that_cannot_be_coded_as_the_old_ones_do_not_fit_and_change_nothing) {
  const auto a = grid2d(40, 30, 0.5);
  expect_update(a, scaled(a, spread_out), false, 0);
}
