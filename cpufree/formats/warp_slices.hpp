// Matrix format: slices of 32 rows, entries column by column ("sliced ELL"), for engines whose
// threads run in warps of 32: one row per thread, coalesced loads. A slice is as wide as most of
// its rows need; what longer rows have beyond that is a tail of its own, which the whole warp sums.
//
// Columns take 16 bits where they lie within 65 536 of one another, or in four windows of 16 384;
// values take 8 bits in a block's share that has at most 256 different ones. Nothing is lost: sums
// are the same to the last bit in every code. Coded entries lie in pairs, one load for two. Where
// all rows of a slice come in runs of three neighbouring columns, as those of meshes whose nodes
// have three unknowns do, only the first one of a run is stored: 2/3 of a byte an entry instead of
// 2.
//
// A slice lies in chunks of eight columns of entries, or three runs. They are what is summed at a
// time; what travels at a time, where a block brings its share on chip piece by piece
// (slice_ring.hpp), is one chunk, or several of them if they are small: a portion.
//
// In mixed precision (Codes::single) values as they are are rounded there, and the tails of such
// slices are whole rows, in full, which accurate products read.
//
// Long rows are better shared among 2^s neighbouring lanes (`lanes_log2` s): these read
// neighbouring entries of a row at a time, whose columns, and so operands, lie side by side. A
// slice then has 32 / 2^s rows, entry k of a row belongs to lane k mod 2^s of its lanes, or to lane
// k / 3 mod 2^s where rows come in runs, and what is said of a slice's rows below is said of its
// lanes. Such slices come through rings, or stay on chip, or are for kernels that say so
// (SharedSlicesOf).
//
// Order of summation of a lane: its entries within the slice in the order of the columns, one after
// the other; then its tail, entry k by lane k mod 32, lanes by halves. The lanes of a row are
// summed by halves, too. It depends on the matrix and on how its rows are divided, and on nothing
// else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpufree/base/index.hpp"
#include "cpufree/device/block.hpp"
#include "cpufree/device/port.hpp"
#include "cpufree/formats/accurate_sum.hpp"
#include "cpufree/formats/any_entries.hpp"
#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/formats/slices/slice_entries.hpp"
#include "cpufree/formats/slices/slice_ring.hpp"
#include "cpufree/formats/slices/slice_sums.hpp"
#include "cpufree/formats/slices/slice_turns.hpp"
#include "cpufree/formats/warp_slice.hpp"

namespace cpufree {

// One block's share of a matrix: its slices, interior rows first, each range of rows beginning with
// a slice of its own.
template <class T>
struct WarpSlices {
  using Value = T;
  using Single = WarpSlices<float>;  // the same with values in single precision
  const std::byte* bytes = nullptr;
  const WarpSlice* slice = nullptr;
  const std::int64_t* tail_ptr = nullptr;
  const std::int32_t* tail_col = nullptr;
  const T* tail_val = nullptr;
  const T* dictionary = nullptr;  // null: values are not coded
  WarpSlicesSize size;
  Simple simple = Simple::no;  // size's, on chip: there a slice's head is not worth prefetching
  SliceRing ring = {};

  using Rows = SliceRows;

  // Calls f(row, lane) for all rows of the range, each from the thread that gets its product.
  template <class Format = AnySlices, class P, class F>
  CPUFREE_KERNEL_FN static void each(P& port, const Rows& rows, F&& f) {
    if constexpr (!BulkPort<P> && !Format::shares_rows) {
      for_each(port, rows.begin, rows.end, f);
    } else {
      each_thin(port, rows, f);
    }
  }

