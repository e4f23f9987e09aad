// Products with factors in slices against dense ones, at awkward sizes.
#include "cpufree/formats/factor_slices_build.hpp"

#include <cmath>
#include <numeric>
#include <random>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"
#include "harness.hpp"
#include "warp_rig.hpp"

using namespace cpufree;

namespace {

// Rows of random length from 1 to `longest`, columns anywhere.
SparseFactor random_factor(std::int32_t rows, std::int32_t longest, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1.0F, 1.0F);
  SparseFactor f;
  f.row_ptr.push_back(0);
  for (std::int32_t i = 0; i < rows; ++i) {
    const auto length = 1 + random() % static_cast<unsigned>(longest);
    for (unsigned k = 0; k < length; ++k) {
      f.col.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(rows)));
      f.val.push_back(value(random));
    }
    f.row_ptr.push_back(static_cast<std::int64_t>(f.col.size()));
  }
  return f;
}

// Rows dealt out to `blocks` blocks, in turn.
PrivatePlaces deal(std::int32_t rows, std::int32_t blocks) {
  PrivatePlaces places;
  places.place.resize(at(rows));
  std::int32_t next = 0;
  for (std::int32_t b = 0; b < blocks; ++b) {
    auto& mine = places.rows.emplace_back();
    places.first.push_back(next);
    for (std::int32_t i = b; i < rows; i += blocks) {
      places.place[at(i)] = next++;
      mine.push_back(i);
    }
  }
  return places;
}

std::vector<double> operand(std::int32_t rows) {
  std::vector<double> x(at(rows) + 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i + 1));
  return x;
}

// F x, in the order of places, by rows.
std::vector<double> expected(const SparseFactor& f, const PrivatePlaces& places,
                             const std::vector<double>& x) {
  std::vector<double> y(places.place.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    for (auto k = at(f.row_ptr[i]); k < at(f.row_ptr[i + 1]); ++k)
      y[at(places.place[i])] += static_cast<double>(f.val[k]) * x[at(places.place[at(f.col[k])])];
  return y;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

constexpr double kClose = 1e-13;

}  // namespace

TEST(products_on_the_cpu_are_those_of_the_rows_at_awkward_sizes) {
  using P = cpu_threads::Port;
  for (const std::int32_t rows : {0, 1, 7, 8, 9, 31, 32, 33, 200})
    for (const std::int32_t blocks : {1, 3}) {
      const SparseFactor f = random_factor(rows, 9, 3);
      const PrivatePlaces places = deal(rows, blocks);
      const auto x = operand(rows);
      std::vector<double> y(at(rows), NAN);
      const auto sliced = slice_factor(f, places, kFactorWidth<P>);
      CHECK_EQ(sliced.size(), at(blocks));
      const auto kernel = [&](P& port) {
        for (std::size_t b = 0; b < sliced.size(); ++b)
          sliced[b].view().multiply(port, x.data(), [&](std::int32_t j, double value) {
            y[at(places.first[b] + j)] = value;
          });
      };
      std::byte* heap = nullptr;
      cpu_threads::run_here(&heap, kernel, [](std::int64_t, double) { return 0U; });
      CHECK(distance(y, expected(f, places, x)) < kClose);
    }
}

TEST(products_on_warps_are_those_of_the_rows_at_awkward_sizes) {
  using P = warp_rig::LanesPort;
  std::byte heap[64] = {};
  std::byte* heaps[] = {heap};
  for (const std::int32_t rows : {1, 31, 32, 33, 150})
    for (const int threads : {32, 64}) {
      const SparseFactor f = random_factor(rows, 11, 4);
      const PrivatePlaces places = deal(rows, 2);
      const auto x = operand(rows);
      std::vector<double> y(at(rows), NAN);
      const auto sliced = slice_factor(f, places, kFactorWidth<P>);
      CHECK(warp_rig::run<P>(1, 2, threads, 0, heaps, 1, [&](P& port, int) {
        const auto b = at(port.block());
        sliced[b].view().multiply(port, x.data(), [&](std::int32_t j, double value) {
          y[at(places.first[b] + j)] = value;
        });
      }));
      CHECK(distance(y, expected(f, places, x)) < kClose);
    }
}

TEST(columns_far_apart_take_32_bits_and_others_16) {
  const std::int32_t rows = 200'000;
  SparseFactor f;
  f.row_ptr.push_back(0);
  for (std::int32_t i = 0; i < rows; ++i) {
    f.col.push_back(i);
    f.val.push_back(2.0F);
    if (i == 5) f.col.push_back(rows - 1), f.val.push_back(3.0F);
    f.row_ptr.push_back(static_cast<std::int64_t>(f.col.size()));
  }
  const PrivatePlaces places = deal(rows, 1);
  using P = cpu_threads::Port;
  const auto sliced = slice_factor(f, places, kFactorWidth<P>);
  CHECK_EQ(sliced[0].wide.size(), at(2 * kFactorWidth<P>));  // one slice, of the longest row
  CHECK_EQ(sliced[0].narrow.size(), at(rows - kFactorWidth<P>));
  const auto x = operand(rows);
  std::vector<double> y(at(rows));
  std::byte* heap = nullptr;
  const auto kernel = [&](P& port) {
    sliced[0].view().multiply(port, x.data(),
                              [&](std::int32_t j, double value) { y[at(j)] = value; });
  };
  cpu_threads::run_here(&heap, kernel, [](std::int64_t, double) { return 0U; });
  CHECK(distance(y, expected(f, places, x)) < kClose);
}

TEST(partners_are_all_blocks_that_share_an_entry_both_ways) {
  SparseFactor f;  // row 0 reads row 3
  f.row_ptr = {0, 2, 3, 4, 5, 6};
  f.col = {0, 3, 1, 2, 3, 4};
  f.val.assign(6, 1.0F);
  const auto partners = factor_partners({f}, deal(5, 5));
  CHECK(partners[0] == std::vector<std::int32_t>{3});
  CHECK(partners[3] == std::vector<std::int32_t>{0});
  CHECK(partners[1].empty() && partners[2].empty() && partners[4].empty());
}
