// Plans that ranks make together from their own rows, against the plan of the whole matrix.
#include "cpufree/distributed/slab_plan.hpp"

#include <array>
#include <limits>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/solvers/host/setup.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "slabs.hpp"
#include "solves.hpp"
#include "thread_team.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

constexpr double kUnchecked = -1.0;

void rethrow(const std::vector<std::exception_ptr>& thrown) {
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

bool same(const Neighbour& a, const Neighbour& b) {
  return a.pe == b.pe && a.received == b.received && a.first_ghost == b.first_ghost &&
         a.sent == b.sent;
}
bool same(const Destination& a, const Destination& b) { return a.pe == b.pe && a.index == b.index; }

template <class T>
void expect_same_share(LocalSystem<T> mine, const LocalSystem<T>& expected, std::int64_t first) {
  for (std::int32_t& row : mine.global_row) row += static_cast<std::int32_t>(first);
  CHECK_EQ(mine.interior, expected.interior);
  CHECK_EQ(mine.ghosts, expected.ghosts);
  CHECK(mine.global_row == expected.global_row);
  CHECK(mine.row_ptr == expected.row_ptr);
  CHECK(mine.col == expected.col);
  CHECK(mine.val == expected.val);
  CHECK(mine.ghost_owner == expected.ghost_owner);
  CHECK(mine.ghost_row == expected.ghost_row);
  CHECK(mine.send_ptr == expected.send_ptr);
  CHECK(std::ranges::equal(mine.neighbours, expected.neighbours,
                           [](const auto& a, const auto& b) { return same(a, b); }));
  CHECK(std::ranges::equal(mine.destinations, expected.destinations,
                           [](const auto& a, const auto& b) { return same(a, b); }));
}

template <class T>
void expect_same_plan(const Matrix<T>& a, const Cuts& cuts, double tolerance = 1e-12) {
  const int ranks = static_cast<int>(cuts.size()) - 1;
  const auto whole = make_halo_plan(a.view(), part_of(cuts), {}, ranks);
  rethrow(run_team(ranks, [&](const std::shared_ptr<Team>& team) {
    const std::size_t rank = at(team->rank());
    const auto rows = rows_of(a, cuts[rank], cuts[rank + 1]);
    const auto plan = plan_slab(rows.slab(), *team, {tolerance});
    CHECK_EQ(plan.plan.local.size(), std::size_t{1});
    CHECK_EQ(plan.asymmetry, 0.0);
    expect_same_share(plan.plan.local[0], whole.local[rank], cuts[rank]);
  }));
}

Cuts even_cuts(std::int32_t n, int ranks) {
  Cuts cuts;
  for (int k = 0; k <= ranks; ++k)
    cuts.push_back(static_cast<std::int32_t>(std::int64_t{n} * k / ranks));
  return cuts;
}

// What the ranks say of `a` where its rows are shared so.
std::vector<std::string> refusals(const std::vector<Rows<double>>& rows, double tolerance) {
  std::vector<std::string> said(rows.size());
  run_team(static_cast<int>(rows.size()), [&](const std::shared_ptr<Team>& team) {
    try {
      plan_slab(rows[at(team->rank())].slab(), *team, {tolerance});
    } catch (const std::exception& error) {
      said[at(team->rank())] = error.what();
      throw;
    }
  });
  return said;
}

constexpr const char* kOfAnother = "the team failed";  // how it begins where another rank tells

// Whether this rank alone tells what is wrong, and the others learn it from the team.
bool tells_alone(const std::vector<std::string>& said, std::size_t rank) {
  for (std::size_t k = 0; k < said.size(); ++k)
    if ((said[k].find(kOfAnother) == std::string::npos) != (k == rank)) return false;
  return true;
}

bool says(const std::string& text, const char* words) {
  if (text.find(words) != std::string::npos) return true;
  std::cerr << "said: " << text << std::endl;
  return false;
}

std::vector<Rows<double>> halves(const Matrix<double>& a) {
  return {rows_of(a, 0, a.n() / 2), rows_of(a, a.n() / 2, a.n())};
}

}  // namespace

TEST(own_rows_give_the_plan_of_the_whole_matrix) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    expect_same_plan(irregular(97, 3), even_cuts(97, ranks));
    expect_same_plan(grid2d(13, 9), even_cuts(117, ranks));
    expect_same_plan(grid2d(200, 1), even_cuts(200, ranks));
    expect_same_plan(irregular<float>(150, 8), even_cuts(150, ranks), 1e-5);
  }
}

