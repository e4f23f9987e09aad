// Several right-hand sides solved together: what the Systems of all engines share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/args.hpp"
#include "cpufree/solvers/host/scaling.hpp"
#include "cpufree/solvers/host/system.hpp"

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
  if (spec.method != Method::cg && spec.method != Method::block_cg)
    return "right-hand sides are solved together by cg or block_cg alone";
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
    check_solve(spec, v.b[k], v.x0.empty() ? VectorView<const T>() : v.x0[k], v.out[k], n,
                v.b.size());
  if (const std::string why = columns_refused(spec); !why.empty()) throw Unsupported(why);
}

// Parameters of all columns. The history of all of them takes as much memory as that of one solve.
template <class T>
SolveParams params_of_columns(const SolveSpec& spec, bool has_guess, std::size_t columns) {
  SolveParams params = params_of<T>(spec, 0.0, has_guess);
  params.history_capacity =
      std::min(params.history_capacity, most_history() / static_cast<std::int64_t>(columns));
  return params;
}

// The progress function for the scaled systems, from what the kernel reports.
inline Progress unscaled_columns(const Progress& progress, std::span<const double> scale) {
  if (!progress) return {};
  return [&progress, scale](std::int64_t report, double square) {
    const double norm = std::sqrt(square) / scale[at(reported_column(report))];
    return progress(reported_iteration(report), norm);
  };
}

}  // namespace cpufree