  // Calls f(row, lane, (A x)(row)) for all rows of the range, each from the thread to which `each`
  // gives that row. `x` is the operand (Operand, PacketOperand, ColdOperand of one of them). Of
  // `port` all that is used is the thread's number, how many there are, and what its warp can do.
  // With rings, products with interior and with boundary rows alternate.
  template <class Format = AnySlices, class P, class X, class F>
  CPUFREE_KERNEL_FN void multiply(P& port, const Rows& rows, X&& x, F&& f) const {
    static_assert(P::warp_width == kSliceRows, "a warp has a lane for each row of a slice");
    if constexpr (BulkPort<P>) return multiply_streamed<Format>(port, rows, x, f);
    if constexpr (Format::on_chip) return multiply_on_chip<Format::kinds>(port, rows, x, f);
    if constexpr (!Format::on_chip && Format::shares_rows)
      return multiply_in_place<Format::kinds>(port, rows, x, f);
    const int lane = port.lane() % P::warp_width;
    const int warps = port.lanes() / P::warp_width;
    std::int32_t row = rows.begin + port.lane();
    std::int32_t s = rows.start + port.lane() / P::warp_width;
    if (row - lane >= rows.end) return;
    const Rows from{row, rows.end, s};
    constexpr bool rare = std::remove_cvref_t<X>::in_pieces;
    constexpr SliceKinds kKinds = Format::kinds;
    if constexpr (!rare && has_kind(kKinds, kSimpleColumns))
      if (simple == Simple::columns)
        return multiply_simple<kKinds, CodedEntries>(from, lane, warps, x, f);
    if constexpr (!rare && has_kind(kKinds, kSimpleRuns))
      if (simple == Simple::runs)
        return multiply_simple<kKinds, RunEntries>(from, lane, warps, x, f);
    SliceHead mine = slice[s];
    while (true) {
      const std::int32_t next = row + port.lanes();
      SliceHead ahead = mine;
      if (next - lane < rows.end) ahead = slice[s + warps];  // on its way while this one is summed
      SumOf<T, X> sum = slice_sum<kKinds>(mine, slice[s].base, lane, x);
      add_tail<kKinds>(port, mine, lane, x, sum);
      if (row < rows.end) f(row, 0, sum);
      if (next - lane >= rows.end) return;
      mine = ahead;
      row = next;
      s += warps;
    }
  }

  // The same of f(row, read(row), (A x)(row)) for kernels whose lanes share rows: what read(row)
  // loads is on its way while the row is summed, as is the next slice's head.
  template <class Format, class P, class X, class G, class F>
  CPUFREE_KERNEL_FN void multiply_reading(P& port, const Rows& rows, X&& x, G&& read, F&& f) const {
    static_assert(Format::shares_rows && !Format::on_chip);
    multiply_shared<Format::kinds>(port, rows, x, read, f);
  }

  // What the slice s holds of its row `lane`, times x: all but its tail.
  template <class X>
  CPUFREE_KERNEL_FN T without_tail(std::int32_t s, int lane, X&& x) const {
    return slice_sum<kAllKinds>(slice[s], slice[s].base, lane, x);
  }

  // Before the first product, and after the last one: the ring, where there is one.
  template <class P>
  CPUFREE_KERNEL_FN void open(P& port) const {
    if constexpr (BulkPort<P>) RingReader<P>::open(port, ring);
  }
  template <class P>
  CPUFREE_KERNEL_FN void close(P& port) const {
    if constexpr (BulkPort<P>) RingReader<P>(port, ring).drain();
  }

  // My block's share where it is, but for the dictionary, of which a copy goes to `values` (not
  // null): a look into it is as frequent as one into the operand. Rings are to begin at `rings`. A
  // barrier is to follow.
  template <Port P>
  CPUFREE_KERNEL_FN WarpSlices streamed(P& port, std::byte* values, const RingShape& shape,
                                        std::byte* rings) const {
    WarpSlices copy = *this;
    if (values != nullptr && dictionary != nullptr)
      copy.dictionary = move_on_chip(port, dictionary, size.values, values);
    copy.ring.fast = rings;
    copy.ring.shape = shape;
    return copy;
  }