TEST(own_rows_give_the_plan_of_the_whole_matrix_however_uneven_they_are) {
  const auto a = irregular(60, 5);
  expect_same_plan(a, {0, 1, 2, 60});
  expect_same_plan(a, {0, 58, 59, 60});
  expect_same_plan(a, {0, 0, 30, 30, 60, 60});  // ranks without rows: first, in the middle, last
  expect_same_plan(grid2d(3, 1), {0, 1, 2, 3});
}

TEST(rows_that_no_other_rank_reads_have_no_neighbours) {
  Entries e;
  for (std::int32_t i = 0; i < 9; ++i) e[{i, i}] = 2.0;
  e[{0, 8}] = e[{8, 0}] = -1.0;  // ranks 0 and 2 alone
  expect_same_plan(from_entries<double>(9, e), {0, 3, 6, 9});
}

TEST(own_rows_give_the_same_plan_unchecked) {
  expect_same_plan(irregular(97, 3), even_cuts(97, 4), kUnchecked);
}

// Ranks 0 and 1 stand for thousands of millions of rows, of which none is coupled to the others'.
TEST(rows_are_numbered_beyond_32_bits) {
  constexpr std::int64_t kShift = 3'000'000'001;
  const auto a = irregular(80, 4);
  const Cuts cuts{0, 30, 80};
  const auto whole = make_halo_plan(a.view(), part_of(cuts), {}, 2);
  const std::int64_t all = kShift + a.n();
  rethrow(run_team(4, [&](const std::shared_ptr<Team>& team) {
    if (team->rank() < 2) {
      const std::int64_t half = kShift / 2;
      const std::array<std::int64_t, 3> part = team->rank() == 0
                                                   ? std::array{std::int64_t{0}, half, all}
                                                   : std::array{half, kShift, all};
      team->all_gather("rows of the ranks", std::as_bytes(std::span(part)));
      const std::vector<Bytes> nothing(4);
      team->exchange("entries between ranks", nothing);
      const std::vector<std::int32_t> none{0};
      const auto zero = bytes_of(none);
      team->exchange("rows of the ghosts", std::vector<Bytes>(4, Bytes(zero.begin(), zero.end())));
      return;
    }
    const std::size_t k = at(team->rank() - 2);
    const auto rows = rows_of(a, cuts[k], cuts[k + 1], kShift);
    const auto plan = plan_slab(rows.slab(), *team, {kUnchecked});
    CHECK_EQ(plan.first, kShift + cuts[k]);
    CHECK_EQ(plan.all_rows, all);
    LocalSystem<double> mine = plan.plan.local[0];
    for (auto& owner : mine.ghost_owner) owner -= 2;
    for (auto& neighbour : mine.neighbours) neighbour.pe -= 2;
    for (auto& destination : mine.destinations) destination.pe -= 2;
    expect_same_share(mine, whole.local[k], cuts[k]);
  }));
}

TEST(missing_rows_are_named) {
  const auto a = grid2d(10, 1);
  for (const std::string& said : refusals({rows_of(a, 0, 4), rows_of(a, 6, 10)}, kUnchecked))
    CHECK(says(said, "rows 4 to 5 are missing: rank 1 begins at row 6"));
  for (const std::string& said : refusals({rows_of(a, 1, 4), rows_of(a, 4, 10)}, kUnchecked))
    CHECK(says(said, "row 0 is missing: rank 0 begins at row 1"));
  for (const std::string& said : refusals({rows_of(a, 0, 4), rows_of(a, 4, 9)}, kUnchecked))
    CHECK(says(said, "row 9 is missing: rank 1 ends with row 8"));
}

TEST(rows_before_the_first_are_refused) {
  const auto a = grid2d(10, 1);
  auto rows = halves(a);
  rows[0].first = -3;
  for (const std::string& said : refusals(rows, kUnchecked))
    CHECK(says(said, "rank 0 begins at row -3: rows are numbered from 0"));
}

TEST(the_rank_whose_rows_do_not_fit_tells_it_alone) {
  const auto a = grid2d(12, 1);
  CHECK(tells_alone(refusals({rows_of(a, 0, 4), rows_of(a, 3, 8), rows_of(a, 8, 12)}, 0.0), 1));
  CHECK(tells_alone(refusals({rows_of(a, 0, 4), rows_of(a, 4, 8), rows_of(a, 9, 12)}, 0.0), 2));
  CHECK(tells_alone(refusals({rows_of(a, 1, 4), rows_of(a, 4, 8), rows_of(a, 8, 12)}, 0.0), 0));
}

