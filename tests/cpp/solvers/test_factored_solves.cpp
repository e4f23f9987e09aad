// Solves with preconditioners that have factors, on CPU threads.
#include <cmath>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/factors/factors.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

const FactorSpec kFactors[] = {{Preconditioner::fsai, 1}, {Preconditioner::fsai, 2}};

SystemSpec system_spec(int pes, int blocks, const FactorSpec& factors) {
  SystemSpec spec;
  spec.pes = pes;
  spec.blocks = blocks;
  spec.factors = factors;
  return spec;
}

// Iterations of preconditioned conjugate gradients with the same M on one PE, serially.
std::int64_t reference_iterations(const Matrix<double>& a, const std::vector<double>& b,
                                  const FactorSpec& spec, double rtol) {
  using namespace reference;
  std::vector<std::int32_t> rows(at(a.n()));
  for (std::int32_t i = 0; i < a.n(); ++i) rows[at(i)] = i;
  const OwnRows own = own_rows_of(a.view(), rows);
  const Factors m = approximate_inverse(own, fsai_options(spec.level));
  const auto apply = [&](const Vec& r) {
    Vec z(r);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] *= m.scale[i];
    for (const SparseFactor& f : m.factors) {
      Vec y(z.size());
      for (std::size_t i = 0; i < y.size(); ++i)
        for (auto k = at(f.row_ptr[i]); k < at(f.row_ptr[i + 1]); ++k)
          y[i] += static_cast<double>(f.val[k]) * z[at(f.col[k])];
      z = y;
    }
    for (std::size_t i = 0; i < z.size(); ++i) z[i] *= m.scale[i];
    return z;
  };
  Vec r = b, z = apply(r), p = z;
  double rho = dot(r, z);
  std::int64_t count = 0;
  for (; std::sqrt(dot(r, r)) > rtol * std::sqrt(dot(b, b)); ++count) {
    const Vec ap = multiply(a.view(), p);
    r = axpy(r, -rho / dot(p, ap), ap);
    z = apply(r);
    const double next = dot(r, z);
    p = axpy(z, next / rho, p);
    rho = next;
  }
  return count;
}

// D A D with D from 1e-3 to 1e3.
Matrix<double> badly_scaled(Matrix<double> a) {
  const auto d = [](std::int32_t i) { return std::pow(10.0, (i * 7) % 7 - 3); };
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      a.val[k] *= d(i) * d(a.col[k]);
  return a;
}

}  // namespace

TEST(all_methods_solve_with_factors_on_any_number_of_pes_and_blocks) {
  for (const auto& a : {irregular(300, 6), grid2d(17, 19, 0.01)}) {
    const auto b = wave(a.n());
    const auto expected = reference::cg(a.view(), b, 1e-13, 2000).x;
    for (const FactorSpec& factors : kFactors)
      for (const int pes : {1, 2, 3, 8}) {
        if (pes > harness::shorter(8, 2)) continue;
        const auto part = random_partition(a.n(), pes, 2);
        const auto system =
            make_system<double>(a.view(), part, {}, system_spec(pes, 1 + pes % 3, factors));
        for (const Method method : kMethods) {
          const auto found = system->solve(b, {}, solve_spec(method, factors.kind), {});
          CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
          double most = 0.0;
          for (std::size_t i = 0; i < b.size(); ++i)
            most = std::max(most, std::abs(found.x[i] - expected[i]));
          CHECK(most < 1e-6);
        }
      }
  }
}

TEST(iterations_are_those_of_the_serial_method_with_the_same_preconditioner) {
  const auto a = badly_scaled(grid2d(30, 30));
  const auto b = wave(a.n());
  for (const FactorSpec& factors : kFactors) {
    const auto expected = reference_iterations(a, b, factors, 1e-8);
    const auto system = make_system<double>(a.view(), {}, {}, system_spec(1, 3, factors));
    for (const Method method : kMethods) {
      SolveSpec spec = solve_spec(method, factors.kind);
      spec.rtol = 1e-8;
      const auto found = system->solve(b, {}, spec, {});
      CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
      CHECK(std::abs(found.outcome.iterations - expected) <= 2 + expected / 50);
    }
  }
}