  // A copy of my block's share in `fast`. Ends with a barrier.
  template <Port P>
  CPUFREE_KERNEL_FN WarpSlices resident(P& port, std::byte* fast) const {
    struct alignas(16) Sixteen {
      std::uint64_t words[2];
    };
    WarpSlices copy = *this;
    copy.simple = size.simple;
    copy.bytes = reinterpret_cast<const std::byte*>(move_on_chip(
        port, reinterpret_cast<const Sixteen*>(bytes), size.units * (kSliceUnit / 16), fast));
    copy.slice = move_on_chip(port, slice, size.slices, fast);
    copy.tail_ptr = move_on_chip(port, tail_ptr, size.tails, fast);
    copy.tail_col = move_on_chip(port, tail_col, size.tail_entries, fast);
    copy.tail_val = move_on_chip(port, tail_val, size.tail_entries, fast);
    if (dictionary != nullptr) copy.dictionary = move_on_chip(port, dictionary, size.values, fast);
    port.sync_block();
    return copy;
  }

 private:
  template <class, int>
  friend class WarpColumns;
  using Sums = SliceSums<T>;

  // The same for a simple share; `from`: my first row, and my warp's first slice. Small systems
  // spend their time here, in the number of instructions.
  template <SliceKinds kKinds, template <class, class, class> class Entries, class X, class F>
  CPUFREE_KERNEL_FN void multiply_simple(const Rows& from, int lane, int warps, X&& x,
                                         F&& f) const {
    constexpr bool plain = has_kind(kKinds, kPlainValues);
    if constexpr (has_kind(kKinds, kCodedValues))
      if (!plain || dictionary != nullptr)
        return multiply_entries<Entries>(from, lane, warps, CodedValues<T>{dictionary}, x, f);
    if constexpr (plain)
      multiply_entries<Entries>(from, lane, warps, PlainValues<T, StoredAs<T, kKinds>>{}, x, f);
  }
  template <template <class, class, class> class Entries, class V, class X, class F>
  CPUFREE_KERNEL_FN void multiply_entries(const Rows& from, int lane, int warps, const V& values,
                                          X&& x, F&& f) const {
    const WarpSlice* mine = slice + from.start;
    const std::int32_t step = kSliceRows * warps;
    for (std::int32_t row = from.begin; row - lane < from.end; row += step, mine += warps) {
      const T sum = simple_sum<Entries>(*mine, bytes, lane, values, x);
      if (row < from.end) f(row, 0, sum);
    }
  }
  template <template <class, class, class> class Entries, class V, class X>
  CPUFREE_KERNEL_FN static T simple_sum(const SliceHead& mine, const std::byte* all, int lane,
                                        const V& values, X&& x) {
    using E = Entries<T, SimpleColumns, V>;
    return Sums::chunks_sum(mine.width, E{all + kSliceUnit * mine.first, lane, {}, values}, x);
  }

  // What a slice holds of my row, times x: all but its tail.
  template <SliceKinds kKinds, class X>
  CPUFREE_KERNEL_FN SumOf<T, X> slice_sum(const SliceHead& mine,
                                          const std::int32_t (&base)[kWindows], int lane,
                                          X&& x) const {
    const std::byte* const at = bytes + kSliceUnit * mine.first;
    if constexpr (has_kind(kKinds, kSingleValues) && is_cold<std::remove_cvref_t<X>>)
      if (lists_all(mine.tails)) return {};
    if constexpr (std::remove_cvref_t<X>::in_pieces) {
      const auto entries =
          any_entries<T, kKinds>(mine.code, base, dictionary != nullptr, dictionary, lane);
      return Sums::any_sum(entries, at, mine.width, x, [&](const std::byte* here, bool) {
        return here + entries.chunk_bytes();
      });
    } else {
      return each_code_sum<kKinds>(mine, base, at, lane, x);
    }
  }
  template <SliceKinds kKinds, class X>
  CPUFREE_KERNEL_FN T each_code_sum(const SliceHead& mine, const std::int32_t (&base)[kWindows],
                                    const std::byte* at, int lane, X&& x) const {
    const T* const known = dictionary;
    return with_entries<T, kKinds, Loops::all>(
        mine.code, base, known != nullptr, known, at, lane,
        [&](auto entries) { return Sums::chunks_sum(mine.width, entries, x); });
  }

