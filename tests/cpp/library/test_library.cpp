// The interface of libcpufree, through the class of solver.hpp and through C.
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cpufree/library/structs.hpp"
#include "cpufree/solver.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace testing_matrices;

namespace {

using cpufree::Csr;
using cpufree::InvalidInput;
using cpufree::Setup;
using cpufree::Solver;

template <class M>
auto csr_of(const M& a) {
  return Csr<typename decltype(a.val)::value_type>{a.row_ptr, a.col, a.val};
}

bool says(const std::string& text) {
  if (std::string(cpufree_error()).find(text) != std::string::npos) return true;
  std::cerr << cpufree_error() << std::endl;
  return false;
}

std::int32_t create(const cpufree_matrix& matrix, const cpufree_setup* setup = nullptr) {
  cpufree_solver* solver = nullptr;
  const std::int32_t status = cpufree_create(&matrix, setup, &solver);
  CHECK_EQ(solver != nullptr, status == CPUFREE_OK);
  cpufree_destroy(solver);
  return status;
}

template <class M>
cpufree_matrix c_matrix(const M& a) {
  cpufree_matrix matrix;
  cpufree_matrix_init(&matrix, sizeof matrix);
  matrix.rows = a.n();
  matrix.nonzeros = static_cast<std::int64_t>(a.col.size());
  matrix.row_ptr = a.row_ptr.data();
  matrix.col = a.col.data();
  matrix.val = a.val.data();
  return matrix;
}

}  // namespace

TEST(the_answer_is_that_of_the_system_behind_it) {
  const auto a = irregular(300, 6);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 3, 2);
  cpufree::SystemSpec system;
  system.pes = 3;
  system.blocks = 2;
  cpufree::SolveSpec spec;
  spec.rtol = 1e-10;
  spec.maxiter = 10 * a.n();
  spec.method = cpufree::Method::pipecg;
  const auto expected =
      cpufree::make_system<double>(a.view(), part, {}, system)->solve(b, {}, spec, {});
  Solver solver(csr_of(a), {.pes = 3, .blocks = 2, .method = CPUFREE_PIPECG, .part = part});
  std::vector<double> x(b.size());
  const auto result = solver.solve(b, x, {.rtol = 1e-10});
  CHECK(result && expected.outcome.iterations == result.iterations);
  CHECK(x == expected.x);
  CHECK(solver.history().first == expected.history);
  CHECK(solver.report().find("CONVERGED_RTOL") != std::string::npos);
}

TEST(all_preconditioners_are_reached) {
  const auto a = grid2d(20, 15, 0.5);
  const auto b = wave(a.n());
  for (const std::int32_t pc :
       {CPUFREE_NONE, CPUFREE_JACOBI, CPUFREE_CHEBYSHEV, CPUFREE_FSAI, CPUFREE_AMG}) {
    Solver solver(csr_of(a), {.pes = 2, .blocks = 1, .preconditioner = pc});
    std::vector<double> x(b.size());
    const auto result = solver.solve(b, x, {.rtol = 1e-9});
    CHECK_EQ(result.reason, std::int32_t{CPUFREE_CONVERGED_RTOL});
    CHECK_EQ(solver.layout().levels > 0, pc == CPUFREE_AMG);
  }
}

TEST(updates_have_the_bits_of_a_new_solver) {
  auto a = grid2d(20, 15, 0.5);
  const auto b = wave(a.n());
  for (const std::int32_t pc : {CPUFREE_JACOBI, CPUFREE_FSAI, CPUFREE_AMG})
    for (const std::int32_t aggregates : {CPUFREE_KEEP_AGGREGATES, CPUFREE_NEW_AGGREGATES}) {
      const Setup setup{.pes = 2, .blocks = 1, .preconditioner = pc};
      Solver old(csr_of(a), setup);
      for (double& value : a.val) value *= 3.0;
      old.update(csr_of(a), aggregates);
      std::vector<double> x(b.size()), y(b.size());
      CHECK(old.solve(b, x) && Solver(csr_of(a), setup).solve(b, y));
      CHECK(x == y);
      CHECK_EQ(old.layout().updates, std::int64_t{1});
    }
}

