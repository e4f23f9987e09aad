// The rows of a block, and its columns: loops over them, and what loops prefetch.
#pragma once

#include <type_traits>

#include "cpufree/device/block.hpp"
#include "cpufree/formats/columns_product.hpp"
#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/solvers/prefetch.hpp"
#include "cpufree/solvers/resident.hpp"

namespace cpufree {

// `Format`: the matrices that the kernel is for (slice_codes.hpp). K: columns.
template <Port P, class M, class Format, int K>
class BlockRows {
 public:
  using Share = BlockShare<M>;
  using Args = SolveArgs<M, K>;
  using Values = ValuesOf<typename M::Value, K>;
  // Whether products are with an A whose values are rounded to single precision, all but accurate
  // ones.
  static constexpr bool kRounded = has_kind(Format::kinds, kSingleValues);
  const Args& args;

  // A copy of a number that loops keep in a register.
  CPUFREE_KERNEL_FN Values in_register(const Values& value) const {
    if constexpr (K == 1)
      return port_.in_register(value);
    else
      return value;
  }
  // Vectors as hot loops hold them. In kernels for shares that stay on chip whole the compiler
  // learns that they are in shared memory, which is true of those that a method asks room for
  // (wanted_by).
  template <class U>
  CPUFREE_KERNEL_FN Private<U> hot(const Private<U>& v) const {
    return {on_chip(v.data)};
  }
  CPUFREE_KERNEL_FN Ghosted<Values> hot(const Ghosted<Values>& v) const {
    if constexpr (Format::on_chip)
      return {on_chip(v.data), v.halo, nullptr, v.first};
    else
      return v;
  }

  // f(k) for every column, each by one thread of the block: for what all threads would do alike,
  // with objects that the block holds. All see it afterwards. No thread reads what f changes any
  // more: since it was last read there has been a verb with a barrier (a reduction, an exchange).
  template <class F>
  CPUFREE_KERNEL_FN void each_column(F&& f) {
    if constexpr (K == 1) {
      if (port_.lane() == 0) f(0);
    } else {
      for (int k = port_.lane(); k < K; k += port_.lanes()) f(k);
    }
    port_.sync_block();
  }
  // Scalars of a recurrence, one set for all columns. Of one column, each thread has its own set in
  // registers, and `each_scalar` has all threads compute alike: that is faster than to ask. Several
  // columns have one in the block; thread k computes column k, and others see it after
  // `see_scalars`, or the next verb with a barrier.
  template <class S>
  using Scalars = std::conditional_t<K == 1, S, typename P::template Held<S>>;
  template <class S>
  CPUFREE_KERNEL_FN Scalars<S> scalars(const S& first) {
    if constexpr (K == 1)
      return first;
    else
      return port_.hold(first);
  }
  template <class F>
  CPUFREE_KERNEL_FN void each_scalar(F&& f) {
    if constexpr (K == 1) {
      f(0);
    } else {
      for (int k = port_.lane(); k < K; k += port_.lanes()) f(k);
    }
  }
  CPUFREE_KERNEL_FN void see_scalars() {
    if constexpr (K > 1) port_.sync_block();
  }

 protected:
  CPUFREE_KERNEL_FN BlockRows(P& port, const Args& arguments, const Share& share)
      : args(arguments), port_(port), share_(share) {}

  template <class U>
  CPUFREE_KERNEL_FN U* on_chip(U* array) const {
    if constexpr (Format::on_chip) return port_.on_chip(array);
    return array;
  }

  // My boundary or my interior rows.
  struct Part {
    typename M::Rows rows;
    std::int32_t shift;
    bool boundary;
  };
  CPUFREE_KERNEL_FN Part boundary() const { return {share_.boundary, share_.boundary_shift, true}; }
  CPUFREE_KERNEL_FN Part interior() const {
    return {share_.interior, share_.interior_shift, false};
  }

  // f(row, lane) for the part's rows, as the format gives them to threads.
  template <class F>
  CPUFREE_KERNEL_FN void each(const Part& part, F&& f) {
    if constexpr (K > 1)
      each_of_columns<M>(port_, part.rows, f);
    else if constexpr (requires { M::template each<Format>(port_, part.rows, f); })
      M::template each<Format>(port_, part.rows, f);
    else
      for_each(port_, part.rows.begin, part.rows.end, f);
  }

  // Where threads are many, one copy of a loop's code for both parts: registers and instruction
  // cache are what is short. Where the compiler vectorises, a copy for each; f's second argument
  // says whether the part is the boundary, there by its type.
  static constexpr bool one_copy = P::width == 1;
  template <class F>
  CPUFREE_KERNEL_FN void parts(F&& f) {
    if constexpr (one_copy) {
      CPUFREE_ONE_COPY
      for (int k = 0; k < 2; ++k) f(k == 0 ? boundary() : interior(), k == 0);
    } else {
      f(boundary(), std::true_type());
      f(interior(), std::false_type());
    }
  }
  template <class F>
  CPUFREE_KERNEL_FN void parts_backwards(F&& f) {
    if constexpr (one_copy) {
      CPUFREE_ONE_COPY
      for (int k = 0; k < 2; ++k) f(k == 0 ? interior() : boundary(), k != 0);
    } else {
      f(interior(), std::false_type());
      f(boundary(), std::true_type());
    }
  }

  // Prefetch (prefetch.hpp) what the next loop over rows reads first; over a part's rows; and while
  // a loop is at `row`, what it reads some rounds later.
  template <class... V>
  static constexpr bool kFetches = K == 1 && sizeof...(V) > 0 && FetchingPort<P>;
  template <class... V>
  CPUFREE_KERNEL_FN void prefetch_start(const V&... read) {
    if constexpr (kFetches<V...>)
      if (args.residency.prefetch)
        parts([&](const Part& part, auto) { prefetch_part(part, read...); });
  }
  template <class... V>
  CPUFREE_KERNEL_FN void prefetch_part(const Part& part, const V&... read) {
    if constexpr (kFetches<V...>)
      if (args.residency.prefetch)
        prefetch_first_rounds(port_, part.rows.begin, part.rows.end, part.shift, read...);
  }
  template <class... V>
  CPUFREE_KERNEL_FN void prefetch_next(const Part& part, std::int32_t row, const V&... read) {
    if constexpr (kFetches<V...>)
      if (args.residency.prefetch)
        prefetch_later_round(port_, row, part.rows.end, part.shift, read...);
  }

  P& port_;
  const Share& share_;
};

}  // namespace cpufree
