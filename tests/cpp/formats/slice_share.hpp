// Shares of a matrix as blocks have them, and products with them, for tests of slices.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/local.hpp"
#include "cpufree/formats/warp_slices_build.hpp"
#include "harness.hpp"
#include "warp_streams.hpp"

namespace slice_share {

using namespace cpufree;

inline constexpr int kThreads = 96;
inline constexpr int kProducts = 4;

// Rows of the lengths given, entry k of row i in column (i + step k) mod n; few different values,
// or all different.
inline LocalSystem<double> rows_of(const std::vector<std::int32_t>& lengths, std::int32_t step,
                                   bool few) {
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
inline LocalSystem<double> nodes_of(const std::vector<std::int32_t>& neighbours, std::int32_t apart,
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
inline Share share_of(const LocalSystem<double>& local, std::int32_t cut, const Codes& codes,
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

inline Share share_of(const LocalSystem<double>& local, std::int32_t cut, bool compress,
                      Sharing interior = {}, Sharing boundary = {}) {
  return share_of(local, cut, Codes{compress, compress}, interior, boundary);
}
// For lanes that share rows on chip.
inline Share simple_share_of(const LocalSystem<double>& local, std::int32_t cut, Sharing interior,
                             Sharing boundary) {
  return share_of(local, cut, Codes{true, false, true, false}, interior, boundary);
}

inline std::vector<double> operand(std::size_t size, int product) {
  std::vector<double> x(size);
  for (std::size_t i = 0; i < size; ++i) x[i] = std::cos(static_cast<double>(i) + 0.3 * product);
  return x;
}

// The sum of a lane of those that share a row, which has `run` of its entries in turn: within the
// slice, then the tail, by lanes.
inline double lane_sum(const Share& s, const WarpSlice& slice,
                       std::pair<std::int64_t, std::int64_t> row, int lane, const LaneRows& rows,
                       const std::vector<double>& x) {
  const LocalSystem<double>& local = s.source.local;
  const std::int64_t run = rows.lanes_log2 > 0 ? rows.run : 1;
  double sum = 0.0;
  double part[kSliceRows] = {};
  std::int64_t place = 0;
  for (std::int64_t e = row.first; e < row.second; ++e) {
    if ((e - row.first) / run % (1 << rows.lanes_log2) != lane) continue;
    const bool rounded = place < slice.width && lists_all(slice.tails);
    const double value = rounded ? static_cast<float>(local.val[at(e)]) : local.val[at(e)];
    const double product = value * x[at(local.col[at(e)])];
    if (place < slice.width)
      sum += product;
    else
      part[(place - slice.width) % kSliceRows] += product;
    ++place;
  }
  for (int half = kSliceRows / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  return goes_beyond(slice.tails) ? sum + part[0] : sum;
}

// The sums of rows in the order of the format.
inline std::vector<double> expected(const Share& s, const std::vector<double>& x) {
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

inline double number(double sum) { return sum; }
inline double number(const AccurateSum<double>& sum) { return -sum.below(0.0); }

// As long as there is no more than the rounding of the format's sums between them.
inline bool sums_right(const Share& s, const std::vector<double>& x, const std::vector<double>& y) {
  const auto want = expected(s, x);
  bool right = true;
  for (std::size_t i = 0; i < want.size(); ++i)
    right = right && std::abs(y[i] - want[i]) <= 1e-13 * (1.0 + std::abs(want[i]));
  return right;
}

// Those of accurate sums differ from the exact ones by the rounding of the result alone.
inline bool accurate_sums_right(const Share& s, const std::vector<double>& x,
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

}  // namespace slice_share