TEST(of_two_ranks_whose_patterns_differ_the_lower_one_tells) {
  Entries e;
  for (std::int32_t i = 0; i < 12; ++i) e[{i, i}] = 2.0;
  e[{5, 10}] = e[{11, 4}] = -1.0;  // both lack one of the other, in ranks 1 and 2
  const auto a = from_entries<double>(12, e);
  for (const double tolerance : {kUnchecked, 1e-12})
    CHECK(tells_alone(refusals({rows_of(a, 0, 4), rows_of(a, 4, 8), rows_of(a, 8, 12)}, tolerance),
                      1));
}

TEST(rows_of_two_ranks_are_named) {
  const auto a = grid2d(10, 1);
  for (const std::string& said : refusals({rows_of(a, 0, 6), rows_of(a, 4, 10)}, kUnchecked))
    CHECK(says(said, "rank 1 begins at row 4, but the ranks before it end with row 5"));
}

TEST(rows_beyond_the_matrix_are_named) {
  const auto a = grid2d(10, 1);
  auto rows = halves(a);
  for (auto& part : rows) part.all = 9;
  rows[0].col.back() = 4;
  for (const std::string& said : refusals(rows, kUnchecked))
    CHECK(says(said, "rank 1 ends with row 9, but the matrix has 9 rows"));
}

TEST(ranks_that_speak_of_different_matrices_are_named) {
  auto rows = halves(grid2d(10, 1));
  rows[1].all = 11;
  for (const std::string& said : refusals(rows, kUnchecked))
    CHECK(says(said, "rank 1 has rows of a matrix with 11 rows, rank 0 of one with 10"));
}

TEST(columns_out_of_range_are_refused) {
  auto rows = halves(grid2d(10, 1));
  rows[1].col.back() = 10;
  CHECK(says(refusals(rows, kUnchecked)[1], "row 9 has column 10; columns run from 0 to 9"));
  rows = halves(grid2d(10, 1));
  rows[0].col.front() = -1;
  CHECK(says(refusals(rows, kUnchecked)[0], "row 0 has column -1; columns run from 0 to 9"));
}

TEST(columns_that_do_not_increase_are_refused) {
  auto rows = halves(grid2d(10, 1));
  std::swap(rows[1].col[1], rows[1].col[2]);
  CHECK(says(refusals(rows, kUnchecked)[1], "row 5 has column 5 after column 6"));
}

TEST(arrays_that_do_not_belong_together_are_refused) {
  auto rows = halves(grid2d(10, 1));
  rows[0].val.pop_back();
  CHECK(says(refusals(rows, kUnchecked)[0], "indptr must rise from 0"));
}

TEST(an_entry_without_its_mirror_image_in_another_rank_is_named) {
  Entries e;
  for (std::int32_t i = 0; i < 10; ++i) e[{i, i}] = 2.0;
  e[{2, 7}] = -1.0;
  for (const std::string& said : refusals(halves(from_entries<double>(10, e)), kUnchecked))
    CHECK(says(said, "entry (row 2, column 7) of rank 0 has no entry (row 7, column 2) of rank 1"));
  e.erase({2, 7});
  e[{7, 2}] = -1.0;
  e[{1, 6}] = e[{6, 1}] = -1.0;
  for (const std::string& said : refusals(halves(from_entries<double>(10, e)), kUnchecked))
    CHECK(says(said, "entry (row 7, column 2) of rank 1 has no entry (row 2, column 7) of rank 0"));
}

TEST(an_entry_without_its_mirror_image_in_its_rank_is_named_where_entries_are_checked) {
  Entries e;
  for (std::int32_t i = 0; i < 10; ++i) e[{i, i}] = 2.0;
  e[{6, 8}] = -1.0;
  const auto rows = halves(from_entries<double>(10, e));
  CHECK(says(refusals(rows, 0.0)[1], "entry (row 6, column 8) has no entry (row 8, column 6)"));
  CHECK(refusals(rows, kUnchecked)[1].empty());
}

TEST(values_that_differ_from_their_mirror_images_are_named) {
  auto within = halves(grid2d(10, 1, 1.0));
  within[1].val[3] = -0.5;  // row 6, column 5
  CHECK(says(refusals(within, 1e-12)[1], "entry (row 5, column 6) is -1, but entry (row 6"));
  auto between = halves(grid2d(10, 1, 1.0));
  between[1].val[0] = -0.5;  // row 5, column 4
  const auto said = refusals(between, 1e-12);
  CHECK(says(said[0], "entry (row 4, column 5) is -1, but entry (row 5, column 4) is -0.5") ||
        says(said[1], "entry (row 5, column 4) is -0.5, but entry (row 4, column 5) is -1"));
}

