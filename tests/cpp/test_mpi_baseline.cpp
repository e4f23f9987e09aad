// The baseline of MPI on a stand-in for GPUs, under mpirun: every process runs all tests, and
// checks the whole solution.
#include <cmath>

#include "cpufree/base/error.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/run/baseline_mpi.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr Method kMethods[] = {Method::cg, Method::prcg, Method::pipecg};

BaselineSpec spec_here() {
  host_gpu::configure({4, true, true, static_cast<unsigned>(mpi_place().rank) + 1, false});
  BaselineSpec spec;
  spec.kind = "mpi";
  spec.pes = mpi_place().size;
  spec.spmv = "warp_slices";
  spec.wait_limit = 20.0;
  return spec;
}

std::vector<double> solved(const Matrix<double>& a, const std::vector<double>& b,
                           const std::vector<std::int32_t>& part, Method method,
                           BaselineResult& result) {
  const auto baseline = make_baseline<double>(a.view(), part, {}, spec_here());
  std::vector<double> x(b.size());
  BaselineSolve how;
  how.method = method;
  how.rtol = 1e-9;
  how.max_iterations = 1000;
  result = baseline->solve(b, x, how);
  return x;
}

double true_residual(const Matrix<double>& a, const std::vector<double>& b,
                     const std::vector<double>& x) {
  const auto r = reference::axpy(b, -1.0, reference::multiply(a.view(), x));
  return std::sqrt(reference::dot(r, r) / reference::dot(b, b));
}

}  // namespace

TEST(mpi_solves_by_every_method_whatever_the_partition) {
  const auto a = irregular(90, 3);
  const auto b = wave(a.n());
  const int pes = mpi_place().size;
  std::vector<std::int32_t> empty(b.size(), 0);  // but for the first PE and the last one
  for (std::size_t i = 40; i < empty.size(); ++i) empty[i] = pes - 1;
  const auto expected = reference::cg(a.view(), b, 1e-9, 1000);
  for (const auto& part : {random_partition(a.n(), pes, 5), empty})
    for (const Method method : kMethods) {
      BaselineResult result;
      const auto x = solved(a, b, part, method, result);
      CHECK_EQ(result.reason, std::string("CONVERGED_RTOL"));
      CHECK_NEAR(static_cast<double>(result.iterations), static_cast<double>(expected.iterations),
                 2.0);
      CHECK(true_residual(a, b, x) <= 1.01e-9);
    }
}

TEST(mpi_without_gpu_awareness_says_that_it_stages) {
  const auto a = grid2d(8, 8);
  const auto baseline = make_baseline<double>(
      a.view(), random_partition(a.n(), mpi_place().size, 3), {}, spec_here());
  CHECK_EQ(baseline->facts().staging, std::string(mpi_place().size > 1 ? "host" : "none"));
}

TEST(mpi_variants_end_after_their_iterations) {
  const auto a = grid2d(9, 9);
  const auto b = wave(a.n());
  const auto baseline = make_baseline<double>(
      a.view(), random_partition(a.n(), mpi_place().size, 3), {}, spec_here());
  for (const Method method : kMethods)
    for (const char* variant : {"full", "no-compute", "no-comm"}) {
      BaselineSolve how;
      how.method = method;
      how.variant = variant;
      how.exact_iterations = 5;
      const auto result = baseline->solve(b, {}, how);
      CHECK_EQ(result.iterations, std::int64_t{5});
      CHECK_EQ(result.reason, std::string("CONVERGED_ITS"));
    }
}

TEST(mpi_refuses_another_number_of_pes_than_processes) {
  const auto a = grid2d(5, 5);
  BaselineSpec spec = spec_here();
  ++spec.pes;
  CHECK_THROWS(InvalidInput,
               make_baseline<double>(a.view(), std::vector<std::int32_t>(25, 0), {}, spec));
}

TEST(mpi_broadcasts_what_rank_0_says) {
  CHECK_EQ(mpi_broadcast(mpi_place().rank == 0 ? "to all" : "mine"), std::string("to all"));
}