TEST(fsai_needs_two_thirds_of_the_iterations_of_jacobi_and_level_2_fewer) {
  const auto a = grid2d(60, 60);
  const auto b = wave(a.n());
  const auto iterations = [&](const FactorSpec& factors, Preconditioner pc) {
    return make_system<double>(a.view(), {}, {}, system_spec(1, 2, factors))
        ->solve(b, {}, solve_spec(Method::prcg, pc), {})
        .outcome.iterations;
  };
  const auto jacobi = iterations({}, Preconditioner::jacobi);
  const auto one = iterations({Preconditioner::fsai, 1}, Preconditioner::fsai);
  const auto two = iterations({Preconditioner::fsai, 2}, Preconditioner::fsai);
  CHECK(3 * one < 2 * jacobi);
  CHECK(10 * two < 9 * one);
}

TEST(solves_with_factors_repeat_bit_for_bit) {
  const auto a = irregular(400, 3);
  const auto b = wave(a.n());
  for (const FactorSpec& factors : kFactors) {
    const auto system = make_system<double>(a.view(), random_partition(a.n(), 2, 5), {},
                                            system_spec(2, 2, factors));
    for (const Method method : kMethods) {
      const auto one = system->solve(b, {}, solve_spec(method, factors.kind), {});
      const auto two = system->solve(b, {}, solve_spec(method, factors.kind), {});
      CHECK(one.x == two.x && one.history == two.history);
    }
  }
}

TEST(single_precision_solves_with_factors) {
  const auto a = grid2d<float>(20, 15, 0.5);
  const auto b = wave<float>(a.n());
  for (const FactorSpec& factors : kFactors) {
    const auto system = make_system<float>(a.view(), {}, {}, system_spec(2, 2, factors));
    for (const Method method : kMethods) {
      SolveSpec spec = solve_spec(method, factors.kind);
      spec.rtol = 1e-5;
      CHECK_EQ(system->solve(b, {}, spec, {}).outcome.reason, Reason::converged_rtol);
    }
  }
}

TEST(an_update_makes_the_factors_of_the_new_values) {
  const auto a = irregular(300, 6);
  const auto other = badly_scaled(a);
  const auto b = wave(a.n());
  for (const FactorSpec& factors : kFactors)
    for (const int pes : {1, 3}) {
      const auto part = random_partition(a.n(), pes, 2);
      const auto spec = system_spec(pes, 2, factors);
      const auto updated = make_system<double>(a.view(), part, {}, spec);
      const auto fresh = make_system<double>(other.view(), part, {}, spec);
      CHECK(updated->update(other.view()));
      const auto how = solve_spec(Method::prcg, factors.kind);
      CHECK(updated->solve(b, {}, how, {}).x == fresh->solve(b, {}, how, {}).x);
      CHECK_EQ(updated->plan().factor_entries, fresh->plan().factor_entries);
    }
}

TEST(a_solve_without_its_factors_is_refused_with_what_to_do) {
  const auto a = grid2d(5, 5);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(1, 1, {}));
  CHECK_THROWS(InvalidInput,
               system->solve(wave(a.n()), {}, solve_spec(Method::cg, Preconditioner::fsai), {}));
}

TEST(factors_out_of_range_are_refused) {
  const auto a = grid2d(5, 5);
  for (const FactorSpec& factors :
       {FactorSpec{Preconditioner::fsai, 3}, FactorSpec{Preconditioner::chebyshev, 1}})
    CHECK_THROWS(InvalidInput, make_system<double>(a.view(), {}, {}, system_spec(1, 1, factors)));
}

TEST(an_indefinite_matrix_ends_with_its_name_and_not_with_that_of_the_preconditioner) {
  auto a = grid2d(10, 10, -3.0);  // the diagonal is 1, and far from dominant
  for (const FactorSpec& factors : kFactors) {
    const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 1, factors));
    CHECK(system->plan().factors_replaced > 0);
    for (const Method method : kMethods) {
      const auto reason =
          system->solve(wave(a.n()), {}, solve_spec(method, factors.kind), {}).outcome.reason;
      CHECK_EQ(reason, Reason::diverged_indefinite_mat);
    }
  }
}
