// The baselines that mpirun starts on a stand-in for GPUs: every process runs all tests, and checks
// the whole solution.
#include <cmath>
#include <cstdlib>

#include "cpufree/base/error.hpp"
#include "cpufree/baselines/drivers/mpi.hpp"
#include "cpufree/reference/cg.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr Method kMethods[] = {Method::cg, Method::prcg, Method::pipecg};
constexpr const char* kKinds[] = {"mpi", "nccl_mpi"};

BaselineSpec spec_here(const char* kind) {
  host_gpu::configure({4, true, true, static_cast<unsigned>(mpi_place().rank) + 1, false});
  BaselineSpec spec;
  spec.kind = kind;
  spec.pes = mpi_place().size;
  spec.spmv = "warp_slices";
  spec.wait_limit = 300.0;
  return spec;
}

std::vector<double> solved(const BaselineSpec& spec, const Matrix<double>& a,
                           const std::vector<double>& b, const std::vector<std::int32_t>& part,
                           Method method, BaselineResult& result) {
  const auto baseline = make_baseline<double>(a.view(), part, {}, spec);
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
  for (const char* kind : kKinds)
    for (const auto& part : {random_partition(a.n(), pes, 5), empty})
      for (const Method method : kMethods) {
        BaselineResult result;
        const auto x = solved(spec_here(kind), a, b, part, method, result);
        CHECK_EQ(result.reason, std::string("CONVERGED_RTOL"));
        CHECK_NEAR(static_cast<double>(result.iterations), static_cast<double>(expected.iterations),
                   2.0);
        CHECK(true_residual(a, b, x) <= 1.01e-9);
      }
}

// Memory of the stand-in is the host's, which every MPI takes.
TEST(mpi_given_gpu_memory_solves_as_it_does_through_the_host) {
  const auto a = irregular(90, 3);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), mpi_place().size, 5);
  for (const Method method : kMethods) {
    std::vector<double> x[2];
    BaselineResult result[2];
    for (const bool direct : {false, true}) {
      BaselineSpec spec = spec_here("mpi");
      spec.gpu_aware = direct;
      x[direct] = solved(spec, a, b, part, method, result[direct]);
    }
    CHECK(x[0] == x[1]);
    CHECK_EQ(result[0].iterations, result[1].iterations);
    CHECK(true_residual(a, b, x[1]) <= 1.01e-9);
  }
}

TEST(mpi_goes_by_the_option_gpu_aware) {
  const auto a = grid2d(8, 8);
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  for (const bool direct : {false, true}) {
    BaselineSpec spec = spec_here("mpi");
    spec.gpu_aware = direct;
    const auto baseline = make_baseline<double>(a.view(), part, {}, spec);
    const std::string way = mpi_place().size == 1 ? "none" : direct ? "peer" : "host";
    CHECK_EQ(baseline->facts().staging, way);
    CHECK(baseline->facts().notes.front().find("as the option gpu_aware") != std::string::npos);
  }
}

TEST(mpi_without_the_option_goes_by_what_mpi_says) {
  const auto a = grid2d(8, 8);
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  const auto baseline = make_baseline<double>(a.view(), part, {}, spec_here("mpi"));
  const std::string& note = baseline->facts().notes.front();
  const bool takes = note.find("takes addresses of GPU memory: it is given") != std::string::npos;
  const std::string way = mpi_place().size == 1 ? "none" : takes ? "peer" : "host";
  CHECK_EQ(baseline->facts().staging, way);
  CHECK(takes || note.find("staged through pinned host memory") != std::string::npos);
}

TEST(mpi_with_nccl_says_whether_gpus_reach_one_another) {
  const auto a = grid2d(8, 8);
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  const bool several = mpi_place().size > 1;
  for (const bool avoids : {false, true}) {
    setenv("NCCL_P2P_DISABLE", avoids ? "1" : "0", 1);
    const auto baseline = make_baseline<double>(a.view(), part, {}, spec_here("nccl_mpi"));
    CHECK_EQ(baseline->facts().staging, std::string(!several ? "none" : avoids ? "host" : "peer"));
  }
  unsetenv("NCCL_P2P_DISABLE");
}

