// Products through rings of slots, thread by thread under random schedules: bit for bit those of
// slices that are read where they are.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/local.hpp"
#include "cpufree/formats/warp_slices_build.hpp"
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

// Nodes of three unknowns: rows come in threes of the same columns, and columns in threes, those of
// some neighbours far away.
LocalSystem<double> nodes_of(const std::vector<std::int32_t>& neighbours, std::int32_t apart,
                             bool few) {
  std::vector<std::int32_t> lengths;
  for (const std::int32_t count : neighbours) lengths.insert(lengths.end(), 3, 3 * count);
  LocalSystem<double> local = rows_of(lengths, 1, few);
  for (std::int32_t row = 0; row < local.rows(); ++row)
    for (std::int32_t k = 0; k < lengths[at(row)]; ++k)
      local.col[at(local.row_ptr[at(row)]) + at(k)] = 3 * (row / 3) + k + k / 3 % 5 * apart;
  return local;
}

struct Share {
  ShareSource<double> source;
  WarpSliceShape shape;
  SliceFeed feed;
  std::vector<std::uint64_t> words;
  std::vector<std::int32_t> tail_col;
  std::vector<double> tail_val;
  LaneRows interior, boundary;

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
    if (!of_boundary) return {interior.begin, interior.end, 0, interior.lanes_log2, interior.thin};
    return {boundary.begin, boundary.end, interior.slices(), boundary.lanes_log2, boundary.thin};
  }
};

// How lanes share rows: lanes_log2 and thin.
struct Sharing {
  std::int32_t lanes_log2 = 0;
  std::int32_t thin = 0;
};

// Rows before `cut` are the interior.
Share share_of(const LocalSystem<double>& local, std::int32_t cut, const Codes& codes,
               Sharing interior = {}, Sharing boundary = {}) {
  Share s{{local, nullptr, codes},
          {},
          {},
          {},
          {},
          {},
          {{0, cut}, interior.lanes_log2, interior.thin},
          {{cut, local.rows()}, boundary.lanes_log2, boundary.thin}};
  s.interior.run = usual_run(s.source, s.interior);
  s.boundary.run = usual_run(s.source, s.boundary);
  s.shape = shape_of(s.source, {s.interior, s.boundary});
  s.feed = feed_of<double>(s.shape, {s.interior, s.boundary}, kThreads / kSliceRows);
  s.words.resize(at(s.shape.units * kSliceUnit / 8));
  fill_warp_slices(s.source, s.shape, 0, s.shape.slice.size(),
                   reinterpret_cast<std::byte*>(s.words.data()));
  s.tail_col.resize(at(s.shape.tail_entries));
  s.tail_val.resize(at(s.shape.tail_entries));
  fill_tails(s.source, s.shape, s.tail_col.data(), s.tail_val.data());
  return s;
}

Share share_of(const LocalSystem<double>& local, std::int32_t cut, bool compress,
               Sharing interior = {}, Sharing boundary = {}) {
  return share_of(local, cut, Codes{compress, compress}, interior, boundary);
}
// For lanes that share rows on chip.
Share simple_share_of(const LocalSystem<double>& local, std::int32_t cut, Sharing interior,
                      Sharing boundary) {
  return share_of(local, cut, Codes{true, false, true, false}, interior, boundary);
}

std::vector<double> operand(std::size_t size, int product) {
  std::vector<double> x(size);
  for (std::size_t i = 0; i < size; ++i) x[i] = std::cos(static_cast<double>(i) + 0.3 * product);
  return x;
}

