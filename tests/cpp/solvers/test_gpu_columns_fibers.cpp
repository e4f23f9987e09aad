// Several right-hand sides together by the engine for GPUs, here on fibers of the host (host_gpu):
// the layouts and protocols of GPUs, and the way of vectors there and back.
#include <cmath>
#include <type_traits>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

SystemSpec spec_for(int pes, int halo) {
  SystemSpec spec;
  spec.engine = Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = 2;
  spec.threads = 32;
  spec.halo = halo;
  return spec;
}

// Columns differ in scale and direction; the second is 0.
template <class T>
std::vector<std::vector<T>> right_hand_sides(std::int32_t n, int columns) {
  std::vector<std::vector<T>> all(at(columns), wave<T>(n));
  for (std::size_t k = 0; k < all.size(); ++k)
    for (std::size_t i = 0; i < all[k].size(); ++i)
      all[k][i] = k == 1 ? T{0}
                         : static_cast<T>(all[k][i] * std::cos(0.3 * static_cast<double>(k * i)) *
                                          std::pow(1e9, static_cast<double>(k % 3)));
  return all;
}

// Largest distance of an entry of x from that of a solve by itself, relative to the largest entry.
template <class T>
double check_columns(const Matrix<T>& a, int columns, Preconditioner pc, const SystemSpec& where) {
  const auto part = random_partition(a.n(), where.pes, 3);
  const auto system = make_system<T>(a.view(), part, {}, where);
  SolveSpec spec;
  spec.method = Method::cg;
  spec.preconditioner = pc;
  spec.rtol = 0.0;
  spec.maxiter = 4;
  const auto b = right_hand_sides<T>(a.n(), columns);
  std::vector<std::vector<T>> x(b.size(), std::vector<T>(b[0].size()));
  ColumnViews<T> views;
  for (std::size_t k = 0; k < b.size(); ++k) {
    views.b.push_back({b[k].data(), b[k].size()});
    views.out.push_back({x[k].data(), x[k].size()});
  }
  const auto results = system->solve_columns(views, spec, {});
  double worst = 0.0;
  for (std::size_t k = 0; k < b.size(); ++k) {
    const auto alone = system->solve(b[k], {}, spec, {});
    CHECK_EQ(results[k].outcome.iterations, alone.outcome.iterations);
    CHECK_EQ(results[k].outcome.reason, alone.outcome.reason);
    CHECK(k == 1 || alone.outcome.iterations == 4);
    double largest = 1e-300, distance = 0.0;
    for (std::size_t i = 0; i < x[k].size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(alone.x[i])));
      distance = std::max(distance, std::abs(static_cast<double>(x[k][i] - alone.x[i])));
    }
    worst = std::max(worst, distance / largest);
  }
  return worst;
}

// Solutions by block CG, and how each column ended.
template <class T>
std::vector<std::vector<T>> solve_block(System<T>& system, const std::vector<std::vector<T>>& b,
                                        Preconditioner pc, std::vector<SolveResult>& results) {
  SolveSpec spec;
  spec.method = Method::block_cg;
  spec.preconditioner = pc;
  spec.rtol = 1e-10;
  spec.maxiter = 500;
  std::vector<std::vector<T>> x(b.size(), std::vector<T>(b[0].size()));
  ColumnViews<T> views;
  for (std::size_t k = 0; k < b.size(); ++k) {
    views.b.push_back({b[k].data(), b[k].size()});
    views.out.push_back({x[k].data(), x[k].size()});
  }
  results = system.solve_columns(views, spec, {});
  return x;
}

// Largest distance of an entry of x from that of CPU threads, relative to the largest entry.
template <class T>
double check_block(const Matrix<T>& a, int columns, Preconditioner pc, const SystemSpec& where) {
  const auto b = right_hand_sides<T>(a.n(), columns);
  SystemSpec host;
  host.pes = 2;
  std::vector<SolveResult> here, there;
  const auto on_gpus = make_system<T>(a.view(), random_partition(a.n(), where.pes, 3), {}, where);
  const auto on_cpu = make_system<T>(a.view(), random_partition(a.n(), 2, 3), {}, host);
  const auto x = solve_block<T>(*on_gpus, b, pc, here), y = solve_block<T>(*on_cpu, b, pc, there);
  double worst = 0.0;
  for (std::size_t k = 0; k < b.size(); ++k) {
    CHECK_EQ(here[k].outcome.reason, k == 1 ? Reason::converged_atol : Reason::converged_rtol);
    CHECK(std::abs(here[k].outcome.iterations - there[k].outcome.iterations) <= 1);
    double largest = 1e-300, distance = 0.0;
    for (std::size_t i = 0; i < x[k].size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(y[k][i])));
      distance = std::max(distance, std::abs(static_cast<double>(x[k][i] - y[k][i])));
    }
    worst = std::max(worst, distance / largest);
  }
  return worst;
}

}  // namespace

