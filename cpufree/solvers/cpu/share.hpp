// One block's rows of a matrix on the CPU engine: slices, and whom the block waits for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/slices/sliced.hpp"
#include "cpufree/formats/slices/sliced_build.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/solvers/args.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace cpufree {

// What there is to know of the diagonals of some rows.
struct DiagonalFacts {
  double bound = 0.0;  // the largest sum_j |a_ij| / |a_ii|, which bounds the spectrum of D^-1 A
  double most = 0.0, least = std::numeric_limits<double>::infinity();  // |a_ii|

  void take(const RowSize& row) { join({row.bound(), row.diagonal, row.diagonal}); }
  void join(const DiagonalFacts& more) {
    bound = std::max(bound, more.bound);
    most = std::max(most, more.most);
    least = std::min(least, more.least);
  }
  // The largest over the smallest; 1 where one is missing.
  double spread() const { return most > 0.0 && least > 0.0 ? most / least : 1.0; }
};

template <class T>
struct CpuShare {
  static constexpr int kWidth = cpu_threads::Port::width;
  using Matrix = Sliced<T, kWidth>;

  SlicedRows<T, kWidth> slices;
  BlockPlan plan;
  std::int64_t boundary_slice = 0;

  // Slices of the rows that the plan has. Calls then(slice, row, rows) for each of them, the first
  // of whose rows is `row`, while it is in a cache.
  template <class F>
  void make(const LocalSystem<T>& local, Indices indices, F&& then) {
    const auto entries = [&](RowRange rows) {
      return local.row_ptr[at(rows.end)] - local.row_ptr[at(rows.begin)];
    };
    reserve_slices(entries(plan.interior) + entries(plan.boundary), slices);
    append(local, plan.interior, indices, then);
    boundary_slice = static_cast<std::int64_t>(slices.pattern->slices());
    append(local, plan.boundary, indices, then);
  }
  void make(const LocalSystem<T>& local, Indices indices = Indices::wide) {
    make(local, indices, [](std::size_t, std::int32_t, std::int32_t) {});
  }
  // Becomes a matrix with the pattern of another one, in the memory of that pattern; its own values
  // stay where they are. f(row, column, value): entries of the other one.
  template <class U, class F>
  void take_values(const CpuShare<U>& other, F&& f) {
    plan = other.plan;
    boundary_slice = other.boundary_slice;
    slices.pattern = other.slices.pattern;
    if (slices.val.size() != other.slices.val.size())
      slices.val.assign(other.slices.val.size(), T{0});
    std::size_t slice = 0;
    for (const RowRange range : {plan.interior, plan.boundary})
      for (std::int32_t first = range.begin; first < range.end; first += kWidth, ++slice)
        each_entry(other.slices, slice, [&](int l, std::int32_t column, std::size_t place) {
          slices.val[place] = static_cast<T>(f(first + l, column, other.slices.val[place]));
        });
  }
  // Makes, or makes again, the values in single precision.
  void round_values() {
    slices.single.resize(slices.val.size());
    std::ranges::transform(slices.val, slices.single.begin(),
                           [](T value) { return single_of(static_cast<double>(value)); });
  }
  double value_bytes() const {
    return static_cast<double>(slices.val.size() * sizeof(T) +
                               slices.single.size() * sizeof(float));
  }
  double bytes() const { return value_bytes() + slices.pattern->bytes(); }
  // M: Matrix, or that with narrow indices.
  template <class M = Matrix>
  M matrix() const {
    return slices.template view<M>();
  }
  template <class M = Matrix>
  typename M::Rows interior() const {
    return {plan.interior.begin, plan.interior.end, 0};
  }
  template <class M = Matrix>
  typename M::Rows boundary() const {
    return {plan.boundary.begin, plan.boundary.end, boundary_slice};
  }
  // As kernels see it. `flags`: the arrival board of the PE. `first_boundary`: of its rows.
  template <class M = Matrix>
  BlockShare<M> view(Flag* flags, std::int32_t first_boundary) const {
    BlockShare<M> view;
    view.matrix = matrix<M>();
    view.interior = interior<M>();
    view.boundary = boundary<M>();
    view.board.flags = flags;
    view.board.notify = plan.notify.data();
    view.board.await = plan.await.data();
    view.board.await_local = plan.await_local.data();
    view.board.notify_count = static_cast<std::int32_t>(plan.notify.size());
    view.board.await_count = static_cast<std::int32_t>(plan.await.size());
    view.board.await_local_count = static_cast<std::int32_t>(plan.await_local.size());
    view.remote_end = plan.boundary.end;
    view.send_shift = first_boundary;
    return view;
  }

 private:
  template <class F>
  void append(const LocalSystem<T>& local, RowRange rows, Indices indices, F&& then) {
    constexpr std::int32_t kTogether = 1 << 11;
    std::int32_t begin = rows.begin;
    do {
      const std::int32_t end = std::min(begin + kTogether, rows.end);
      append_slices(local, {begin, end}, slices, indices);
      const auto slices_of = [&](std::int32_t count) { return at((count + kWidth - 1) / kWidth); };
      std::size_t slice = slices.pattern->slices() - slices_of(end - begin);
      for (; begin < end; begin += kWidth) then(slice++, begin, std::min(kWidth, end - begin));
      begin = end;
    } while (begin < rows.end);
  }
};

}  // namespace cpufree
