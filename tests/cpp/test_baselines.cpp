// The host-driven baselines on a stand-in for GPUs, against the serial reference: their logic, and
// that their streams and events allow no wrong order.
#include <cmath>

#include "cpufree/base/error.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/run/baseline.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

const char* const kSeveral[] = {"peer_copy", "nccl", "nccl_graph", "graph_while"};
constexpr Method kMethods[] = {Method::cg, Method::prcg, Method::pipecg};
using Part = std::vector<std::int32_t>;

void on_machine(bool deferred, unsigned seed = 1, bool peers = true) {
  host_gpu::configure({4, peers, deferred, seed, false});
}

BaselineSpec spec_of(const std::string& kind, int pes) {
  BaselineSpec spec;
  spec.kind = kind;
  spec.pes = pes;
  spec.spmv = "warp_slices";
  spec.wait_limit = 20.0;
  return spec;
}

BaselineSolve solve_of(Method method, double rtol = 1e-9) {
  BaselineSolve how;
  how.method = method;
  how.rtol = rtol;
  how.max_iterations = 1000;
  return how;
}

double norm(const reference::Vec& v) { return std::sqrt(reference::dot(v, v)); }

template <class T>
double true_residual(const Matrix<T>& a, const std::vector<T>& b, const std::vector<T>& x) {
  const reference::Vec rhs(b.begin(), b.end());
  const auto ax = reference::multiply(a.view(), reference::Vec(x.begin(), x.end()));
  return norm(reference::axpy(rhs, -1.0, ax)) / norm(rhs);
}

template <class T>
struct Solved {
  BaselineResult result;
  std::vector<T> x;
};

template <class T>
Solved<T> solve(const Matrix<T>& a, const std::vector<T>& b, const BaselineSpec& spec,
                const Part& part, const BaselineSolve& how) {
  const auto baseline = make_baseline<T>(a.view(), part, {}, spec);
  Solved<T> s{{}, std::vector<T>(b.size(), T{-1})};
  s.result = baseline->solve(b, s.x, how);
  return s;
}

// Partitions in which something is odd.
std::vector<Part> awkward_parts(std::int32_t n, int pes) {
  Part scattered = random_partition(n, pes, 5);
  Part empty(static_cast<std::size_t>(n), 0);  // but for PE 0 and the last one
  for (std::size_t i = empty.size() / 2; i < empty.size(); ++i) empty[i] = pes - 1;
  Part one_row(static_cast<std::size_t>(n), 0);
  for (int pe = 1; pe < pes; ++pe) one_row[static_cast<std::size_t>(7 * pe)] = pe;
  return {scattered, empty, one_row};
}

void check_against_reference(const std::string& kind, int pes, Method method) {
  const auto a = irregular(90, 3);
  const auto b = wave(a.n());
  const auto expected = reference::cg(a.view(), b, 1e-9, 1000);
  for (const Part& part : awkward_parts(a.n(), pes)) {
    const auto s = solve(a, b, spec_of(kind, pes), part, solve_of(method));
    CHECK_EQ(s.result.reason, std::string("CONVERGED_RTOL"));
    CHECK(true_residual(a, b, s.x) <= 1.01e-9);
    CHECK_NEAR(static_cast<double>(s.result.iterations), static_cast<double>(expected.iterations),
               2.0);
    CHECK_NEAR(s.result.residual / norm(b), true_residual(a, b, s.x), 1e-11);
  }
}

}  // namespace

TEST(single_gpu_solves_by_every_method) {
  on_machine(false);
  for (const Method method : kMethods) check_against_reference("single_gpu", 1, method);
}

TEST(textbook_takes_the_iterations_of_hestenes_and_stiefel) {
  on_machine(false);
  const auto a = grid2d(12, 11);
  const auto b = wave(a.n());
  const auto expected = reference::cg(a.view(), b, 1e-8, 1000);
  const auto s = solve(a, b, spec_of("single_gpu_textbook", 1), {}, solve_of(Method::cg, 1e-8));
  CHECK_EQ(s.result.iterations, expected.iterations);
  CHECK(true_residual(a, b, s.x) <= 1.01e-8);
}

TEST(several_gpus_solve_by_every_method_whatever_the_partition) {
  on_machine(false);
  for (const char* kind : kSeveral)
    for (const Method method : kMethods)
      for (int pes = 1; pes <= 4; ++pes) check_against_reference(kind, pes, method);
}

// Orders of execution

namespace {

// The x that a schedule gives; NaN where the solve fails.
std::vector<double> scheduled(const std::string& kind, Method method, unsigned seed,
                              bool ignore_waits) {
  host_gpu::configure({4, true, true, seed, ignore_waits});
  const auto a = irregular(40, 11);
  const auto b = wave(a.n());
  BaselineSolve how = solve_of(method);
  how.exact_iterations = 7;
  BaselineSpec spec = spec_of(kind, 3);
  if (ignore_waits) spec.wait_limit = 0.2;
  try {
    return solve(a, b, spec, random_partition(a.n(), 3, 9), how).x;
  } catch (const EngineError&) {
    return {std::nan("")};
  }
}

}  // namespace

TEST(any_order_that_streams_allow_gives_the_same_solution) {
  for (const char* kind : kSeveral)
    for (const Method method : kMethods) {
      const auto expected = scheduled(kind, method, 1, false);
      for (unsigned seed = 2; seed < 14; ++seed)
        CHECK(scheduled(kind, method, seed, false) == expected);
    }
}

TEST(schedules_find_streams_that_do_not_wait) {
  for (const char* kind : {"peer_copy", "nccl"})
    for (const Method method : kMethods) {
      const auto expected = scheduled(kind, method, 1, false);
      int wrong = 0;
      for (unsigned seed = 2; seed < 10; ++seed)
        wrong += scheduled(kind, method, seed, true) == expected ? 0 : 1;
      harness::check(wrong > 0, kind, static_cast<int>(method), "some schedule goes wrong", wrong);
    }
}
