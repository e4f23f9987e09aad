// Products through rings of slots, thread by thread under random schedules: bit for bit those of
// slices that are read where they are.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/local.hpp"
#include "cpufree/solvers/warp_slices_build.hpp"
#include "harness.hpp"
#include "warp_rig.hpp"

using namespace cpufree;

namespace {

constexpr int kThreads = 96;
constexpr int kProducts = 4;

// Rows of the lengths given, entry k of row i in column (i + step k) mod n; few different values,
// or all different.
LocalSystem<double> rows_of(const std::vector<std::int32_t>& lengths, std::int32_t step, bool few) {
  LocalSystem<double> local;
  const auto n = static_cast<std::int32_t>(lengths.size());
  local.row_ptr.push_back(0);
  for (std::int32_t i = 0; i < n; ++i) {
    local.global_row.push_back(i);
    for (std::int32_t k = 0; k < lengths[at(i)]; ++k) {
      local.col.push_back(step * ((i + k) % n));
      const double value = static_cast<double>(local.val.size());
      local.val.push_back(few ? 1.0 + static_cast<double>(local.val.size() % 3) : std::sin(value));
    }
    local.row_ptr.push_back(static_cast<std::int64_t>(local.col.size()));
  }
  local.interior = n;
  return local;
}

struct Share {
  ShareSource<double> source;
  WarpSliceShape shape;
  SliceFeed feed;
  std::vector<std::uint64_t> words;
  std::vector<std::int32_t> tail_col;
  std::vector<double> tail_val;
  RowRange interior, boundary;

  WarpSlices<double> matrix() const {
    const auto* const bytes = reinterpret_cast<const std::byte*>(words.data());
    WarpSlices<double> m{bytes,
                         shape.slice.data(),
                         shape.tail_ptr.data(),
                         tail_col.data(),
                         tail_val.data(),
                         shape.dictionary.empty() ? nullptr : shape.dictionary.data(),
                         shape.size()};
    m.ring.bytes = bytes;
    m.ring.heads = reinterpret_cast<const std::byte*>(shape.slice.data());
    m.ring.items = feed.items.data();
    m.ring.first = feed.first.data();
    return m;
  }
  WarpSlices<double>::Rows rows(bool of_boundary) const {
    if (!of_boundary) return {interior.begin, interior.end, 0};
    return {boundary.begin, boundary.end, (interior.size() + kWarp - 1) / kWarp};
  }
};

Share share_of(const LocalSystem<double>& local, std::int32_t cut, bool compress) {
  Share s{
      {local, nullptr, {compress, compress}}, {}, {}, {}, {}, {}, {0, cut}, {cut, local.rows()}};
  s.shape = shape_of(s.source, {s.interior, s.boundary});
  s.feed = feed_of<double>(s.shape, at((cut + kWarp - 1) / kWarp), kThreads / kWarp);
  s.words.resize(at(s.shape.units * kSliceUnit / 8));
  fill_warp_slices(s.source, s.shape, 0, s.shape.slice.size(),
                   reinterpret_cast<std::byte*>(s.words.data()));
  s.tail_col.resize(at(s.shape.tail_entries));
  s.tail_val.resize(at(s.shape.tail_entries));
  fill_tails(s.source, s.shape, s.tail_col.data(), s.tail_val.data());
  return s;
}

std::vector<double> operand(std::size_t size, int product) {
  std::vector<double> x(size);
  for (std::size_t i = 0; i < size; ++i) x[i] = std::cos(static_cast<double>(i) + 0.3 * product);
  return x;
}

// The sums of rows in the order of the format: within the slice, then the tail, by lanes.
std::vector<double> expected(const Share& s, const std::vector<double>& x) {
  const LocalSystem<double>& local = s.source.local;
  std::vector<double> y;
  for (std::size_t k = 0; k < s.shape.slice.size(); ++k)
    for (std::int32_t row = s.shape.rows[k].begin; row < s.shape.rows[k].end; ++row) {
      double sum = 0.0;
      double part[kWarp] = {};
      for (auto e = local.row_ptr[at(row)]; e < local.row_ptr[at(row) + 1]; ++e) {
        const double product = local.val[at(e)] * x[at(local.col[at(e)])];
        const std::int64_t place = e - local.row_ptr[at(row)];
        if (place < s.shape.slice[k].width)
          sum += product;
        else
          part[(place - s.shape.slice[k].width) % kWarp] += product;
      }
      for (int half = kWarp / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) part[l] += part[l + half];
      y.push_back(s.shape.slice[k].tails < 0 ? sum : sum + part[0]);
    }
  return y;
}

// Whether several products in a row, through rings of so many slots, are right.
bool products_right(const Share& s, int slots, std::uint64_t seed) {
  std::int32_t most = 0;
  for (const std::int32_t c : s.source.local.col) most = std::max(most, c);
  std::vector<std::vector<double>> x, y;
  for (int k = 0; k < kProducts; ++k) {
    x.push_back(operand(at(most) + 1, k));
    y.emplace_back(at(s.source.local.rows()), NAN);
  }
  RingShape shape{slots, slot_bytes<double>(s.shape), kThreads / kWarp, true};
  std::byte heap[64] = {};
  std::byte* const heaps[] = {heap};
  const bool ended = warp_rig::run<warp_rig::StreamingPort>(
      1, 1, kThreads, ring_bytes(shape), heaps, seed, [&](warp_rig::StreamingPort& port, int) {
        WarpSlices<double> matrix = s.matrix();
        matrix.ring.fast = port.fast_memory();
        matrix.ring.shape = shape;
        matrix.open(port);
        for (int k = 0; k < kProducts; ++k)
          for (const bool of_boundary : {false, true})
            matrix.multiply(port, s.rows(of_boundary), Operand<double>{x[at(k)].data()},
                            [&](std::int32_t row, int, double sum) { y[at(k)][at(row)] = sum; });
        matrix.close(port);
      });
  bool right = ended;
  for (int k = 0; k < kProducts; ++k) {
    const auto want = expected(s, x[at(k)]);
    for (std::size_t i = 0; i < want.size(); ++i)
      right = right && std::abs(y[at(k)][i] - want[i]) <= 1e-13 * (1.0 + std::abs(want[i]));
  }
  return right;
}

std::vector<std::int32_t> mixed_lengths(std::int32_t n) {
  std::vector<std::int32_t> lengths;
  for (std::int32_t i = 0; i < n; ++i)
    lengths.push_back(i % 97 == 5 ? 150 : i % 64 < 32 ? 3 + i % 3 : 17 + i % 5);
  return lengths;
}

}  // namespace

TEST(products_through_rings_are_right_for_any_number_of_slots) {
  const auto local = rows_of(mixed_lengths(310), 1, false);
  for (int slots = 2; slots <= kMostSlots; ++slots)
    CHECK(products_right(share_of(local, 217, true), slots, 40U + static_cast<unsigned>(slots)));
}

TEST(products_through_rings_are_right_in_every_code) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 1, true), 100, true), 3, seed));
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 1, false), 100, false), 2, seed));
    // Columns in windows, and too far apart for them.
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 300, false), 70, true), 2, seed));
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 9000, false), 70, true), 2, seed));
  }
}

TEST(rings_stand_rows_without_entries_and_parts_without_rows) {
  std::vector<std::int32_t> lengths(130, 0);
  lengths[40] = 2;
  for (const std::int32_t cut : {0, 33, 130})
    CHECK(products_right(share_of(rows_of(lengths, 1, false), cut, true), 2, 7));
  CHECK(products_right(share_of(rows_of({5}, 1, false), 0, true), 2, 8));
}