TEST(mpi_variants_end_after_their_iterations) {
  const auto a = grid2d(9, 9);
  const auto b = wave(a.n());
  for (const char* kind : kKinds) {
    const auto baseline = make_baseline<double>(
        a.view(), random_partition(a.n(), mpi_place().size, 3), {}, spec_here(kind));
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
}

TEST(mpi_processes_have_contexts_on_their_own_gpus_alone) {
  const auto a = grid2d(8, 8);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  for (const char* kind : kKinds) {
    BaselineSpec spec = spec_here(kind);
    spec.spmv = "auto";
    const auto baseline = make_baseline<double>(a.view(), part, {}, spec);
    BaselineSolve how;
    how.exact_iterations = 2;
    baseline->solve(b, {}, how);
    CHECK(host_gpu::contexts() == std::set<int>{mpi_place().rank});
  }
}

TEST(mpi_refuses_another_number_of_pes_than_processes) {
  const auto a = grid2d(5, 5);
  for (const char* kind : kKinds) {
    BaselineSpec spec = spec_here(kind);
    ++spec.pes;
    CHECK_THROWS(InvalidInput,
                 make_baseline<double>(a.view(), std::vector<std::int32_t>(25, 0), {}, spec));
  }
}

TEST(mpi_solves_on_after_arguments_that_it_refuses) {
  const auto a = grid2d(5, 5);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  const auto baseline = make_baseline<double>(a.view(), part, {}, spec_here("mpi"));
  BaselineSolve how;
  how.exact_iterations = 2;
  CHECK_THROWS(InvalidInput, baseline->solve(std::vector<double>(7), {}, how));
  CHECK_EQ(baseline->solve(b, {}, how).iterations, std::int64_t{2});
}

TEST(mpi_refuses_gpu_awareness_where_nccl_sends) {
  const auto a = grid2d(5, 5);
  BaselineSpec spec = spec_here("nccl_mpi");
  spec.gpu_aware = true;
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  CHECK_THROWS(InvalidInput, make_baseline<double>(a.view(), part, {}, spec));
}

TEST(mpi_tells_all_processes_what_one_of_them_lacks) {
  const auto a = grid2d(5, 5);
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  const int last = mpi_place().size - 1;
  const bool lacks = mpi_place().rank == last;
  BaselineSpec spec = spec_here("nccl_mpi");
  if (lacks) spec.nccl_library = "missing";
  std::string why;
  bool unsupported = false;
  try {
    make_baseline<double>(a.view(), part, {}, spec);
  } catch (const Unsupported& error) {
    why = error.what();
    unsupported = true;
  } catch (const EngineError& error) {
    why = error.what();
  }
  CHECK_EQ(unsupported, lacks);
  CHECK(why.find("NCCL was not found") != std::string::npos);
  CHECK(lacks || why.find("process " + std::to_string(last)) != std::string::npos);
}

TEST(mpi_tells_all_processes_that_one_has_no_memory_for_a_product) {
  const auto a = grid2d(5, 5);
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  const int last = mpi_place().size - 1;
  const bool lacks = mpi_place().rank == last;
  for (const char* kind : kKinds) {
    BaselineSpec spec = spec_here(kind);
    spec.spmv = "auto";
    const std::size_t more_than_there_is = std::size_t{1} << 60;
    if (lacks) host_gpu::configure({4, true, true, 1, false, more_than_there_is});
    std::string why;
    try {
      make_baseline<double>(a.view(), part, {}, spec);
    } catch (const OutOfMemory& error) {
      CHECK(lacks);
      why = error.what();
    } catch (const EngineError& error) {
      why = error.what();
    }
    CHECK(why.find("GPU " + std::to_string(last) + " has no room") != std::string::npos);
  }
}

TEST(mpi_tells_all_processes_that_one_cannot_return_x) {
  const auto a = grid2d(5, 5);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  const int last = mpi_place().size - 1;
  const auto baseline = make_baseline<double>(a.view(), part, {}, spec_here("mpi"));
  std::vector<double> x(b.size());
  BaselineSolve how;
  how.exact_iterations = 2;
  std::size_t runs = 0;  // in a solve, of which a copy of x is the last
  for (int k = 0; k < 2; ++k) {
    const std::size_t before = host_gpu::executed();
    baseline->solve(b, x, how);
    runs = host_gpu::executed() - before;
  }
  if (mpi_place().rank == last) host_gpu::break_device(last, runs - 1);
  CHECK_THROWS(EngineError, baseline->solve(b, x, how));
}

TEST(mpi_ends_a_solve_of_all_processes_where_one_gpu_stops) {
  const auto a = grid2d(9, 9);
  const auto b = wave(a.n());
  BaselineSpec spec = spec_here("nccl_mpi");
  spec.wait_limit = 4.0;
  const auto part = random_partition(a.n(), mpi_place().size, 3);
  const auto baseline = make_baseline<double>(a.view(), part, {}, spec);
  BaselineSolve how;
  how.exact_iterations = 20;
  baseline->solve(b, {}, how);
  if (mpi_place().rank == mpi_place().size - 1) host_gpu::stop_device(mpi_place().rank, 20);
  CHECK_THROWS(EngineError, baseline->solve(b, {}, how));
  CHECK_THROWS(EngineError, baseline->solve(b, {}, how));
}

TEST(mpi_broadcasts_what_rank_0_says) {
  CHECK_EQ(mpi_broadcast(mpi_place().rank == 0 ? "to all" : "mine"), std::string("to all"));
}
