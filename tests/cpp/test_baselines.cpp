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
      for (unsigned seed = 2; seed < 10; ++seed)
        CHECK(scheduled(kind, method, seed, false) == expected);
    }
}

TEST(schedules_find_streams_that_do_not_wait) {
  for (const char* kind : {"peer_copy", "nccl"})
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
  const auto baseline = make_baseline<double>(a.view(), {}, {}, spec);
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
  const auto baseline = make_baseline<double>(a.view(), part, backwards, spec_of("nccl", 2));
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
    const auto baseline = make_baseline<double>(a.view(), part, {}, spec_of(kind, 3));
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

// Ends

TEST(exactly_as_many_iterations_as_asked_for) {
  on_machine(true);
  const auto a = grid2d(9, 9);
  const auto b = wave(a.n());
  for (const char* kind : {"single_gpu", "peer_copy", "nccl", "nccl_graph", "graph_while"})
    for (const Method method : kMethods)
      for (const int count : {0, 1, 2, 7, 12}) {  // graphs hold 4: some are not filled
        BaselineSolve how = solve_of(method);
        how.exact_iterations = count;
        const int pes = std::string(kind) == "single_gpu" ? 1 : 3;
        const auto s = solve(a, b, spec_of(kind, pes), random_partition(a.n(), pes, 2), how);
        const auto expected = reference::cg(a.view(), b, 0.0, count);
        CHECK_EQ(s.result.iterations, std::int64_t{count});
        CHECK_EQ(s.result.reason, std::string("CONVERGED_ITS"));
        CHECK_NEAR(s.result.residual, expected.residual, 1e-9 * norm(b));
        CHECK(norm(reference::axpy(s.x, -1.0, expected.x)) <= 1e-9 * (1.0 + norm(expected.x)));
      }
}

TEST(maximum_of_iterations_ends_a_solve) {
  on_machine(true);
  const auto a = grid2d(20, 20);
  const auto b = wave(a.n());
  for (const char* kind : kSeveral)
    for (const Method method : kMethods) {
      BaselineSolve how = solve_of(method);
      how.max_iterations = 9;
      const auto s = solve(a, b, spec_of(kind, 2), random_partition(a.n(), 2, 2), how);
      CHECK_EQ(s.result.reason, std::string("DIVERGED_ITS"));
      CHECK_EQ(s.result.iterations, std::int64_t{9});
    }
}

TEST(iterations_beyond_the_last_change_nothing) {
  on_machine(true);
  const auto a = irregular(60, 8);
  const auto b = wave(a.n());
  for (const Method method : kMethods) {
    std::vector<std::vector<double>> x;
    for (const int lag : {1, 2, 5, 30}) {
      BaselineSpec spec = spec_of("nccl", 2);
      spec.lag = lag;
      x.push_back(solve(a, b, spec, random_partition(a.n(), 2, 2), solve_of(method)).x);
      CHECK(x.back() == x.front());
    }
  }
}

TEST(zero_right_hand_side_has_the_solution_zero) {
  on_machine(true);
  const auto a = grid2d(5, 5);
  const std::vector<double> b(25, 0.0);
  for (const char* kind : kSeveral)
    for (const Method method : kMethods) {
      const auto s = solve(a, b, spec_of(kind, 2), random_partition(25, 2, 2), solve_of(method));
      CHECK_EQ(s.result.reason, std::string("CONVERGED_ATOL"));
      CHECK_EQ(s.result.iterations, std::int64_t{0});
      CHECK(s.x == b);
    }
}

TEST(solve_that_ends_exactly_stays_where_it_is) {
  on_machine(true);
  Entries e;
  for (int i = 0; i < 20; ++i) e[{i, i}] = 2.0;  // one step to a residual of 0
  const auto a = from_entries<double>(20, e);
  const auto b = wave(20);
  for (const char* kind : kSeveral)
    for (const Method method : kMethods) {
      BaselineSolve how = solve_of(method);
      how.exact_iterations = 6;
      const auto s = solve(a, b, spec_of(kind, 2), random_partition(20, 2, 2), how);
      for (std::size_t i = 0; i < b.size(); ++i) CHECK_NEAR(s.x[i], b[i] / 2.0, 1e-15);
    }
}

TEST(indefinite_matrix_and_infinite_data_have_their_names) {
  on_machine(true);
  auto a = grid2d(6, 6);
  for (auto& v : a.val) v = -v;
  auto b = wave(a.n());
  const auto part = random_partition(a.n(), 2, 2);
  for (const char* kind : {"peer_copy", "nccl", "nccl_graph", "graph_while"})
    for (const Method method : kMethods) {
      const auto s = solve(a, b, spec_of(kind, 2), part, solve_of(method));
      CHECK_EQ(s.result.reason, std::string("DIVERGED_INDEFINITE_MAT"));
      CHECK_EQ(s.result.iterations, std::int64_t{0});
    }
  b[3] = HUGE_VAL;
  CHECK_EQ(solve(a, b, spec_of("nccl", 2), part, solve_of(Method::prcg)).result.reason,
           std::string("DIVERGED_NANORINF"));
}

// Variants

TEST(variants_launch_less_than_the_whole) {
  const auto a = grid2d(12, 12);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 3, 2);
  for (const char* kind : kSeveral)
    for (const Method method : kMethods) {
      std::size_t work[3] = {};
      int k = 0;
      for (const char* variant : {"full", "no-compute", "no-comm"}) {
        on_machine(false);
        const auto baseline = make_baseline<double>(a.view(), part, {}, spec_of(kind, 3));
        BaselineSolve how = solve_of(method);
        how.variant = variant;
        how.exact_iterations = 6;
        baseline->solve(b, {}, how);
        const std::size_t before = host_gpu::executed();
        const auto result = baseline->solve(b, {}, how);
        work[k++] = host_gpu::executed() - before;
        CHECK_EQ(result.iterations, std::int64_t{6});
        CHECK_EQ(result.reason, std::string("CONVERGED_ITS"));
      }
      CHECK(work[1] < work[0]);
      CHECK(work[2] < work[0]);
    }
}

