#include "cpufree/formats/factor_slices_build.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

constexpr int kWindow = 16;  // slices of rows that are sorted together
constexpr std::int32_t kNarrow = std::numeric_limits<std::uint16_t>::max();

std::int64_t length_of(const SparseFactor& factor, std::int32_t row) {
  return factor.row_ptr[at(row) + 1] - factor.row_ptr[at(row)];
}

// Appends a slice of some rows, at least one; places of their columns begin at `base`.
class FactorWriter {
 public:
  FactorWriter(const SparseFactor& factor, const PrivatePlaces& places, int width, SlicedFactor& to)
      : factor_(factor), places_(places), width_(width), to_(to) {}

  void append(std::span<const std::int32_t> rows, std::int64_t first_place) {
    FactorSlice head;
    head.first = std::ssize(to_.value);
    std::int32_t last = 0;
    head.base = std::numeric_limits<std::int32_t>::max();
    for (const std::int32_t row : rows) {
      head.length = std::max(head.length, static_cast<std::int32_t>(length_of(factor_, row)));
      for (auto k = at(factor_.row_ptr[at(row)]); k < at(factor_.row_ptr[at(row) + 1]); ++k) {
        head.base = std::min(head.base, places_.place[at(factor_.col[k])]);
        last = std::max(last, places_.place[at(factor_.col[k])]);
      }
    }
    head.wide = last - head.base > kNarrow ? 1 : 0;
    head.column = head.wide != 0 ? std::ssize(to_.wide) : std::ssize(to_.narrow);
    for (std::int32_t k = 0; k < head.length; ++k)
      for (int l = 0; l < width_; ++l) {
        // Lanes without a row do as the first one, and add nothing.
        const bool there = l < std::ssize(rows);
        append_entry(head, rows[there ? at(l) : 0], k, there);
      }
    for (int l = 0; l < width_; ++l)
      to_.row.push_back(l < std::ssize(rows) ? static_cast<std::int32_t>(
                                                   places_.place[at(rows[at(l)])] - first_place)
                                             : -1);
    to_.slice.push_back(head);
  }

 private:
  void append_entry(const FactorSlice& head, std::int32_t row, std::int32_t k, bool there) {
    const std::int64_t length = length_of(factor_, row);
    const bool real = there && k < length;
    const auto entry = at(factor_.row_ptr[at(row)] + std::min<std::int64_t>(k, length - 1));
    const std::int32_t column = places_.place[at(factor_.col[entry])] - head.base;
    to_.value.push_back(real ? factor_.val[entry] : 0.0F);
    if (head.wide != 0)
      to_.wide.push_back(column);
    else
      to_.narrow.push_back(static_cast<std::uint16_t>(column));
  }

  const SparseFactor& factor_;
  const PrivatePlaces& places_;
  int width_;
  SlicedFactor& to_;
};

std::vector<std::int32_t> blocks_of_rows(const PrivatePlaces& places) {
  std::vector<std::int32_t> block(places.place.size());
  for (std::size_t b = 0; b < places.rows.size(); ++b)
    for (const std::int32_t row : places.rows[b]) block[at(row)] = static_cast<std::int32_t>(b);
  return block;
}

}  // namespace

double SlicedFactor::bytes() const {
  return static_cast<double>(slice.size() * sizeof(FactorSlice) +
                             row.size() * sizeof(std::int32_t) + value.size() * sizeof(float) +
                             narrow.size() * sizeof(std::uint16_t) +
                             wide.size() * sizeof(std::int32_t));
}

// Rows are sorted by length within windows, so that those of a slice stay near one another, and so
// what they read; rows with as many entries stay in the order of their places.
std::vector<SlicedFactor> slice_factor(const SparseFactor& factor, const PrivatePlaces& places,
                                       int width) {
  const std::size_t window = at(kWindow) * at(width);
  std::vector<SlicedFactor> blocks(places.rows.size());
  in_parallel(static_cast<int>(blocks.size()), [&](int block) {
    FactorWriter writer(factor, places, width, blocks[at(block)]);
    std::vector<std::int32_t> rows = places.rows[at(block)];
    std::ranges::sort(rows, {}, [&](std::int32_t row) { return places.place[at(row)]; });
    const std::span<std::int32_t> all(rows);
    for (std::size_t first = 0; first < rows.size(); first += window) {
      const auto part = all.subspan(first, std::min(window, rows.size() - first));
      std::ranges::stable_sort(part, {}, [&](std::int32_t row) { return -length_of(factor, row); });
      for (std::size_t slice = 0; slice < part.size(); slice += at(width))
        writer.append(part.subspan(slice, std::min(at(width), part.size() - slice)),
                      places.first[at(block)]);
    }
  });
  return blocks;
}

std::vector<std::vector<std::int32_t>> factor_partners(const std::vector<SparseFactor>& factors,
                                                       const PrivatePlaces& places) {
  const std::size_t blocks = places.rows.size();
  const std::vector<std::int32_t> block = blocks_of_rows(places);
  std::vector<char> meet(blocks * blocks, 0);
  const auto mark = [&](std::size_t pair) {
    const std::atomic_ref one(meet[pair]);
    if (one.load(std::memory_order_relaxed) == 0) one.store(1, std::memory_order_relaxed);
  };
  constexpr std::size_t kRows = 20'000;  // that are worth a thread
  for (const SparseFactor& factor : factors) {
    const std::size_t rows = factor.row_ptr.size() - 1;
    in_parallel(static_cast<int>(rows / kRows) + 1, [&](int part) {
      const std::size_t end = std::min(rows, (at(part) + 1) * kRows);
      for (std::size_t row = at(part) * kRows; row < end; ++row)
        for (auto k = at(factor.row_ptr[row]); k < at(factor.row_ptr[row + 1]); ++k) {
          const std::size_t a = at(block[row]), b = at(block[at(factor.col[k])]);
          if (a != b) mark(a * blocks + b), mark(b * blocks + a);
        }
    });
  }
  std::vector<std::vector<std::int32_t>> partners(blocks);
  for (std::size_t a = 0; a < blocks; ++a)
    for (std::size_t b = 0; b < blocks; ++b)
      if (meet[a * blocks + b] != 0) partners[a].push_back(static_cast<std::int32_t>(b));
  return partners;
}

}  // namespace cpufree