TEST(a_small_asymmetry_passes_and_is_told_to_all) {
  const auto a = grid2d(10, 1, 1.0);  // 5 on the diagonal
  auto rows = halves(a);
  rows[1].val[0] += 5e-14;
  rethrow(run_team(2, [&](const std::shared_ptr<Team>& team) {
    const auto plan = plan_slab(rows[at(team->rank())].slab(), *team, {1e-12});
    CHECK_NEAR(plan.asymmetry, 1e-14, 1e-16);
  }));
}

TEST(entries_that_are_not_finite_are_named) {
  auto rows = halves(grid2d(10, 1));
  rows[1].val[1] = std::numeric_limits<double>::quiet_NaN();
  CHECK(says(refusals(rows, 1e-12)[1], "entry (row 5, column 5) is nan"));
}

TEST(rows_without_a_positive_diagonal_are_named) {
  auto rows = halves(grid2d(10, 1));
  rows[0].val[0] = -4.0;
  CHECK(says(refusals(rows, 1e-12)[0], "row 0 has the diagonal entry -4"));
}

namespace {
// Each rank's part of x must have, bit for bit, what whole matrices give it.
void expect_same_x(const Matrix<double>& a, const Cuts& cuts, int halo, bool guess,
                   const SolveSpec& how) {
  const auto b = wave(a.n());
  auto x0 = std::vector<double>(b.rbegin(), b.rend());
  if (!guess) x0.clear();
  const int ranks = static_cast<int>(cuts.size()) - 1;
  SystemSpec one;
  one.pes = ranks;
  one.blocks = 2;
  one.halo = halo;
  const auto whole = make_system<double>(a.view(), part_of(cuts), {}, one);
  const auto expected = whole->solve(b, x0, how, {});
  rethrow(run_team(ranks, [&](const std::shared_ptr<Team>& team) {
    const std::size_t rank = at(team->rank());
    SystemSpec spec = one;
    spec.engine = Engine::cpu_processes;
    spec.team = team;
    const auto rows = rows_of(a, cuts[rank], cuts[rank + 1]);
    const auto system = make_system(plan_slab(rows.slab(), *team, {1e-12}), spec);
    const auto own = [&](const std::vector<double>& v) {
      return v.empty() ? v : entries_of(v, cuts[rank], cuts[rank + 1]);
    };
    const auto found = system->solve(own(b), own(x0), how, {});
    CHECK(found.x == own(expected.x));
    CHECK_EQ(found.outcome.iterations, expected.outcome.iterations);
    CHECK_EQ(found.outcome.true_residual, expected.outcome.true_residual);
    CHECK(found.history == expected.history);
    CHECK_EQ(system->plan().edge_cut, whole->plan().edge_cut);
    CHECK_EQ(system->plan().halo_values, whole->plan().halo_values);
    CHECK_EQ(system->plan().imbalance, whole->plan().imbalance);
    CHECK_EQ(system->plan().matrix_bytes, whole->plan().matrix_bytes);
  }));
}
}  // namespace

TEST(own_rows_give_bitwise_what_the_whole_matrix_gives) {
  const auto a = irregular(200, 6);
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners)
      expect_same_x(a, {0, 50, 130, 200}, -1, false, solve_spec(method, pc));
}

TEST(own_rows_give_bitwise_the_same_with_packets_a_guess_and_ranks_without_rows) {
  const auto a = grid2d(15, 12, 0.1);
  const SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  expect_same_x(a, {0, 90, 180}, 1, false, how);
  expect_same_x(a, {0, 0, 20, 20, 180}, -1, true, how);
  expect_same_x(a, {0, 180}, -1, true, how);
}

TEST(names_of_rows_are_their_numbers_as_far_as_32_bits_go) {
  CHECK(row_names({0, 2, 1}, 40) == std::vector<std::int32_t>({40, 42, 41}));
  const auto beyond = row_names({0, 1}, 3'000'000'000);
  CHECK_EQ(static_cast<std::uint32_t>(beyond[0]), 3'000'000'000U);
  CHECK_EQ(static_cast<std::uint32_t>(beyond[1]), 3'000'000'001U);
}

TEST(engines_of_one_process_take_no_rows_of_a_part) {
  const auto rows = rows_of(grid2d(10, 1), 0, 10);
  Alone team;
  CHECK_THROWS(InvalidInput, make_system(plan_slab(rows.slab(), team, {}), SystemSpec{}));
}