// The sum of a lane of those that share a row, which has `run` of its entries in turn: within the
// slice, then the tail, by lanes.
double lane_sum(const Share& s, const WarpSlice& slice, std::pair<std::int64_t, std::int64_t> row,
                int lane, const LaneRows& rows, const std::vector<double>& x) {
  const LocalSystem<double>& local = s.source.local;
  const std::int64_t run = rows.lanes_log2 > 0 ? rows.run : 1;
  double sum = 0.0;
  double part[kSliceRows] = {};
  std::int64_t place = 0;
  for (std::int64_t e = row.first; e < row.second; ++e) {
    if ((e - row.first) / run % (1 << rows.lanes_log2) != lane) continue;
    const double product = local.val[at(e)] * x[at(local.col[at(e)])];
    if (place < slice.width)
      sum += product;
    else
      part[(place - slice.width) % kSliceRows] += product;
    ++place;
  }
  for (int half = kSliceRows / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  return slice.tails < 0 ? sum : sum + part[0];
}

// The sums of rows in the order of the format.
std::vector<double> expected(const Share& s, const std::vector<double>& x) {
  const auto& row_ptr = s.source.local.row_ptr;
  std::vector<double> y;
  for (std::size_t k = 0; k < s.shape.slice.size(); ++k)
    for (std::int32_t row = s.shape.rows[k].begin; row < s.shape.rows[k].end; ++row) {
      const int lanes = 1 << s.shape.rows[k].lanes_log2;
      double sums[kSliceRows] = {};
      for (int l = 0; l < lanes; ++l)
        sums[l] = lane_sum(s, s.shape.slice[k], {row_ptr[at(row)], row_ptr[at(row) + 1]}, l,
                           s.shape.rows[k], x);
      for (int half = lanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) sums[l] += sums[l + half];
      y.push_back(sums[0]);
    }
  return y;
}

double number(double sum) { return sum; }
double number(const AccurateSum<double>& sum) { return -sum.below(0.0); }

// As long as there is no more than the rounding of the format's sums between them.
bool sums_right(const Share& s, const std::vector<double>& x, const std::vector<double>& y) {
  const auto want = expected(s, x);
  bool right = true;
  for (std::size_t i = 0; i < want.size(); ++i)
    right = right && std::abs(y[i] - want[i]) <= 1e-13 * (1.0 + std::abs(want[i]));
  return right;
}

// Those of accurate sums differ from the exact ones by the rounding of the result alone.
bool accurate_sums_right(const Share& s, const std::vector<double>& x,
                         const std::vector<double>& y) {
  const auto& local = s.source.local;
  bool right = true;
  for (std::size_t i = 0; i < y.size(); ++i) {
    long double sum = 0.0L, size = 0.0L;
    for (auto k = local.row_ptr[i]; k < local.row_ptr[i + 1]; ++k) {
      const long double term = static_cast<long double>(local.val[at(k)]) * x[at(local.col[at(k)])];
      sum += term, size += std::abs(term);
    }
    right = right && std::abs(y[i] - sum) <= 1.2e-16L * std::abs(sum) + 2e-18L * size;
  }
  return right;
}

struct Everywhere {
  static constexpr auto right = sums_right;
  template <class X>
  X operator()(const X& x) const {
    return x;
  }
};
struct InOneCode {
  static constexpr auto right = accurate_sums_right;
  template <class X>
  ColdOperand<X> operator()(const X& x) const {
    return {x};
  }
};

// Whether several products in a row are right. P: the port; make(port): the matrix, before the
// first product; `as`: makes the operand that the format is given.
template <class P, class Format = AnySlices, class Make, class As>
bool products_right(const Share& s, std::size_t fast_bytes, std::uint64_t seed, Make make, As as) {
  std::int32_t most = 0;
  for (const std::int32_t c : s.source.local.col) most = std::max(most, c);
  std::vector<std::vector<double>> x, y;
  for (int k = 0; k < kProducts; ++k) {
    x.push_back(operand(at(most) + 1, k));
    y.emplace_back(at(s.source.local.rows()), NAN);
  }
  std::byte heap[64] = {};
  std::byte* const heaps[] = {heap};
  const bool ended = warp_rig::run<P>(1, 1, kThreads, fast_bytes, heaps, seed, [&](P& port, int) {
    const WarpSlices<double> matrix = make(port);
    matrix.open(port);
    for (int k = 0; k < kProducts; ++k)
      for (const bool of_boundary : {false, true})
        matrix.template multiply<Format>(
            port, s.rows(of_boundary), as(Operand<double>{x[at(k)].data()}),
            [&](std::int32_t row, int, const auto& sum) { y[at(k)][at(row)] = number(sum); });
    matrix.close(port);
  });
  bool right = ended;
  for (int k = 0; k < kProducts; ++k) right = right && As::right(s, x[at(k)], y[at(k)]);
  return right;
}

// Through rings of so many slots.
template <class As = Everywhere>
bool products_right(const Share& s, int slots, std::uint64_t seed, As as = {}) {
  const RingShape shape{slots, slot_bytes<double>(s.shape), kThreads / kSliceRows, true};
  const auto make = [&](warp_rig::StreamingPort& port) {
    WarpSlices<double> matrix = s.matrix();
    matrix.ring.fast = port.fast_memory();
    matrix.ring.shape = shape;
    return matrix;
  };
  return products_right<warp_rig::StreamingPort>(s, ring_bytes(shape), seed, make, as);
}

// On chip.
template <class As = Everywhere>
bool products_on_chip_right(const Share& s, std::uint64_t seed, As as = {}) {
  const auto make = [&](warp_rig::LanesPort& port) {
    return s.matrix().resident(port, port.fast_memory());
  };
  return products_right<warp_rig::LanesPort, SlicesOnChip>(
      s, resident_matrix_bytes(s.shape.size(), sizeof(double)), seed, make, as);
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

TEST(products_through_rings_are_right_where_columns_come_in_runs) {
  std::vector<std::int32_t> neighbours;
  for (std::int32_t i = 0; i < 60; ++i) neighbours.push_back(i % 25 == 3 ? 70 : i % 9);
  for (const bool alike : {false, true})
    for (const std::int32_t apart : {0, 39'999})
      for (const std::int32_t lanes_log2 : {0, 2}) {
        const auto local = nodes_of(neighbours, apart, alike);
        const Share s = share_of(local, 60, true, {lanes_log2, 0}, {0, 0});
        CHECK(std::ranges::any_of(s.shape.slice,
                                  [](const WarpSlice& slice) { return in_runs(slice.code); }));
        CHECK(products_right(s, 2, 70));
        CHECK(products_right(s, 3, 71, InOneCode{}));
      }
}

TEST(products_in_one_code_for_all_are_right) {
  for (const std::int32_t apart : {1, 300, 9000})
    for (const bool alike : {false, true}) {
      const auto local = rows_of(mixed_lengths(200), apart, alike);
      CHECK(products_right(share_of(local, 70, true, {1, 0}), 2, 50, InOneCode{}));
      CHECK(products_right(share_of(local, 70, true), 3, 51, InOneCode{}));
    }
}

TEST(rows_that_lanes_share_have_the_sums_of_the_lanes) {
  for (std::int32_t lanes_log2 = 1; lanes_log2 <= kMostLanesLog2; ++lanes_log2)
    for (std::int32_t thin = 0; thin <= lanes_log2; ++thin) {
      const auto seed = static_cast<std::uint64_t>(60 + 10 * lanes_log2 + thin);
      const Sharing one{lanes_log2, thin}, other{kMostLanesLog2 - lanes_log2, 0};
      CHECK(products_right(
          share_of(rows_of(mixed_lengths(110), 1, thin == 1), 37, true, one, other), 2, seed));
      // Rows of one length in several turns, columns too far apart for codes.
      const std::vector<std::int32_t> lengths(120, 21);
      CHECK(products_right(share_of(rows_of(lengths, 9000, false), 103, true, one, one), 3, seed));
    }
}

TEST(rows_that_lanes_share_on_chip_have_the_sums_of_the_lanes) {
  const auto local = rows_of(mixed_lengths(110), 1, false);
  for (std::int32_t lanes_log2 = 1; lanes_log2 <= kMostLanesLog2; ++lanes_log2)
    for (std::int32_t thin = 0; thin <= lanes_log2; ++thin) {
      const auto seed = static_cast<std::uint64_t>(80 + 10 * lanes_log2 + thin);
      const Share s =
          simple_share_of(local, 37, {lanes_log2, thin}, {kMostLanesLog2 - lanes_log2, 0});
      CHECK(s.shape.simple() == Simple::columns);
      CHECK(products_on_chip_right(s, seed));
      CHECK(products_on_chip_right(s, seed, InOneCode{}));
    }
}

TEST(runs_that_lanes_share_on_chip_have_the_sums_of_the_lanes) {
  std::vector<std::int32_t> neighbours;
  for (std::int32_t i = 0; i < 60; ++i) neighbours.push_back(1 + i % 25);
  const auto local = nodes_of(neighbours, 0, false);
  for (const std::int32_t lanes_log2 : {1, 2, 3}) {
    const Share s = simple_share_of(local, 60, {lanes_log2, 0}, {lanes_log2, 1});
    CHECK(s.shape.simple() == Simple::runs);
    CHECK(products_on_chip_right(s, 90));
    CHECK(products_on_chip_right(s, 91, InOneCode{}));
  }
}

TEST(each_row_is_called_for_once_by_the_thread_that_has_its_product) {
  const Share s = share_of(rows_of(mixed_lengths(110), 1, false), 37, true, {3, 1}, {1, 1});
  RingShape shape{2, slot_bytes<double>(s.shape), kThreads / kSliceRows, true};
  std::vector<int> by_product(110, -1), by_loop(110, -1);
  std::byte heap[64] = {};
  std::byte* const heaps[] = {heap};
  const std::vector<double> x(110, 1.0);
  CHECK(warp_rig::run<warp_rig::StreamingPort>(
      1, 1, kThreads, ring_bytes(shape), heaps, 5, [&](warp_rig::StreamingPort& port, int) {
        WarpSlices<double> matrix = s.matrix();
        matrix.ring.fast = port.fast_memory();
        matrix.ring.shape = shape;
        matrix.open(port);
        for (const bool of_boundary : {false, true}) {
          const auto rows = s.rows(of_boundary);
          matrix.multiply(
              port, rows, Operand<double>{x.data()},
              [&](std::int32_t row, int, double) { by_product[at(row)] = port.lane(); });
          matrix.each(port, rows, [&](std::int32_t row, int) { by_loop[at(row)] = port.lane(); });
        }
        matrix.close(port);
      }));
  CHECK(by_product == by_loop);
  CHECK(std::ranges::find(by_product, -1) == by_product.end());
}

TEST(rings_stand_rows_without_entries_and_parts_without_rows) {
  std::vector<std::int32_t> lengths(130, 0);
  lengths[40] = 2;
  for (const std::int32_t cut : {0, 33, 130})
    CHECK(products_right(share_of(rows_of(lengths, 1, false), cut, true), 2, 7));
  CHECK(products_right(share_of(rows_of({5}, 1, false), 0, true), 2, 8));
}
