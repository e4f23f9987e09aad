// Mixed precision on the engine for GPUs, here on fibers of the host (host_gpu): products read
// values in single precision, and what is called converged is so for the matrix as it is.
#include <cmath>
#include <random>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr double kTolerance = 1e-10;

SystemSpec spec_for(int pes, int halo) {
  SystemSpec spec;
  spec.engine = Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = 2;
  spec.threads = 32;
  spec.halo = halo;
  spec.single_values = true;
  return spec;
}

// A Laplacian whose unknowns have scales of their own: no value is one of single precision.
Matrix<double> scaled_grid(std::int32_t nx, std::int32_t ny) {
  auto a = grid2d<double>(nx, ny, 0.01);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> exponent(-1.0, 1.0);
  std::vector<double> scale;
  for (std::int32_t i = 0; i < a.n(); ++i) scale.push_back(std::pow(10.0, exponent(random)));
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      a.val[k] *= scale[at(i)] * scale[at(a.col[k])];
  return a;
}

double residual(const Matrix<double>& a, const std::vector<double>& x,
                const std::vector<double>& b) {
  long double square = 0.0L, size = 0.0L;
  for (std::int32_t i = 0; i < a.n(); ++i) {
    long double r = b[at(i)];
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      r -= static_cast<long double>(a.val[k]) * x[at(a.col[k])];
    square += r * r, size += static_cast<long double>(b[at(i)]) * b[at(i)];
  }
  return static_cast<double>(std::sqrt(square / size));
}

SolveSpec to_tolerance(Method method, Preconditioner pc = Preconditioner::jacobi) {
  SolveSpec spec;
  spec.method = method;
  spec.preconditioner = pc;
  spec.rtol = kTolerance;
  spec.maxiter = 5000;
  return spec;
}

void check_solve(const Matrix<double>& a, System<double>& system, const SolveSpec& spec) {
  const auto b = wave<double>(a.n());
  const auto found = system.solve(b, {}, spec, {});
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
  CHECK(found.outcome.replacements > 5);  // one for each digit, or nearly
  CHECK(residual(a, found.x, b) <= 1.0001 * kTolerance);
  CHECK(found.outcome.true_residual <= kTolerance * found.outcome.bnorm);
}

void check_system(const Matrix<double>& a, const SystemSpec& where, const SolveSpec& spec) {
  const auto system = make_system<double>(a.view(), {}, {}, where);
  CHECK(system->plan().single_values);
  check_solve(a, *system, spec);
}

}  // namespace

TEST(mixed_precision_meets_the_tolerance_with_all_halos_and_methods) {
  const auto a = scaled_grid(25, 20);
  for (const int pes : {1, 2})
    for (const int halo : {0, 1, 2})
      check_system(a, spec_for(pes, halo), to_tolerance(Method::prcg));
  for (const Method method : {Method::cg, Method::pipecg})
    check_system(a, spec_for(2, 1), to_tolerance(method));
}

TEST(mixed_precision_meets_the_tolerance_through_rings) {
  const auto a = scaled_grid(25, 20);
  for (const int lanes : {0, 1}) {
    SystemSpec where = spec_for(2, 1);
    where.residency = 1;
    where.ring = 2;
    where.lanes_log2 = lanes;
    check_system(a, where, to_tolerance(lanes == 0 ? Method::cg : Method::prcg));
  }
}

TEST(mixed_precision_meets_the_tolerance_with_factors_and_levels) {
  const auto a = scaled_grid(25, 20);
  for (const int layout : {0, 1}) {
    SystemSpec where = spec_for(2, 1);
    where.layout = layout;
    where.factors.kind = Preconditioner::fsai;
    check_system(a, where, to_tolerance(Method::prcg, Preconditioner::fsai));
    where.factors.kind = Preconditioner::amg;
    where.halo = -1;
    check_system(a, where, to_tolerance(Method::cg, Preconditioner::amg));
  }
}

TEST(mixed_precision_takes_new_values) {
  const auto a = scaled_grid(25, 20);
  auto other = a;
  for (double& value : other.val) value *= 1.3;
  for (std::int32_t i = 0; i < other.n(); ++i)
    for (auto k = at(other.row_ptr[at(i)]); k < at(other.row_ptr[at(i) + 1]); ++k)
      if (other.col[k] == i) other.val[k] *= 1.01;
  for (const int layout : {0, 1}) {
    SystemSpec where = spec_for(2, 1);
    where.layout = layout;
    const auto system = make_system<double>(a.view(), {}, {}, where);
    check_solve(a, *system, to_tolerance(Method::prcg));
    CHECK(system->update(other.view()));
    check_solve(other, *system, to_tolerance(Method::prcg));
  }
}

TEST(columns_in_mixed_precision_meet_the_tolerance_each_by_itself) {
  const auto a = scaled_grid(25, 20);
  for (const int pes : {1, 2}) {
    const auto system = make_system<double>(a.view(), {}, {}, spec_for(pes, 1));
    std::vector<std::vector<double>> b(2, wave<double>(a.n()));
    for (std::size_t i = 0; i < b[1].size(); ++i)
      b[1][i] = 1e-6 * std::cos(static_cast<double>(i * i));
    std::vector<std::vector<double>> x(2, std::vector<double>(b[0].size()));
    ColumnViews<double> views;
    for (std::size_t k = 0; k < 2; ++k) {
      views.b.push_back({b[k].data(), b[k].size()});
      views.out.push_back({x[k].data(), x[k].size()});
    }
    const auto results = system->solve_columns(views, to_tolerance(Method::cg), {});
    for (std::size_t k = 0; k < 2; ++k) {
      CHECK_EQ(results[k].outcome.reason, Reason::converged_rtol);
      CHECK(results[k].outcome.replacements > 5);
      CHECK(residual(a, x[k], b[k]) <= 1.0001 * kTolerance);
    }
  }
}

TEST(few_values_are_read_as_they_are) {
  const auto a = grid2d<double>(13, 11, 0.01);
  const auto system = make_system<double>(a.view(), {}, {}, spec_for(1, 1));
  CHECK(!system->plan().single_values);
}

TEST(values_beyond_single_precision_are_refused) {
  auto a = scaled_grid(25, 20);
  for (double& value : a.val) value *= 1e-45;
  CHECK_THROWS(InvalidInput, make_system<double>(a.view(), {}, {}, spec_for(1, 1)));
  const auto fine = scaled_grid(25, 20);
  const auto system = make_system<double>(fine.view(), {}, {}, spec_for(1, 1));
  CHECK_THROWS(InvalidInput, system->update(a.view()));
  CHECK(system->usable());
  check_solve(fine, *system, to_tolerance(Method::cg));
}