TEST(columns_on_gpus_are_those_of_single_solves_for_all_halos) {
  const auto a = irregular(90, 6);
  for (const int pes : {1, 2})
    for (const int halo : {0, 1, 2}) {
      CHECK(check_columns(a, 4, Preconditioner::jacobi, spec_for(pes, halo)) < 1e-12);
      CHECK(check_columns(a, 2, Preconditioner::none, spec_for(pes, halo)) < 1e-12);
    }
}

TEST(eight_columns_on_three_gpus_are_those_of_single_solves) {
  const auto a = grid2d(11, 7, 0.3);
  CHECK(check_columns(a, 8, Preconditioner::jacobi, spec_for(3, 1)) < 1e-12);
  CHECK(check_columns(a, 8, Preconditioner::none, spec_for(3, 2)) < 1e-12);
}

TEST(columns_in_single_precision_are_those_of_single_solves) {
  const auto a = grid2d<float>(11, 7, 0.3);
  for (const int columns : {2, 4, 8})
    CHECK(check_columns(a, columns, Preconditioner::jacobi, spec_for(2, 0)) < 1e-4);
}

TEST(columns_of_matrices_whose_columns_come_in_runs_are_those_of_single_solves) {
  auto a = three_a_node(5, 4);
  for (std::int32_t i = 0; i < a.n(); ++i)  // positive definite
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k)
      if (a.col[at(k)] == i) a.val[at(k)] += 100.0;
  CHECK(check_columns(a, 4, Preconditioner::jacobi, spec_for(1, 0)) < 1e-12);
  SystemSpec plain = spec_for(2, 0);
  plain.compress = 0;
  CHECK(check_columns(a, 8, Preconditioner::jacobi, plain) < 1e-12);
}

TEST(columns_of_rows_that_lanes_share_are_those_of_single_solves) {
  SystemSpec spec = spec_for(1, 0);
  spec.lanes_log2 = 2;
  CHECK(check_columns(irregular(90, 6), 4, Preconditioner::jacobi, spec) < 1e-12);
}

// Blocks on GPUs: what columns get, against the same on CPU threads, which sum in other orders.
TEST(blocks_on_gpus_are_those_of_cpu_threads) {
  const auto a = irregular(90, 6);
  for (const int columns : {2, 4, 8})
    for (const int halo : {0, 1, 2}) {
      CHECK(check_block(a, columns, Preconditioner::jacobi, spec_for(2, halo)) < 1e-9);
      CHECK(check_block(a, columns, Preconditioner::none, spec_for(1, halo)) < 1e-9);
    }
}

TEST(blocks_of_eight_on_three_gpus_are_those_of_cpu_threads) {
  CHECK(check_block(grid2d(11, 7, 0.3), 8, Preconditioner::jacobi, spec_for(3, 1)) < 1e-9);
}

TEST(pes_that_share_gpus_solve_as_those_that_have_their_own) {
  const auto a = irregular(90, 6);
  const auto part = random_partition(a.n(), 4, 3);
  const auto b = wave<double>(a.n());
  SolveSpec spec;
  spec.rtol = 0.0;
  spec.maxiter = 5;
  std::vector<std::vector<double>> found;
  for (const std::vector<int>& gpus : {std::vector<int>{0, 1, 2, 3}, {0, 0, 1, 1}}) {
    SystemSpec where = spec_for(4, 1);
    where.blocks = 1;  // GPUs have two multiprocessors
    where.gpus = gpus;
    found.push_back(make_system<double>(a.view(), part, {}, where)->solve(b, {}, spec, {}).x);
  }
  CHECK(found[0] == found[1]);
}

TEST(pes_whose_blocks_have_no_room_together_are_refused) {
  const auto a = irregular(90, 6);
  SystemSpec where = spec_for(4, 1);  // two blocks each
  where.gpus = {0, 0, 1, 1};
  std::string why;
  try {
    static_cast<void>(make_system<double>(a.view(), random_partition(a.n(), 4, 3), {}, where));
  } catch (const InvalidInput& error) {
    why = error.what();
  }
  CHECK(why.find("not 2 for each of the 2 PEs that share it") != std::string::npos);
}