TEST(updates_refuse_another_pattern_and_keep_the_old_values) {
  const auto a = grid2d(6, 5, 0.5);
  const auto other = irregular(30, 4);
  const auto b = wave(a.n());
  Solver solver(csr_of(a), {.blocks = 1});
  std::vector<double> x(b.size()), y(b.size());
  CHECK(solver.solve(b, x));
  CHECK_THROWS(InvalidInput, solver.update(csr_of(other)));
  auto bad = a;
  bad.val[3] = std::nan("");
  try {
    solver.update(csr_of(bad));
  } catch (const cpufree::BadEntry& entry) {
    CHECK(entry.kind() == cpufree::BadEntry::Kind::not_finite && entry.row() >= 0);
  }
  CHECK(solver.solve(b, y));
  CHECK(x == y);
}

TEST(matrices_at_an_end_of_the_range_are_solved) {
  for (const double scale : {0x1p-900, 0x1p900}) {
    auto a = grid2d(8, 9, 0.5);
    const auto b = wave(a.n());
    std::vector<double> x(b.size()), y(b.size());
    CHECK(Solver(csr_of(a), {.blocks = 1}).solve(b, x));
    for (double& value : a.val) value *= scale;
    Solver solver(csr_of(a), {.blocks = 1});
    CHECK(solver.solve(b, y));
    for (std::size_t k = 0; k < x.size(); ++k) CHECK_NEAR(y[k] * scale, x[k], 1e-14);
    std::vector<double> again(b.size());
    CHECK_EQ(solver.solve(b, again, {}, y).iterations, std::int64_t{0});
  }
}

