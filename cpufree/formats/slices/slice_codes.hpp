// How slices store columns and values, and who reads them: the choice of the code is made once for
// a slice, outside of the loops over its entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpufree/base/annotate.hpp"
#include "cpufree/formats/accurate_sum.hpp"
#include "cpufree/formats/slices/slice_entries.hpp"

namespace cpufree {

// How a slice stores its columns: as they are; as the distance from base[0] in 16 bits; as the
// number of a window and the distance from its base; the latter of the first one of each run; the
// same, distances in threes.
enum class ColumnCode : std::int32_t { plain, near, far, runs, node_runs };
CPUFREE_FN constexpr bool in_runs(ColumnCode code) { return code >= ColumnCode::runs; }
// Columns from one code of a window to the next.
CPUFREE_FN constexpr std::int32_t window_step(ColumnCode code) {
  return code == ColumnCode::node_runs ? kRun : 1;
}

// The windows of a slice's codes. Near columns are those of four windows one behind the other.
CPUFREE_KERNEL_FN FarColumns windows_of(ColumnCode code, const std::int32_t (&base)[kWindows]) {
  if (code != ColumnCode::near) return {{base[0], base[1], base[2], base[3]}};
  const auto window = [&](int w) { return base[0] + (w << kWindowBits); };
  return {{window(0), window(1), window(2), window(3)}};
}

// What occurs in the shares that a kernel reads: a set, as bits. Code for what does not occur costs
// registers and instruction cache (StocF-1465 took 99 us an iteration in a kernel for any slices
// instead of 92), and most of the time of the compiler: two thirds of it, for the default
// method. So a kernel that is compiled when it is first used is for what its matrix has, and one
// that is built in for more.
using SliceKinds = std::uint32_t;
inline constexpr SliceKinds kSingles = 1;         // slices of single columns, in any code
inline constexpr SliceKinds kRuns = 2;            // slices whose columns come in runs
inline constexpr SliceKinds kPlainValues = 4;     // values as they are
inline constexpr SliceKinds kCodedValues = 8;     // numbers in a dictionary
inline constexpr SliceKinds kSimpleColumns = 16;  // shares that are Simple::columns
inline constexpr SliceKinds kSimpleRuns = 32;     // shares that are Simple::runs
inline constexpr SliceKinds kHaloPackets = 64;    // ghosts of other PEs that arrive as packets
inline constexpr SliceKinds kAllKinds = 127;
// Not among them: values as they are lie there twice, rounded to single precision for products, and
// in full for accurate ones. A kernel that reads them so reads no others.
inline constexpr SliceKinds kSingleValues = 128;

// Which slices a kernel reads: a policy of the kernel. `on_chip`: simple shares (Simple) alone,
// values as they are, that stay on chip with all operands but those of cold products, of blocks
// whose halos are packets. `shares_rows`: lanes may. `stores`: halos are stores, whatever a kernel
// is given.
template <SliceKinds kKinds>
struct SlicesOf {
  static_assert((kKinds & (kSingles | kRuns)) != 0 &&
                (kKinds & (kPlainValues | kCodedValues)) != 0);
  static constexpr SliceKinds kinds = kKinds;
  static constexpr bool on_chip = false;
  static constexpr bool shares_rows = false;
  static constexpr bool stores = false;
};
// The same where lanes may share rows of slices that are read where they are, and halos are stores.
template <SliceKinds kKinds>
struct SharedSlicesOf : SlicesOf<kKinds> {
  static constexpr bool shares_rows = true;
  static constexpr bool stores = true;
};
using AnySlices = SlicesOf<kAllKinds>;
using SlicesWithoutRuns = SlicesOf<kAllKinds & ~(kRuns | kSimpleRuns)>;
template <SliceKinds kKinds>
struct SlicesOnChipOf {
  static_assert((kKinds & (kSimpleColumns | kSimpleRuns)) != 0);
  static constexpr SliceKinds kinds = kKinds;
  static constexpr bool on_chip = true;
  static constexpr bool shares_rows = true;
  static constexpr bool stores = false;
};
using SlicesOnChip = SlicesOnChipOf<kAllKinds>;

constexpr bool has_kind(SliceKinds kinds, SliceKinds one) { return (kinds & one) != 0; }
// Whether products of a kernel read values in single precision: those with the operand X.
template <class Format, class X>
constexpr bool reads_singles() {
  if constexpr (requires { Format::kinds; })
    return has_kind(Format::kinds, kSingleValues) && !is_cold<std::remove_cvref_t<X>>;
  return false;
}
// In what values as they are lie in slices of these kinds.
template <class T, SliceKinds kKinds>
using StoredAs = std::conditional_t<has_kind(kKinds, kSingleValues), float, T>;
using SingleSlices = SlicesOf<kAllKinds | kSingleValues>;
// What occurs in simple shares on chip, values as they are.
constexpr SliceKinds kinds_of_simple(SliceKinds kinds) {
  return kPlainValues | (has_kind(kinds, kSimpleColumns) ? kSingles : 0) |
         (has_kind(kinds, kSimpleRuns) ? kRuns : 0);
}

// How many loops single columns have: one for each code; one for near and far ones, where runs have
// another.
enum class Loops { all, few };

// f(the entries of a row in the chunk that begins at `at`). `numbers`: values are numbers in the
// dictionary.
template <class T, SliceKinds kKinds, Loops kLoops, class D, class F>
CPUFREE_KERNEL_FN T with_entries(ColumnCode code, const std::int32_t (&base)[kWindows],
                                 bool numbers, const D& dictionary, const std::byte* at, int lane,
                                 F&& f) {
  using Plain = PlainValues<T, StoredAs<T, kKinds>>;
  const auto with_values = [&]<template <class, class, class> class Entries, class C>(
                               const C& columns) {
    constexpr bool plain = has_kind(kKinds, kPlainValues), coded = has_kind(kKinds, kCodedValues);
    if constexpr (plain && coded) {
      if (!numbers) return f(Entries<T, C, Plain>{at, lane, columns, {}});
      return f(Entries<T, C, CodedValues<T, D>>{at, lane, columns, {dictionary}});
    } else if constexpr (coded) {
      return f(Entries<T, C, CodedValues<T, D>>{at, lane, columns, {dictionary}});
    } else {
      return f(Entries<T, C, Plain>{at, lane, columns, {}});
    }
  };
  const auto runs = [&] {
    return with_values.template operator()<RunEntries>(
        WideColumns{windows_of(code, base), window_step(code)});
  };
  if (code == ColumnCode::plain) return f(PlainEntries<T, StoredAs<T, kKinds>>{at, lane});
  if constexpr (!has_kind(kKinds, kSingles)) {
    return runs();
  } else {
    if constexpr (has_kind(kKinds, kRuns))
      if (in_runs(code)) return runs();
    if constexpr (kLoops == Loops::all)
      if (code == ColumnCode::near)
        return with_values.template operator()<CodedEntries>(NearColumns{base[0]});
    return with_values.template operator()<CodedEntries>(windows_of(code, base));
  }
}

}  // namespace cpufree