  // The rows of a range, by way of the ring.
  template <class Format, class P, class X, class F>
  CPUFREE_KERNEL_FN void multiply_streamed(P& port, const Rows& rows, X&& x, F&& f) const {
    const int lane = port.lane() % P::warp_width;
    if (!has_rows(port, rows)) return;
    if constexpr (has_kind(Format::kinds, kSingleValues) && is_cold<std::remove_cvref_t<X>>)
      return multiply_in_place<Format::kinds>(port, rows, x, f);  // the ring goes on later
    RingReader<P> reader(port, ring);
    each_turn<SumOf<T, X>>(port, rows, f,
                           [&](std::int32_t) { return next_slice<Format>(port, reader, lane, x); });
    reader.put_down();
  }

  // The rows of a range, which lanes may share, of slices that are where they are.
  template <SliceKinds kKinds, class P, class X, class G, class F>
  CPUFREE_KERNEL_FN void multiply_shared(P& port, const Rows& rows, X&& x, G&& read, F&& f) const {
    const int lane = port.lane() % P::warp_width;
    if (!has_rows(port, rows)) return;
    bool first = true;
    SliceHead ahead = {};
    each_turn_reading<SumOf<T, X>>(port, rows, read, f, [&](std::int32_t s, std::int32_t next) {
      if (first) ahead = slice[s];
      first = false;
      const SliceHead mine = ahead;
      ahead = slice[next];
      SumOf<T, X> sum = slice_sum<kKinds>(mine, slice[s].base, lane, x);
      add_tail<kKinds>(port, mine, lane, x, sum);
      return sum;
    });
  }
  template <SliceKinds kKinds, class P, class X, class F>
  CPUFREE_KERNEL_FN void multiply_in_place(P& port, const Rows& rows, X&& x, F&& f) const {
    multiply_shared<kKinds>(
        port, rows, x, [](std::int32_t) { return 0; },
        [&](std::int32_t row, int, const SumOf<T, X>& sum) { f(row, 0, sum); });
  }

  // The rows of a range, of a simple share on chip, values as they are.
  template <SliceKinds kKinds, class P, class X, class F>
  CPUFREE_KERNEL_FN void multiply_on_chip(P& port, const Rows& rows, X&& x, F&& f) const {
    const int lane = port.lane() % P::warp_width;
    if (!has_rows(port, rows)) return;
    const std::byte* const all = port.on_chip(bytes);
    const WarpSlice* const slices = port.on_chip(slice);
    each_turn<SumOf<T, X>>(port, rows, f, [&](std::int32_t s) {
      return on_chip_sum<kKinds>(slices[s], all, lane, x);
    });
  }
  template <SliceKinds kKinds, class X>
  CPUFREE_KERNEL_FN SumOf<T, X> on_chip_sum(const WarpSlice& mine, const std::byte* all, int lane,
                                            X&& x) const {
    if constexpr (is_cold<std::remove_cvref_t<X>>)
      return slice_sum<kinds_of_simple(kKinds)>(mine, mine.base, lane, x);
    else if (!has_kind(kKinds, kSimpleColumns) ||
             (has_kind(kKinds, kSimpleRuns) && simple == Simple::runs))
      return simple_sum<RunEntries>(mine, all, lane, PlainValues<T>{}, x);
    else
      return simple_sum<CodedEntries>(mine, all, lane, PlainValues<T>{}, x);
  }

  // What the next slice of the ring holds of my lane, times x. Its head is not known before its
  // first chunk is there.
  template <class Format, class P, class R, class X>
  CPUFREE_KERNEL_FN SumOf<T, X> next_slice(P& port, R& reader, int lane, X&& x) const {
    const std::byte* const at = reader.wait();
    const WarpSlice mine = *reinterpret_cast<const WarpSlice*>(reader.head());
    const auto known = port.in_fast_memory(dictionary);
    SumOf<T, X> sum = {};
    constexpr bool runs = has_kind(Format::kinds, kRuns);
    if constexpr (std::remove_cvref_t<X>::in_pieces)
      sum = any_portions(
          reader, at, mine,
          any_entries<T, Format::kinds>(mine.code, mine.base, dictionary != nullptr, known, lane),
          x);
    else
      sum =
          portions<Format::kinds, runs ? Loops::few : Loops::all>(reader, at, mine, known, lane, x);
    add_tail<Format::kinds>(port, mine, lane, x, sum);
    return sum;
  }

