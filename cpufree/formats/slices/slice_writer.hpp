// Writes the entries of a slice into its bytes (warp_slices.hpp). For host and kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/formats/slices/slice_choice.hpp"

namespace cpufree {

// Writes one slice, all places of which are known by number. `Numbers`: number(value) is that of a
// value in the dictionary; null where values are as they are, or in single precision.
template <class T, class Numbers>
class SliceWriter {
 public:
  CPUFREE_FN SliceWriter(const WarpSlice& slice, const Numbers* numbers, bool single, std::byte* to)
      : slice_(slice),
        coded_(slice.code != ColumnCode::plain),
        numbers_(coded_ ? numbers : nullptr),
        single_(single),
        to_(to) {}

  // Entry k of row l. Of a run, the first one's column counts.
  CPUFREE_FN void put(int l, std::int64_t k, std::int32_t column, T value) const {
    if (in_runs(slice_.code)) return put_in_run(l, k, column, value);
    const std::int64_t first = k / kChunkWidth * kChunkWidth;  // of the chunk
    const std::int64_t left = slice_.width - first;
    const std::int64_t n = left < kChunkWidth ? left : kChunkWidth;
    const std::int64_t column_bytes = coded_ ? 2 : 4;
    const std::int64_t from = kSliceRows * first * (column_bytes + value_bytes());
    const std::int64_t place = place_of(l, k - first, n);
    if (coded_)
      store(place, static_cast<std::uint16_t>(code_of(slice_, column)), from);
    else
      store(place, column, from);
    put_value(place, value, from + kSliceRows * n * column_bytes);
  }

  // All places of a lane; `any`: see each_run_of.
  template <class Source>
  CPUFREE_FN void put_lane(const Source& source, const LaneRows& rows, int l,
                           std::int32_t any) const {
    if (!in_runs(slice_.code)) {
      each_place_of(source, rows, slice_.width, l,
                    [&](std::int64_t k, std::int64_t entry, std::int32_t column) {
                      put(l, k, column, entry < 0 ? T{0} : source.value(entry));
                    });
      return;
    }
    each_run_of(source, rows, slice_.width, l, any,
                [&](std::int64_t k, std::int64_t run, std::int32_t column) {
                  for (int q = 0; q < kRun; ++q)
                    put(l, k + q, column, run < 0 ? T{0} : source.value(run + q));
                });
  }

 private:
  CPUFREE_FN std::int64_t value_bytes() const {
    if (numbers_ != nullptr) return 1;
    return static_cast<std::int64_t>(single_ ? sizeof(float) : sizeof(T));
  }
  CPUFREE_FN void put_value(std::int64_t place, T value, std::int64_t from) const {
    if (numbers_ != nullptr)
      store(place, numbers_->number(value), from);
    else if (single_)
      store(place, static_cast<float>(value), from);
    else
      store(place, value, from);
  }
  CPUFREE_FN void put_in_run(int l, std::int64_t k, std::int32_t column, T value) const {
    const std::int64_t from = kSliceRows * (k / kRun) * (2 + kRun * value_bytes());
    const std::int64_t in_run = k % kRun;
    if (in_run == 0) store(l, static_cast<std::uint16_t>(code_of(slice_, column)), from);
    put_value(in_run < 2 ? 2 * l + in_run : 2 * kSliceRows + l, value, from + kSliceRows * 2);
  }
  // In a chunk of n: pairs if coded, and what is left over behind them.
  CPUFREE_FN std::int64_t place_of(int l, std::int64_t k, std::int64_t n) const {
    if (!coded_ || k == n - n % 2) return kSliceRows * k + l;
    return 2 * (kSliceRows * (k / 2) + l) + k % 2;
  }
  // Chunks and what they hold are aligned to their values: 32 of each lie side by side.
  template <class V>
  CPUFREE_FN void store(std::int64_t place, V value, std::int64_t from) const {
    *reinterpret_cast<V*>(to_ + from + place * static_cast<std::int64_t>(sizeof(V))) = value;
  }

  const WarpSlice& slice_;
  bool coded_;
  const Numbers* numbers_;
  bool single_;
  std::byte* to_;
};

// A place in a table of values that is hashed by their bits.
inline constexpr std::uint32_t kValuePlaces = 4 * kMostValues;
CPUFREE_FN std::uint32_t value_place(std::uint64_t bits) {
  return static_cast<std::uint32_t>(bits * 0x9e3779b97f4a7c15U >> 40U) % kValuePlaces;
}

}  // namespace cpufree
