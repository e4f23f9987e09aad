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
  void make(const LocalSystem<T>& local) {
    append_slices(local, plan.interior, slices);
    boundary_slice = static_cast<std::int64_t>(slices.slice_ptr.size()) - 1;
    append_slices(local, plan.boundary, slices);
  }
  double bytes() const {
    return static_cast<double>(slices.val.size() * sizeof(T) +
                               (slices.base.size() + slices.gather.size()) * sizeof(std::int32_t) +
                               slices.slice_ptr.size() * sizeof(std::int64_t));
  }
  Matrix matrix() const {
    return {slices.slice_ptr.data(), slices.base.data(), slices.gather.data(), slices.val.data()};
  }
  typename Matrix::Rows interior() const { return {plan.interior.begin, plan.interior.end, 0}; }
  typename Matrix::Rows boundary() const {
    return {plan.boundary.begin, plan.boundary.end, boundary_slice};
  }
  // As kernels see it. `flags`: the arrival board of the PE. `first_boundary`: of its rows.
  BlockShare<Matrix> view(Flag* flags, std::int32_t first_boundary) const {
    BlockShare<Matrix> view;
    view.matrix = matrix();
    view.interior = interior();
    view.boundary = boundary();
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
