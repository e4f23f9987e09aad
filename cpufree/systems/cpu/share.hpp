// One block's rows of a matrix on the CPU engine: slices, and whom the block waits for.
#pragma once

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/sliced.hpp"
#include "cpufree/formats/sliced_build.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

template <class T>
struct CpuShare {
  static constexpr int kWidth = cpu_threads::Port::width;
  using Matrix = Sliced<T, kWidth>;

  SlicedRows<T, kWidth> slices;
  BlockPlan plan;
  std::int64_t boundary_slice = 0;

  // Slices of the rows that the plan has.
  void make(const LocalSystem<T>& local, Indices indices = Indices::wide) {
    append_slices(local, plan.interior, slices, indices);
    boundary_slice = static_cast<std::int64_t>(slices.pattern->slices());
    append_slices(local, plan.boundary, slices, indices);
  }
  // A matrix with the same pattern, in the memory of that. f(row, column, value): its entries.
  template <class U, class F>
  CpuShare<U> with_values(F&& f) const {
    CpuShare<U> made;
    made.plan = plan;
    made.boundary_slice = boundary_slice;
    made.slices.pattern = slices.pattern;
    made.slices.val.assign(slices.val.size(), U{0});
    std::size_t slice = 0;
    for (const RowRange range : {plan.interior, plan.boundary})
      for (std::int32_t first = range.begin; first < range.end; first += kWidth, ++slice)
        each_entry(slices, slice, [&](int l, std::int32_t column, std::size_t place) {
          made.slices.val[place] = static_cast<U>(f(first + l, column, slices.val[place]));
        });
    return made;
  }
  double value_bytes() const { return static_cast<double>(slices.val.size() * sizeof(T)); }
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
};

}  // namespace cpufree
