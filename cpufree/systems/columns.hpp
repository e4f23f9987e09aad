// Several right-hand sides solved together: what the Systems of all engines share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/device/channel.hpp"
#include "cpufree/device/reduction.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/solvers/columns_args.hpp"
#include "cpufree/systems/scaling.hpp"
#include "cpufree/systems/setup.hpp"
#include "cpufree/systems/system.hpp"

namespace cpufree {

// Calls f.operator()<K>() for the number of columns, one of those that kernels are made for.
template <class F>
auto with_columns(std::size_t columns, F&& f) {
  if (columns == 2) return f.template operator()<2>();
  if (columns == 4) return f.template operator()<4>();
  if (columns == 8) return f.template operator()<8>();
  throw InvalidInput("2, 4 or 8 right-hand sides are solved together, not " +
                     std::to_string(columns));
}

// What of a solve is not there for columns together; "" if all is.
inline std::string columns_refused(const SolveSpec& spec) {
  if (spec.study != Study::none) return "studies are of one right-hand side";
  if (spec.method != Method::cg) return "right-hand sides are solved together by cg alone";
  if (spec.preconditioner != Preconditioner::none && spec.preconditioner != Preconditioner::jacobi)
    return "right-hand sides are solved together with jacobi or without a preconditioner";
  return {};
}

// Throws InvalidInput, Unsupported where such a solve is not possible.
template <class T>
void check_columns(const SolveSpec& spec, const ColumnViews<T>& v, std::int32_t n) {
  require(v.b.size() == v.out.size() && (v.x0.empty() || v.x0.size() == v.b.size()),
          "there must be a solution, and a guess or none, for each right-hand side");
  for (std::size_t k = 0; k < v.b.size(); ++k)
    check_solve(spec, v.b[k], v.x0.empty() ? VectorView<const T>() : v.x0[k], v.out[k], n);
  if (const std::string why = columns_refused(spec); !why.empty()) throw Unsupported(why);
}

// Parameters of each column, for right-hand sides that were multiplied by `scale`. The history of
// all of them takes as much memory as that of one solve.
template <class T, int K>
void set_params(SolveParams (&params)[K], const SolveSpec& spec, bool has_guess,
                std::span<const double> scale) {
  for (int k = 0; k < K; ++k) {
    params[k] = params_of<T>(spec, 0.0, has_guess, scale[at(k)]);
    params[k].history_capacity = std::min(params[k].history_capacity, most_history() / K);
  }
}

// The progress function for the scaled systems, from what the kernel reports.
inline Progress unscaled_columns(const Progress& progress, std::span<const double> scale) {
  if (!progress) return {};
  return [&progress, scale](std::int64_t report, double square) {
    const double norm = std::sqrt(square) / scale[at(reported_column(report))];
    return progress(reported_iteration(report), norm);
  };
}

// The symmetric memory of such solves, as that of all others (heap.hpp).
template <class T>
struct ColumnsHeap {
  Symmetric<Flag> leave, flags;
  Symmetric<Packet> slots, halo[3];
  Symmetric<T> p, scratch[2];
  std::size_t channel_bytes = 0;  // of the beginning
  std::size_t bytes = 0;

  ColumnsHeap() = default;
  // For up to so many columns. `packets`: of a PE, for one vector of one column.
  ColumnsHeap(int pes, int blocks, const Extent& extent, std::size_t packets, std::size_t columns) {
    SymmetricLayout layout;
    leave = layout.reserve<Flag>(1);
    flags = layout.reserve<Flag>(at(arrival_flag_count(pes, blocks, 1)));
    slots = layout.reserve<Packet>(at(reduce_slot_count(pes, blocks)));
    for (auto& array : halo) array = layout.reserve<Packet>(packets * columns);
    channel_bytes = layout.bytes();
    p = layout.reserve<T>(extent.rows_and_ghosts * columns);
    for (auto& array : scratch) array = layout.reserve<T>(extent.rows_and_ghosts * columns);
    bytes = layout.bytes();
  }

  // Points a PE's arguments at its heap.
  template <class M, int K>
  void place(ColumnsArgs<M, K>& args, std::byte* base) const {
    using Values = Columns<T, K>;
    args.flags = flags.at(base);
    args.slots = slots.at(base);
    args.p = reinterpret_cast<Values*>(p.at(base));
    for (int k = 0; k < 2; ++k) args.scratch[k] = reinterpret_cast<Values*>(scratch[k].at(base));
    for (int k = 0; k < 3; ++k) args.halo[k] = args.block_halos ? halo[k].at(base) : nullptr;
  }
};

}  // namespace cpufree