TEST(threads_with_a_solver_each_do_not_disturb_one_another) {
  const auto a = grid2d(20, 15, 0.5);
  const auto b = wave(a.n());
  std::vector<double> expected(b.size());
  CHECK(Solver(csr_of(a), {.pes = 2, .blocks = 1}).solve(b, expected));
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&] {
      Solver solver(csr_of(a), {.pes = 2, .blocks = 1});
      std::vector<double> x(b.size());
      for (int step = 0; step < 3; ++step) {
        solver.update(csr_of(a));
        if (solver.solve(b, x) && x == expected) ++good;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(good.load(), 24);
}

TEST(a_call_that_meets_another_one_of_the_same_solver_is_refused) {
  const auto a = grid2d(300, 200);  // takes long enough for a call of progress
  const auto b = wave(a.n());
  Solver solver(csr_of(a), {.blocks = 1});
  std::vector<double> x(b.size());
  const auto is_refused = [&] {
    try {
      solver.update(csr_of(a));
    } catch (const cpufree::SolverBusy&) {
      return true;
    }
    return false;
  };
  bool another_thread = false, own_thread = false;
  const auto tell = [&](std::int64_t, double) {  // once or more often, until the kernel has ended
    std::thread([&] { another_thread = is_refused(); }).join();
    own_thread = is_refused();
    return false;
  };
  const auto result = solver.solve(b, x, {.rtol = 0.0, .maxiter = 1'000'000, .progress = tell});
  CHECK(another_thread && own_thread);
  // On a busy machine the kernel may end by itself, stagnated, before it sees what progress says.
  CHECK(result.reason == CPUFREE_INTERRUPTED || result.reason == CPUFREE_STAGNATED);
}

TEST(what_progress_throws_is_thrown) {
  const auto a = grid2d(300, 200);
  const auto b = wave(a.n());
  Solver solver(csr_of(a), {.blocks = 1});
  std::vector<double> x(b.size());
  const auto tell = [](std::int64_t, double) -> bool { throw std::out_of_range("mine"); };
  CHECK_THROWS(std::out_of_range,
               solver.solve(b, x, {.rtol = 0.0, .maxiter = 1'000'000, .progress = tell}));
  CHECK(solver.solve(b, x));
}

TEST(matrices_that_cannot_be_solved_are_refused_with_a_reason) {
  const auto a = grid2d(6, 5, 0.5);
  const auto with = [&](auto&& change) {
    auto changed = a;
    change(changed);
    return create(c_matrix(changed));
  };
  std::int64_t row = 0, column = 0;
  CHECK_EQ(with([](auto& m) { m.val[1] = std::nan(""); }), std::int32_t{CPUFREE_NOT_FINITE});
  CHECK(says("all entries must be finite"));
  cpufree_error_entry(&row, &column);
  CHECK(row == 0 && column == 1);
  CHECK_EQ(with([](auto& m) { m.val[1] *= 2.0; }), std::int32_t{CPUFREE_NOT_SYMMETRIC});
  CHECK(says("not symmetric"));
  CHECK_EQ(with([](auto& m) { m.val[0] = -1.0; }), std::int32_t{CPUFREE_BAD_DIAGONAL});
  CHECK(says("positive diagonal"));
  CHECK_EQ(with([](auto& m) { std::swap(m.col[0], m.col[1]); }),
           std::int32_t{CPUFREE_INVALID_INPUT});
  CHECK(says("must increase strictly"));
  cpufree_error_entry(&row, &column);
  CHECK(row == -1 && column == -1);
  CHECK_EQ(with([](auto& m) { m.col.back() = 4000; }), std::int32_t{CPUFREE_INVALID_INPUT});
  CHECK(says("columns run from 0"));
  CHECK_EQ(with([](auto& m) { m.row_ptr[2] = m.row_ptr[1] - 1; }),
           std::int32_t{CPUFREE_INVALID_INPUT});
  CHECK(says("row_ptr must rise"));
}

TEST(without_a_check_of_values_the_pattern_is_looked_at) {
  auto a = grid2d(6, 5, 0.5);
  cpufree_setup setup;
  cpufree_setup_init(&setup, sizeof setup);
  setup.check = 0;
  a.val[0] = -1.0;
  CHECK_EQ(create(c_matrix(a), &setup), std::int32_t{CPUFREE_OK});
  a.col[1] = 3;  // (0, 3) has no (3, 0)
  CHECK_EQ(create(c_matrix(a), &setup), std::int32_t{CPUFREE_NOT_SYMMETRIC});
  CHECK(says("pattern of the matrix is not symmetric"));
}

TEST(set_ups_and_options_that_are_out_of_range_are_refused) {
  const auto a = grid2d(6, 5, 0.5);
  const auto with = [&](auto&& change) {
    cpufree_setup setup;
    cpufree_setup_init(&setup, sizeof setup);
    change(setup);
    return create(c_matrix(a), &setup) == CPUFREE_INVALID_INPUT;
  };
  CHECK(with([](cpufree_setup& s) { s.engine = 7; }) && says("engine is 7"));
  CHECK(with([](cpufree_setup& s) { s.pes = 0; }) && says("pes must lie between"));
  CHECK(with([](cpufree_setup& s) { s.gpus = -1; }));
  CHECK(with([](cpufree_setup& s) { s.gpus = 1; }) && says("gpu is missing"));
  CHECK(with([](cpufree_setup& s) { s.modes = 1; }) && says("CPUFREE_AMG"));
  CHECK(with([](cpufree_setup& s) { s.numbers = 1; }) && says("a name and a value"));
  CHECK(with([](cpufree_setup& s) { s.size += 8; }) && says("size of cpufree_setup"));
  CHECK(with([](cpufree_setup& s) { s.size = 0; }) && says("call its _init function"));
  CHECK(with([](cpufree_setup& s) {
    s.method = CPUFREE_PRCG;
    s.preconditioner = CPUFREE_AMG;
  }));
  const std::vector<std::int32_t> part(static_cast<std::size_t>(a.n()), 3);
  CHECK(with([&](cpufree_setup& s) { s.part = part.data(); }) && says("row 0"));
  Solver solver(csr_of(a), {.blocks = 1});
  std::vector<double> x(static_cast<std::size_t>(a.n())), few(3);
  CHECK_THROWS(InvalidInput, solver.solve(few, x));
  CHECK_THROWS(InvalidInput, solver.solve(x, x, {.rtol = -1.0}));
  CHECK_THROWS(InvalidInput, solver.solve(x, x, {.wait_limit = 0.0}));
  CHECK_THROWS(InvalidInput, solver.solve(x, x, {.preconditioner = CPUFREE_FSAI}));
  CHECK_THROWS(InvalidInput, solver.solve(x, x, {.device = -2}));
  CHECK_THROWS(cpufree::Unsupported, solver.solve(x, x, {.device = 0}));
  CHECK_EQ(cpufree_solve(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
           std::int32_t{CPUFREE_INVALID_INPUT});
  CHECK_EQ(cpufree_create(nullptr, nullptr, nullptr), std::int32_t{CPUFREE_INVALID_INPUT});
}

TEST(rows_of_a_node_stay_together) {
  const auto a = grid2d(20, 15, 0.5);
  const auto n = static_cast<std::size_t>(a.n());
  std::vector<double> constant(n, 1.0);
  std::vector<std::int32_t> node(n), part(n);
  for (std::size_t i = 0; i < n; ++i)
    node[i] = static_cast<std::int32_t>(i / 2), part[i] = i % 2 == 0;
  Solver solver(csr_of(a), {.pes = 2,
                            .blocks = 1,
                            .preconditioner = CPUFREE_AMG,
                            .part = part,
                            .near_nullspace = constant,
                            .node = node});
  std::vector<double> b = wave(a.n()), x(n);
  CHECK(solver.solve(b, x, {.rtol = 1e-8}));
  CHECK_EQ(solver.layout().halo_values, std::int64_t{0});  // PE 1 has all first rows, hence all
  const std::vector<double> lost(n, std::nan(""));
  CHECK_THROWS(InvalidInput,
               Solver(csr_of(a), {.preconditioner = CPUFREE_AMG, .near_nullspace = lost}));
  std::vector<std::int32_t> wrong(n, -1);
  CHECK_THROWS(InvalidInput,
               Solver(csr_of(a),
                      {.preconditioner = CPUFREE_AMG, .near_nullspace = constant, .node = wrong}));
}

TEST(programs_of_an_older_version_have_shorter_structs) {
  cpufree_result result;
  std::memset(&result, 0x55, sizeof result);
  const std::size_t known = offsetof(cpufree_result, residual);
  cpufree_result_init(&result, known);
  CHECK_EQ(result.size, known);
  const auto a = grid2d(6, 5, 0.5);
  const auto b = wave(a.n());
  std::vector<double> x(b.size());
  const cpufree_matrix matrix = c_matrix(a);
  cpufree_solver* solver = nullptr;
  CHECK_EQ(cpufree_create(&matrix, nullptr, &solver), std::int32_t{CPUFREE_OK});
  CHECK_EQ(cpufree_solve(solver, b.data(), nullptr, x.data(), nullptr, &result),
           std::int32_t{CPUFREE_OK});
  CHECK(result.converged == 1 && result.iterations > 0);
  std::array<unsigned char, sizeof(double)> untouched{};
  std::memcpy(untouched.data(), &result.residual, sizeof(double));
  for (const unsigned char byte : untouched) CHECK_EQ(int{byte}, 0x55);
  cpufree_destroy(solver);
}

TEST(single_precision_is_solved_in_its_own_type) {
  const auto a = grid2d<float>(20, 15, 0.5);
  const auto b = wave<float>(a.n());
  cpufree::SingleSolver solver(csr_of(a), {.blocks = 1});
  std::vector<float> x(b.size());
  CHECK(solver.solve(b, x, {.rtol = 1e-4}));
  CHECK_EQ(solver.layout().type, std::int32_t{CPUFREE_FLOAT32});
  const auto other = grid2d(20, 15, 0.5);
  cpufree_solver* handle = nullptr;
  const cpufree_matrix matrix = c_matrix(other);
  CHECK_EQ(cpufree_create(&matrix, nullptr, &handle), std::int32_t{CPUFREE_OK});
  cpufree_matrix singles = c_matrix(a);
  singles.type = CPUFREE_FLOAT32;
  CHECK_EQ(cpufree_update(handle, &singles, CPUFREE_KEEP_AGGREGATES),
           std::int32_t{CPUFREE_INVALID_INPUT});
  CHECK(says("another type"));
  cpufree_destroy(handle);
}
