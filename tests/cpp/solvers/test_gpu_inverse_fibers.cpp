// Factorised sparse approximate inverses made by GPUs are those that the host makes; here both on
// the host (host_gpu), by the kernels that GPUs run.
#include <cmath>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/factors/factors.hpp"
#include "cpufree/solvers/gpu/layout/inverse.hpp"
#include "cpufree/solvers/gpu/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

template <class U, class V>
bool same(const U& a, const V& b) {
  return std::ranges::equal(a, b);
}

// The factors of the rows of each PE, which begin at `cuts`.
template <class T>
void check_factors(const Matrix<T>& a, const std::vector<std::int64_t>& cuts,
                   std::int64_t replaced = 0) {
  const std::size_t pes = cuts.size() - 1;
  const auto rows = send_rows<T>(GivenCsr<T>::of(a.view()), cuts, std::vector<int>(pes, 0));
  std::int64_t alone = 0;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    std::vector<std::int32_t> mine;
    for (auto row = cuts[pe]; row < cuts[pe + 1]; ++row)
      mine.push_back(static_cast<std::int32_t>(row));
    const Factors host = approximate_inverse(own_rows_of(a.view(), mine), fsai_options(1));
    const Factors made = inverse_by_gpu(rows[pe], fsai_options(1));
    CHECK_EQ(made.replaced, host.replaced);
    CHECK(made.scale == host.scale);
    for (std::size_t f = 0; f < 2; ++f) {
      CHECK(same(made.factors[f].row_ptr, host.factors[f].row_ptr));
      CHECK(same(made.factors[f].col, host.factors[f].col));
      CHECK(same(made.factors[f].val, host.factors[f].val));
    }
    alone += made.replaced;
  }
  CHECK_EQ(alone, replaced);
}

SolveSpec fifteen_iterations() {
  SolveSpec spec;
  spec.preconditioner = Preconditioner::fsai;
  spec.rtol = 0.0;
  spec.maxiter = 15;
  return spec;
}

// Solves by both ways, before and after an update.
void check_solves(const Matrix<double>& a, int pes, int halo) {
  SystemSpec spec;
  spec.engine = Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = 2;
  spec.threads = 64;
  spec.halo = halo;
  spec.factors.kind = Preconditioner::fsai;
  std::vector<std::int32_t> part;
  for (std::int32_t row = 0; row < a.n(); ++row) part.push_back(row < a.n() / 3 ? 0 : pes - 1);
  spec.layout = 0;
  GpuSystem<double> host(a.view(), part, {}, spec);
  spec.layout = 1;
  spec.inspect = true;
  GpuSystem<double> made(a.view(), part, {}, spec);
  CHECK(made.plan().entries.has_value());  // the GPUs have made it
  CHECK_EQ(made.plan().factor_entries, host.plan().factor_entries);
  CHECK_EQ(made.plan().factor_bytes, host.plan().factor_bytes);
  const auto b = wave<double>(a.n());
  Matrix<double> other = a;
  for (std::int32_t row = 0; row < a.n(); ++row)
    for (auto k = at(a.row_ptr[at(row)]); k < at(a.row_ptr[at(row) + 1]); ++k)
      other.val[k] *= row == a.col[k] ? 2.0 : 1.0;
  for (const bool updated : {false, true}) {
    if (updated) CHECK(host.update(other.view()) && made.update(other.view()));
    const auto one = static_cast<System<double>&>(host).solve(b, {}, fifteen_iterations(), {});
    const auto two = static_cast<System<double>&>(made).solve(b, {}, fifteen_iterations(), {});
    // Rows of the transpose are summed up in the sequence of A here, in that of the PE there.
    for (std::size_t i = 0; i < one.x.size(); ++i) CHECK_NEAR(two.x[i], one.x[i], 1e-9);
    CHECK(two.outcome.residual < 0.5 * two.outcome.bnorm);
  }
}

}  // namespace

TEST(factors_by_gpus_have_the_bits_of_those_by_the_host) {
  check_factors(grid2d<double>(40, 30), {0, 1200});
  check_factors(grid2d<float>(40, 30), {0, 500, 1200});
  check_factors(three_a_node(15, 12), {0, 540}, 539);  // which is not definite
  check_factors(irregular<double>(700, 3), {0, 300, 300, 700});
}

TEST(rows_too_long_for_the_chip_and_those_that_are_thinned_have_them_too) {
  check_factors(banded<double>(300, 39, 60.0), {0, 300});
  check_factors(banded<double>(300, 40, 60.0), {0, 300});
  check_factors(banded<double>(400, 63, 90.0), {0, 400});
  check_factors(banded<double>(400, 64, 90.0), {0, 190, 400});
  check_factors(banded<double>(500, 150, 200.0), {0, 500});
  check_factors(banded<float>(1300, 1100, 2000.0), {0, 1300});  // rows that take no part
}

TEST(long_rows_take_part_if_few_of_their_entries_are_of_the_part) {
  const auto hubs = with_hubs<double>(2300, 20, 1150);
  check_factors(hubs, {0, 2300});
  check_factors(hubs, {0, 1000, 2300});  // row 20 takes part, row 1150 does not
  check_factors(hubs, {0, 300, 900, 1300, 2300});
}

TEST(rows_that_are_not_positive_definite_have_their_diagonal_alone) {
  check_factors(
      from_entries<double>(
          3, {{{0, 0}, 1.0}, {{1, 1}, 1.0}, {{0, 1}, -2.0}, {{1, 0}, -2.0}, {{2, 2}, 4.0}}),
      {0, 3}, 1);
}

TEST(solves_and_updates_are_those_of_systems_laid_out_by_the_host) {
  for (const int halo : {1, 2}) {
    check_solves(grid2d<double>(40, 30), 1, halo);
    check_solves(banded<double>(700, 12, 40.0), 2, halo);
  }
  check_solves(irregular<double>(900, 5), 1, 1);
}