TEST(without_communication_each_gpu_solves_its_own_block) {
  on_machine(true);
  const auto a = grid2d(6, 6);
  const auto b = wave(a.n());
  const Part part = [&] {
    Part halves(b.size(), 0);
    for (std::size_t i = 18; i < 36; ++i) halves[i] = 1;
    return halves;
  }();
  Entries block;  // what couples the halves is left out
  for (std::size_t i = 0; i < b.size(); ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]);
         k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k) {
      const auto j = static_cast<std::size_t>(a.col[k]);
      if ((i < 18) == (j < 18))
        block[{static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)}] = a.val[k];
    }
  const auto expected = reference::cg(from_entries<double>(36, block).view(), b, 1e-13, 100);
  for (const char* kind : kSeveral)
    for (const Method method : {Method::cg, Method::prcg}) {
      BaselineSolve how = solve_of(method);
      how.variant = "no-comm";
      how.exact_iterations = 40;
      const auto s = solve(a, b, spec_of(kind, 2), part, how);
      CHECK(norm(reference::axpy(s.x, -1.0, expected.x)) <= 1e-9 * norm(expected.x));
    }
}

// Errors

namespace {

std::string refusal(const BaselineSpec& spec) {
  const auto a = grid2d(4, 4);
  try {
    make_baseline<double>(a.view(), {}, {}, spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(what_cannot_be_is_refused_with_the_reason) {
  on_machine(false);
  CHECK(says(refusal(spec_of("magic", 1)), "choose one of: single_gpu, single_gpu_textbook"));
  CHECK(says(refusal(spec_of("single_gpu", 2)), "runs on one GPU; pes is 2"));
  CHECK(says(refusal(spec_of("nccl", 5)), "GPU 4 was asked for, but there are 4"));
  BaselineSpec spec = spec_of("nccl", 2);
  spec.gpus = {1, 1};
  CHECK(says(refusal(spec), "GPU 1 is named twice"));
  spec.gpus = {0};
  CHECK(says(refusal(spec), "1 GPUs were named for 2 PEs"));
  spec.gpus = {0, 9};
  CHECK(says(refusal(spec), "GPU 9 was asked for"));
  spec = spec_of("nccl", 2);
  spec.nccl_library = "missing";
  CHECK(says(refusal(spec), "NCCL was not found"));
  spec = spec_of("nccl_graph", 2);
  spec.unroll = 3;
  CHECK(says(refusal(spec), "unroll must be an even number"));
  spec = spec_of("nccl", 2);
  spec.spmv = "fast";
  CHECK(says(refusal(spec), "choose one of: auto, warp_slices"));
  spec = spec_of("nccl", 2);
  spec.preconditioner = Preconditioner::chebyshev;
  CHECK(says(refusal(spec), "not chebyshev"));
}

TEST(gpus_that_do_not_reach_one_another_are_refused) {
  on_machine(false, 1, false);
  for (const char* kind : {"peer_copy", "graph_while"})
    CHECK(says(refusal(spec_of(kind, 2)), "cannot address the memory of GPU 1"));
  CHECK_EQ(refusal(spec_of("nccl", 2)), std::string());
}

TEST(solves_that_make_no_sense_are_refused_and_others_go_on) {
  on_machine(false);
  const auto a = grid2d(4, 4);
  const auto b = wave(16);
  const auto baseline = make_baseline<double>(a.view(), {}, {}, spec_of("single_gpu", 1));
  BaselineSolve how = solve_of(Method::cg);
  how.variant = "no-compute";
  how.exact_iterations = 3;
  CHECK_THROWS(Unsupported, baseline->solve(b, {}, how));
  how.variant = "half";
  CHECK_THROWS(InvalidInput, baseline->solve(b, {}, how));
  how.variant = "no-comm";
  how.exact_iterations = -1;
  CHECK_THROWS(InvalidInput, baseline->solve(b, {}, how));
  CHECK_THROWS(InvalidInput, baseline->solve(std::span(b).first(3), {}, solve_of(Method::cg)));
  const auto textbook = make_baseline<double>(a.view(), {}, {}, spec_of("single_gpu_textbook", 1));
  CHECK_THROWS(Unsupported, textbook->solve(b, {}, solve_of(Method::prcg)));
  CHECK_EQ(baseline->solve(b, {}, solve_of(Method::cg)).reason, std::string("CONVERGED_RTOL"));
}

TEST(gpus_that_do_not_answer_end_in_an_error) {
  const auto a = grid2d(6, 6);
  const auto b = wave(36);
  for (const char* kind : kSeveral) {
    on_machine(true);
    BaselineSpec spec = spec_of(kind, 2);
    spec.wait_limit = 0.05;
    const auto baseline = make_baseline<double>(a.view(), random_partition(36, 2, 1), {}, spec);
    baseline->solve(b, {}, solve_of(Method::cg));
    host_gpu::stop_device(1, 60);  // in the middle of the next solve
    CHECK_THROWS(EngineError, baseline->solve(b, {}, solve_of(Method::cg)));
    CHECK_THROWS(EngineError, baseline->solve(b, {}, solve_of(Method::cg)));
  }
  on_machine(false);
}

TEST(kinds_are_listed_with_what_they_lack) {
  on_machine(false);
  const auto kinds = baseline_kinds("missing");
  CHECK_EQ(kinds.size(), std::size_t{6});
  for (const BaselineKind& kind : kinds) {
    const bool nccl = says(kind.name, "nccl");
    CHECK_EQ(kind.available, !nccl);
    CHECK_EQ(kind.why_not.empty(), !nccl);
  }
}
