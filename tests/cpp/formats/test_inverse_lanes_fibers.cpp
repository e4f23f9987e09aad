// Kernels of approximate inverses give the same with 32 lanes side by side as with one, of which
// the stand-in for GPUs has teams.
#include <algorithm>
#include <random>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/layout/inverse.hpp"
#include "harness.hpp"
#include "lane_rig.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace lane_rig;
using namespace testing_matrices;

namespace {

struct Inverse {
  std::vector<double> scale;
  std::vector<std::int32_t> count, col;
  std::vector<float> val;
  std::uint32_t replaced = 0;
  bool operator==(const Inverse&) const = default;
};

// Of rows [first, end) of a matrix.
template <class F>
Inverse inverse_of(const Matrix<double>& a, std::int64_t first, std::int64_t end, F&& run) {
  const std::int64_t rows = end - first, before = a.row_ptr[at(first)];
  std::vector<std::int64_t> ptr;
  for (std::int64_t row = first; row <= end; ++row) ptr.push_back(a.row_ptr[at(row)] - before);
  const layout::PartRows<double> part{first, rows, ptr.data(), a.col.data() + before,
                                      a.val.data() + before};
  Inverse made;
  made.scale.resize(at(rows)), made.count.resize(at(rows));
  made.col.resize(at(ptr.back() + rows)), made.val.resize(made.col.size());
  std::vector<double> far(at(layout::kMostInverse * (layout::kMostInverse + 1) / 2));
  run(layout::ScaleInverse<double>{part, made.scale.data()});
  layout::InvertRows<double> kernel;
  kernel.a = part, kernel.scale = made.scale.data();
  kernel.least_pivot = 1e-12, kernel.least_kept = 0.01;
  kernel.far = far.data(), kernel.count = made.count.data();
  kernel.col = made.col.data(), kernel.val = made.val.data();
  kernel.replaced = &made.replaced;
  run(kernel);
  return made;
}

Inverse check_lanes(const Matrix<double>& a, std::int64_t first, std::int64_t end) {
  const auto one = inverse_of(a, first, end, [](const auto& k) { run_by_one(k); });
  const auto many = inverse_of(a, first, end, [](const auto& k) { run_by_warp(k); });
  CHECK(many == one);
  return one;
}

}  // namespace

TEST(rows_of_inverses_are_those_of_one_lane) {
  check_lanes(grid2d(9, 7), 0, 63);
  check_lanes(irregular(90, 3), 30, 90);
  check_lanes(grid2d(1, 1, 1.0), 0, 1);
  check_lanes(banded(30, 12, 40.0), 0, 30);
  check_lanes(with_hubs(41, 39, 40), 0, 41);  // the longest row on chip, and one that is not
}

TEST(the_largest_entries_of_long_rows_are_those_of_one_lane) {
  const Inverse made = check_lanes(with_hubs(71, 62, 70), 0, 71);
  CHECK(std::ranges::max(made.count) > layout::kOnChipInverse);
  check_lanes(with_hubs(1200, 1020, 1110), 1000, 1120);
}

TEST(rows_without_a_factor_are_those_of_one_lane) {
  CHECK(check_lanes(banded(20, 12, 4.0), 0, 20).replaced > 0);
}

// One of all rows, as where the pattern is not symmetric, and that is not known.
TEST(entries_are_sorted_in_rows_of_any_length) {
  std::mt19937 random(5);
  for (const std::int32_t length : {0, 1, 2, 17, 1000, 40'000}) {
    std::vector<std::int32_t> sorted, col;
    for (std::int32_t k = 0; k < length; ++k) sorted.push_back(3 * k);
    col = sorted;
    std::ranges::shuffle(col, random);
    std::vector<float> val(col.begin(), col.end());
    const std::int64_t ptr[] = {0, length};
    run_by_one(layout::SortInverse<double>{1, ptr, col.data(), val.data()});
    CHECK(col == sorted);
    CHECK(std::ranges::equal(val, sorted, {}, {}, [](std::int32_t v) { return float(v); }));
  }
}
