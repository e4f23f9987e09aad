// How solves of the baselines end; variants; what is refused.
#include "baseline_rig.hpp"

using namespace baseline_rig;
using namespace cpufree;
using namespace testing_matrices;

// Ends

TEST(exactly_as_many_iterations_as_asked_for) {
  on_machine(true);
  const auto a = grid2d(9, 9);
  const auto b = wave(a.n());
  for (const char* kind :
       {"single_gpu", "peer_copy", "nccl", "nccl_graph", "graph_while", "nvshmem_on_stream"})
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
  for (const char* kind : kSeveral)
    for (const Method method : kMethods) {
      const auto s = solve(a, b, spec_of(kind, 2), part, solve_of(method));
      CHECK_EQ(s.result.reason, std::string("DIVERGED_INDEFINITE_MAT"));
      CHECK_EQ(s.result.iterations, std::int64_t{0});
    }
  b[3] = HUGE_VAL;
  CHECK_EQ(solve(a, b, spec_of("nccl", 2), part, solve_of(Method::prcg)).result.reason,
           std::string("DIVERGED_NANORINF"));
}

TEST(processes_of_a_baseline_end_alike_and_tell_the_time_of_the_slowest) {
  on_machine(true);
  const auto a = irregular(60, 8);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 4, 2);
  Processes<double> baseline(a.view(), part, {}, spec_of("nvshmem_on_stream", 4));
  for (const Method method : kMethods) {
    baseline.solve(b, {}, solve_of(method));
    for (const BaselineResult& result : baseline.results) {
      CHECK_EQ(result.iterations, baseline.results.front().iterations);
      CHECK_EQ(result.residual, baseline.results.front().residual);
      CHECK_EQ(result.seconds, baseline.results.front().seconds);
      CHECK(result.seconds > 0.0);
    }
  }
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
        const auto baseline = baseline_of<double>(a.view(), part, {}, spec_of(kind, 3));
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
    baseline_of<double>(a.view(), {}, {}, spec);
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
  spec = spec_of("nvshmem_on_stream", 2);
  spec.nvshmem_library = "missing";
  CHECK(says(refusal(spec), "NVSHMEM was not found"));
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
  for (const char* kind : {"peer_copy", "graph_while", "nvshmem_on_stream"})
    CHECK(says(refusal(spec_of(kind, 2)), "cannot address the memory of GPU"));
  CHECK_EQ(refusal(spec_of("nccl", 2)), std::string());
}

TEST(process_that_is_none_of_its_baseline_is_refused) {
  on_machine(false);
  const auto a = grid2d(4, 4);
  BaselineSpec spec = spec_of("nvshmem_on_stream", 2);
  spec.nvshmem_id = make_shmem_id("");
  spec.rank = 2;
  CHECK_THROWS(InvalidInput, make_baseline<double>(a.view(), {}, {}, spec));
  spec.rank = 0;
  spec.nvshmem_id = "0123";
  CHECK_THROWS(InvalidInput, make_baseline<double>(a.view(), {}, {}, spec));
}

TEST(solves_that_make_no_sense_are_refused_and_others_go_on) {
  on_machine(false);
  const auto a = grid2d(4, 4);
  const auto b = wave(16);
  const auto baseline = baseline_of<double>(a.view(), {}, {}, spec_of("single_gpu", 1));
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
  const auto textbook = baseline_of<double>(a.view(), {}, {}, spec_of("single_gpu_textbook", 1));
  CHECK_THROWS(Unsupported, textbook->solve(b, {}, solve_of(Method::prcg)));
  CHECK_EQ(baseline->solve(b, {}, solve_of(Method::cg)).reason, std::string("CONVERGED_RTOL"));
}

TEST(gpus_that_do_not_answer_end_in_an_error) {
  const auto a = grid2d(6, 6);
  const auto b = wave(36);
  for (const char* kind : kSeveral) {
    on_machine(true);
    BaselineSpec spec = spec_of(kind, 2);
    spec.wait_limit = 1.0;  // a machine may be busy
    const auto baseline = baseline_of<double>(a.view(), random_partition(36, 2, 1), {}, spec);
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
  CHECK_EQ(kinds.size(), std::size_t{7});
  for (const BaselineKind& kind : kinds) {
    const bool nccl = says(kind.name, "nccl");
    CHECK_EQ(kind.available, !nccl);
    CHECK_EQ(kind.why_not.empty(), !nccl);
  }
}