  // The slice whose first portion is at hand; that of an operand in pieces in one code for all.
  template <SliceKinds kKinds, Loops kLoops, class R, class D, class X>
  CPUFREE_KERNEL_FN T portions(R& reader, const std::byte* at, const WarpSlice& mine,
                               const D& known, int lane, X&& x) const {
    return with_entries<T, kKinds, kLoops>(
        mine.code, mine.base, dictionary != nullptr, known, at, lane, [&](auto entries) {
          using E = decltype(entries);
          constexpr int kBytes = E::kChunkBytes;
          constexpr int kPortion = chunks_of_portion(kBytes);
          T part = 0;
          int room = kPortion;  // chunks of the portion at hand, if the slice is that long
          int left = mine.width;
          CPUFREE_ONE_COPY
          while (left >= E::kWidth) {
            std::int32_t column[E::kWidth];
            T operand[E::kWidth];
            T value[E::kWidth];
            entries.take_columns(column);
            x.fetch(column, operand);
            entries.take_values(value);
            left -= E::kWidth;
            const bool last = --room == 0 || left == 0;
            if (last) reader.next();  // while the operand is on its way
            CPUFREE_UNROLL
            for (int k = 0; k < E::kWidth; ++k) part += value[k] * operand[k];
            if (left == 0) return part;
            entries.at = last ? reader.wait() : entries.at + kBytes;
            if (last) room = kPortion;
          }
          std::int32_t column[E::kWidth] = {};
          T value[E::kWidth] = {};
          Sums::template take_some<E::kWidth - E::kGrain>(left, entries, column, value);
          reader.next();
          return Sums::times(column, value, left, x, part);
        });
  }
  template <class R, class E, class X>
  CPUFREE_KERNEL_FN static SumOf<T, X> any_portions(R& reader, const std::byte* at,
                                                    const WarpSlice& mine, const E& entries,
                                                    X&& x) {
    const int bytes = entries.chunk_bytes();
    const int portion = chunks_of_portion(bytes);
    int room = portion;
    return Sums::any_sum(entries, at, mine.width, x, [&](const std::byte* here, bool end) {
      const bool last = --room == 0 || end;
      if (last) reader.next();
      if (end) return here;
      if (last) room = portion;
      return last ? reader.wait() : here + bytes;
    });
  }

  template <SliceKinds kKinds, class P, class X>
  CPUFREE_KERNEL_FN void add_tail(P& port, const SliceHead& mine, int lane, X&& x,
                                  SumOf<T, X>& sum) const {
    if constexpr (has_kind(kKinds, kSingleValues)) {
      constexpr bool cold = is_cold<std::remove_cvref_t<X>>;
      if (lists_all(mine.tails) && (cold || goes_beyond(mine.tails)))
        sum += tail_sum(port, place_of_tails(mine.tails), lane, x, cold ? 0 : mine.width);
    }
    if (mine.tails >= 0) sum += tail_sum(port, mine.tails, lane, x);
  }

  // All of a lane's tail but its first `without` entries.
  template <class P, class X>
  CPUFREE_KERNEL_FN SumOf<T, X> tail_sum(P& port, std::int32_t tails, int lane, X&& x,
                                         std::int32_t without = 0) const {
    SumOf<T, X> sum = {};
    std::int64_t begin = tail_ptr[tails + lane] + without;
    std::int64_t end = tail_ptr[tails + lane + 1];
    for (unsigned rows = port.warp_ballot(begin < end); rows != 0U; rows &= rows - 1U) {
      const int l = port.lowest_bit(rows);
      const std::int64_t last = port.warp_broadcast(end, l);
      SumOf<T, X> part = {};
      for (std::int64_t k = port.warp_broadcast(begin, l) + lane; k < last; k += kSliceRows)
        add_product(part, tail_val[k], x(tail_col[k]));
      part = sum_of_warp(port, part);
      if (lane == l) sum = part;
    }
    return sum;
  }
};

}  // namespace cpufree
