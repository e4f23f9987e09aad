// How slices store columns and values, and who reads them: the choice of the code is made once for
// a slice, outside of the loops over its entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/formats/any_entries.hpp"
#include "cpufree/formats/slice_entries.hpp"

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

// Codes that have loops of their own. Each takes room in the instruction cache, whether it occurs
// or not: all of them; those of single columns, runs not occurring; runs, the other codes sharing
// one.
enum class CompiledCodes { all, singles, runs };

// Which slices a kernel reads: a policy of the kernel, as code for what does not occur costs
// registers and instruction cache (StocF-1465 took 99 us an iteration in a kernel for any slices
// instead of 92). `runs`: columns that come in runs, too. `on_chip`: simple shares (Simple) alone,
// values as they are, that stay on chip with all operands but those of cold products, of blocks
// whose halos are packets; lanes may share rows.
struct AnySlices {
  static constexpr bool runs = true;
  static constexpr bool on_chip = false;
};
struct SlicesWithoutRuns {
  static constexpr bool runs = false;
  static constexpr bool on_chip = false;
};
struct SlicesOnChip {
  static constexpr bool runs = true;
  static constexpr bool on_chip = true;
};

// f(the entries of a row in the chunk that begins at `at`). `numbers`: values are numbers in the
// dictionary.
template <class T, CompiledCodes kCompiled, class D, class F>
CPUFREE_KERNEL_FN T with_entries(ColumnCode code, const std::int32_t (&base)[kWindows],
                                 bool numbers, const D& dictionary, const std::byte* at, int lane,
                                 F&& f) {
  const auto with_values =
      [&]<template <class, class, class> class Entries, class C>(const C& columns) {
        if (!numbers) return f(Entries<T, C, PlainValues<T>>{at, lane, columns, {}});
        return f(Entries<T, C, CodedValues<T, D>>{at, lane, columns, {dictionary}});
      };
  if (code == ColumnCode::plain) return f(PlainEntries<T>{at, lane});
  if constexpr (kCompiled != CompiledCodes::singles)
    if (in_runs(code))
      return with_values.template operator()<RunEntries>(
          WideColumns{windows_of(code, base), window_step(code)});
  if constexpr (kCompiled != CompiledCodes::runs)
    if (code == ColumnCode::near)
      return with_values.template operator()<CodedEntries>(NearColumns{base[0]});
  return with_values.template operator()<CodedEntries>(windows_of(code, base));
}

template <class T, class D>
CPUFREE_KERNEL_FN AnyEntries<T, D> any_entries(ColumnCode code,
                                               const std::int32_t (&base)[kWindows], bool numbers,
                                               const D& dictionary, int lane) {
  using Kind = typename AnyEntries<T, D>::Kind;
  const Kind kind = code == ColumnCode::plain ? Kind::plain
                    : in_runs(code)           ? Kind::runs
                                              : Kind::coded;
  return {kind, {windows_of(code, base), window_step(code)}, numbers, dictionary, lane};
}

}  // namespace cpufree
