// The host-driven baselines on a stand-in for GPUs, against the serial reference: their logic, and
// that their streams and events allow no wrong order.
#include "baseline_rig.hpp"

using namespace baseline_rig;
using namespace cpufree;
using namespace testing_matrices;

namespace {

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
      for (unsigned seed = 2; seed < 10; ++seed)
        CHECK(scheduled(kind, method, seed, false) == expected);
    }
}

TEST(schedules_find_streams_that_do_not_wait) {
  for (const char* kind : {"peer_copy", "nccl", "nvshmem_on_stream"})
    for (const Method method : kMethods) {
      const auto expected = scheduled(kind, method, 1, false);
      int wrong = 0;
      for (unsigned seed = 2; seed < 8; ++seed)
        wrong += scheduled(kind, method, seed, true) == expected ? 0 : 1;
      harness::check(wrong > 0, kind, static_cast<int>(method), "some schedule goes wrong", wrong);
    }
}

// Numbers and preconditioners

TEST(single_precision_solves_on_every_kind) {
  on_machine(false);
  const auto a = grid2d<float>(12, 12, 0.1);
  const auto b = wave<float>(a.n());
  for (const char* kind : kSeveral)
    for (const Method method : kMethods) {
      const auto s =
          solve(a, b, spec_of(kind, 3), random_partition(a.n(), 3, 4), solve_of(method, 1e-4));
      CHECK_EQ(s.result.reason, std::string("CONVERGED_RTOL"));
      CHECK(true_residual(a, b, s.x) <= 1.2e-4);
    }
}

TEST(jacobi_is_left_out_on_request) {
  on_machine(false);
  const auto a = irregular(90, 3);  // its diagonal varies
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 3, 4);
  for (const char* kind : kSeveral) {
    BaselineSpec spec = spec_of(kind, 3);
    const auto with = solve(a, b, spec, part, solve_of(Method::cg));
    spec.preconditioner = Preconditioner::none;
    const auto without = solve(a, b, spec, part, solve_of(Method::cg));
    CHECK(true_residual(a, b, without.x) <= 1.01e-9);
    CHECK(without.result.iterations > with.result.iterations);
  }
}

TEST(every_product_gives_the_same_solution) {
  on_machine(true);
  const auto a = irregular(90, 3);
  const auto b = wave(a.n());
  for (const char* name : {"auto", "warp_slices", "vendor_default", "vendor_alg1", "vendor_alg2"})
    for (const Method method : kMethods) {
      BaselineSpec spec = spec_of("peer_copy", 4);
      spec.spmv = name;
      for (const Part& part : awkward_parts(a.n(), 4))
        CHECK(true_residual(a, b, solve(a, b, spec, part, solve_of(method)).x) <= 1.01e-9);
    }
}

TEST(set_up_says_which_product_was_fastest) {
  on_machine(false);
  const auto a = grid2d(8, 8);
  BaselineSpec spec = spec_of("single_gpu", 1);
  spec.spmv = "auto";
  const auto baseline = baseline_of<double>(a.view(), {}, {}, spec);
  CHECK_EQ(baseline->facts().spmv_seconds.size(), std::size_t{4});
  CHECK_EQ(baseline->facts().spmv, std::string("warp_slices"));  // all take as long here: the first
}

TEST(rows_come_back_in_their_order) {
  on_machine(false);
  const auto a = irregular(60, 8);
  const auto b = wave(a.n());
  std::vector<std::int32_t> backwards(b.size());
  for (std::size_t i = 0; i < b.size(); ++i) backwards[i] = a.n() - 1 - static_cast<int>(i);
  const auto part = random_partition(a.n(), 2, 4);
  const auto baseline = baseline_of<double>(a.view(), part, backwards, spec_of("nccl", 2));
  std::vector<double> x(b.size());
  baseline->solve(b, x, solve_of(Method::prcg));
  CHECK(true_residual(a, b, x) <= 1.01e-9);
}

TEST(one_baseline_solves_again_and_again) {
  on_machine(true);
  const auto a = irregular(60, 8);
  const auto b = wave(a.n());
  for (const char* kind : kSeveral) {
    const auto part = random_partition(a.n(), 3, 4);
    const auto baseline = baseline_of<double>(a.view(), part, {}, spec_of(kind, 3));
    for (const Method method : {Method::cg, Method::pipecg, Method::prcg, Method::cg}) {
      std::vector<double> x(b.size()), again(b.size());
      const auto first = baseline->solve(b, x, solve_of(method));
      const auto second = baseline->solve(b, again, solve_of(method));
      CHECK(x == again);
      CHECK_EQ(first.iterations, second.iterations);
      CHECK(true_residual(a, b, x) <= 1.01e-9);
    }
  }
}
