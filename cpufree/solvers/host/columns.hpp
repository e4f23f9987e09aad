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
  if (spec.preconditioner == Preconditioner::amg)
    return "a cycle of multigrid takes one right-hand side at a time";
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

// The vectors of several columns that are private to a PE, by number.
struct ColumnVector {
  enum Number : std::size_t { x, r, s, b, out, rest, operand, other_operand, count };
};
inline constexpr std::size_t kColumnVectors = ColumnVector::count;

// Whether a solve needs it.
inline bool needed_by_columns(const SolveSpec& spec, std::size_t vector) {
  const bool chebyshev = spec.preconditioner == Preconditioner::chebyshev;
  const bool factors = has_factors(spec.preconditioner);
  if (vector == ColumnVector::out) return chebyshev || factors;
  if (vector == ColumnVector::rest) return chebyshev;
  return vector < ColumnVector::out || factors;
}

// Points a PE's arguments at its vectors: memory(number).
template <class M, int K, class F>
void place_columns(SolveArgs<M, K>& args, const SolveSpec& spec, F&& memory) {
  const auto get = [&](std::size_t v) {
    return needed_by_columns(spec, v) ? memory(v) : decltype(memory(v))();
  };
  auto& v = args.vectors;
  v.x = get(ColumnVector::x), v.r = get(ColumnVector::r), v.s = get(ColumnVector::s);
  v.b = get(ColumnVector::b), v.out = get(ColumnVector::out), v.rest = get(ColumnVector::rest);
  args.operand[0] = get(ColumnVector::operand);
  args.operand[1] = get(ColumnVector::other_operand);
}

// Parameters of all columns. The history of all of them takes as much memory as that of one solve.
template <class T>
SolveParams params_of_columns(const SolveSpec& spec, double bound, bool has_guess,
                              std::size_t columns) {
  SolveParams params = params_of<T>(spec, bound, has_guess);
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
