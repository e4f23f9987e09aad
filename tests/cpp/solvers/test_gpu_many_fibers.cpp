// Many systems in one kernel of a GPU, here on the host (host_gpu), against those of the CPU's
// cores: each has its own end, and what is wrong with one leaves the others as they are.
#include <cmath>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/gpu/many.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

SolveSpec spec_of_many(double rtol) {
  SolveSpec spec;
  spec.method = Method::prcg;
  spec.preconditioner = Preconditioner::jacobi;
  spec.rtol = rtol;
  spec.maxiter = -1;
  return spec;
}

template <class T>
struct Systems {
  std::vector<Matrix<T>> matrices;
  std::vector<std::vector<T>> b, x;
  std::vector<OneOfMany<T>> all;

  void add(Matrix<T> matrix) {
    const auto n = static_cast<std::int32_t>(matrix.row_ptr.size() - 1);
    matrices.push_back(std::move(matrix));
    b.push_back(wave<T>(n));
    for (T& value : b.back()) value *= static_cast<T>(b.size());
    x.emplace_back(at(n), T{7});
  }
  std::vector<OneOfMany<T>>& make() {
    all.clear();
    for (std::size_t k = 0; k < b.size(); ++k) all.push_back({matrices[k].view(), b[k], {}, x[k]});
    return all;
  }
};

// More than there are blocks; runs of one pattern, others, sizes from 1 to 90.
template <class T>
Systems<T> some_systems() {
  Systems<T> systems;
  for (int k = 0; k < 6; ++k) systems.add(grid2d<T>(9, 10, 0.1 * k));
  systems.add(grid2d<T>(1, 1, 1.0));
  for (unsigned seed = 1; seed < 6; ++seed)
    systems.add(irregular<T>(static_cast<std::int32_t>(13 * seed), seed));
  return systems;
}

template <class T>
double residual_of(const OneOfMany<T>& one) {
  double square = 0.0, norm = 0.0;
  for (std::int32_t i = 0; i < one.matrix.n; ++i) {
    double r = static_cast<double>(one.b[at(i)]);
    norm += r * r;
    for (auto e = one.matrix.row_ptr[at(i)]; e < one.matrix.row_ptr[at(i) + 1]; ++e)
      r -= static_cast<double>(one.matrix.val[at(e)]) *
           static_cast<double>(one.x[at(one.matrix.col[at(e)])]);
    square += r * r;
  }
  return norm > 0.0 ? std::sqrt(square / norm) : std::sqrt(square);
}

template <class T>
void check_against_cores(double rtol) {
  auto on_gpu = some_systems<T>(), on_cores = some_systems<T>();
  const SolveSpec spec = spec_of_many(rtol);
  std::vector<SolvedOne> here(on_gpu.b.size()), there(on_gpu.b.size());
  solve_many_on_gpu(on_gpu.make(), spec, 0, {}, there);
  solve_many(on_cores.make(), spec, {}, here);
  for (std::size_t k = 0; k < here.size(); ++k) {
    CHECK_EQ(there[k].outcome.reason, Reason::converged_rtol);
    CHECK(std::abs(there[k].outcome.iterations - here[k].outcome.iterations) <= 1);
    CHECK(residual_of(on_gpu.all[k]) <= 1.01 * rtol);
    CHECK_NEAR(there[k].outcome.bnorm, here[k].outcome.bnorm, 1e-5 * here[k].outcome.bnorm);
  }
}

TEST(many_systems_end_as_on_cores) {
  check_against_cores<double>(1e-10);
  check_against_cores<float>(1e-4);
}

TEST(solutions_have_the_same_bits_again) {
  auto one = some_systems<double>(), other = some_systems<double>();
  std::vector<SolvedOne> first(one.b.size()), second(one.b.size());
  solve_many_on_gpu(one.make(), spec_of_many(1e-8), 0, {}, first);
  solve_many_on_gpu(other.make(), spec_of_many(1e-8), 0, {}, second);
  CHECK(one.x == other.x);
}

TEST(systems_that_fail_leave_the_others_right) {
  auto systems = some_systems<double>();
  for (double& value : systems.matrices[2].val) value = -value;  // indefinite
  for (double& value : systems.b[4]) value = 0.0;
  auto& all = systems.make();
  std::vector<SolvedOne> solved(all.size());
  solved[7].refused = true;
  solve_many_on_gpu(all, spec_of_many(1e-9), 0, {}, solved);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (k == 2)
      CHECK_EQ(solved[k].outcome.reason, Reason::diverged_indefinite_mat);
    else if (k == 4)
      CHECK_EQ(solved[k].outcome.reason, Reason::converged_atol);
    else if (k == 7)
      CHECK_EQ(systems.x[k][0], 7.0);  // as it was
    else
      CHECK(residual_of(all[k]) <= 1.01e-9);
  }
}

TEST(first_guesses_are_taken) {
  auto systems = some_systems<double>();
  std::vector<SolvedOne> solved(systems.b.size());
  solve_many_on_gpu(systems.make(), spec_of_many(1e-12), 0, {}, solved);
  const auto guesses = systems.x;
  auto& all = systems.make();
  for (std::size_t k = 0; k < all.size(); ++k) all[k].x0 = guesses[k];
  solve_many_on_gpu(all, spec_of_many(1e-6), 0, {}, solved);
  for (const SolvedOne& one : solved) CHECK_EQ(one.outcome.iterations, 0);
}

TEST(checks_find_what_cannot_be_solved) {
  auto systems = some_systems<double>();
  systems.matrices[1].val[1] += 0.5;
  systems.matrices[3].val[0] = std::nan("");
  std::vector<SolvedOne> solved(systems.b.size());
  check_many(systems.make(), 1e-10, solved);
  for (std::size_t k = 0; k < solved.size(); ++k) CHECK_EQ(solved[k].refused, k == 1 || k == 3);
}

}  // namespace
