#include "cpufree/solvers/host/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

namespace cpufree {

namespace {
constexpr std::int64_t kHistoryCapacity = std::int64_t{1} << 20;

void require_size(const char* what, std::size_t size, std::int32_t n) {
  if (size != static_cast<std::size_t>(n))
    throw InvalidInput(std::string(what) + " has " + std::to_string(size) +
                       " entries, the matrix " + std::to_string(n) + " rows");
}
}  // namespace

std::array<bool, kPrivateVectors> needed_vectors(const SolveSpec& spec) {
  const bool pipelined = spec.method == Method::pipecg;
  const bool minres = spec.method == Method::minres, bicgstab = spec.method == Method::bicgstab;
  const bool chebyshev = spec.preconditioner == Preconditioner::chebyshev;
  const bool factors = has_factors(spec.preconditioner);
  const bool applied = chebyshev || factors;  // row by row it cannot be
  VectorSet<bool, bool, bool, bool> needed;
  needed.b = needed.x = needed.r = needed.s = true;
  const bool multigrid = spec.preconditioner == Preconditioner::amg;  // has vectors of its own
  needed.inverse_diagonal = spec.preconditioner != Preconditioner::none && !factors && !multigrid;
  needed.z = pipelined || minres || bicgstab || applied;
  needed.w = pipelined || minres || bicgstab;
  needed.n = pipelined || minres;
  needed.u = minres || (applied && spec.method != Method::cg);
  needed.q = minres || (applied && pipelined);
  needed.out = applied;
  needed.rest = chebyshev;
  std::array<bool, kPrivateVectors> list{};
  std::size_t k = 0;
  each_private(needed, [&](bool need) { list[k++] = need; });
  return list;
}

OnChipRequest wanted_by(const SolveSpec& spec, std::size_t value_bytes) {
  const auto needed = needed_vectors(spec);
  const bool scratch = spec.method == Method::pipecg || spec.method == Method::bicgstab ||
                       spec.preconditioner == Preconditioner::chebyshev;
  return {static_cast<int>(std::ranges::count(needed, true)), scratch, value_bytes};
}

PrivateIndex private_index() {
  VectorSet<char, char, char, char> names;
  names.b = 'b';
  names.x = 'x';
  names.inverse_diagonal = 'd';
  PrivateIndex index;
  std::size_t k = 0;
  each_private(names, [&](char name) {
    if (name == 'b') index.b = k;
    if (name == 'x') index.x = k;
    if (name == 'd') index.inverse_diagonal = k;
    ++k;
  });
  return index;
}

template <class T>
void check_solve(const SolveSpec& spec, const VectorView<const T>& b, const VectorView<const T>& x0,
                 const VectorView<T>& out, std::int32_t n, std::size_t columns) {
  check(spec);
  if (columns == 1 && spec.method == Method::block_cg)
    throw Unsupported("the method block_cg is for several right-hand sides together");
  if (spec.study != Study::none && spec.study != Study::trace &&
      (!std::is_same_v<T, double> || spec.preconditioner != Preconditioner::none))
    throw Unsupported(std::string("the study ") + study_name(spec.study) +
                      " is there in double precision without a preconditioner alone");
  require_size("the right-hand side", b.size, n);
  if (x0.size != 0) require_size("x0", x0.size, n);
  require_size("the solution", out.size, n);
}

template <class T>
void require_update(const CsrView<T>& matrix, std::int32_t rows, const PlanReport& report) {
  std::int64_t all_rows = 0, nnz = 0;
  for (const PlanReport::Pe& pe : report.pes) all_rows += pe.rows, nnz += pe.nnz;
  require(all_rows == rows,
          "update takes the values of whole matrices: where ranks have their own "
          "rows, make a new system");
  require(matrix.n == rows && matrix.nnz() == nnz,
          "update takes a matrix of the same pattern, of " + std::to_string(rows) + " rows and " +
              std::to_string(nnz) + " entries, not " + std::to_string(matrix.n) + " and " +
              std::to_string(matrix.nnz()));
}

void require_usable(bool usable) {
  if (!usable) throw EngineError("the update of this system has failed: make a new one");
}

template <class T>
double largest_size(std::span<const T> b) {
  constexpr std::size_t kLanes = 16;  // independent of one another, so that several are under way
  T lanes[kLanes] = {};
  const auto take = [&](T& most, T value) {
    const T size = std::abs(value);
    most = size > most ? size : most;
  };
  std::size_t k = 0;
  for (; k + kLanes <= b.size(); k += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) take(lanes[l], b[k + l]);
  for (; k < b.size(); ++k) take(lanes[0], b[k]);
  return static_cast<double>(*std::ranges::max_element(lanes));
}

double scale_from(double largest) {
  if (!(largest > 0.0) || !std::isfinite(largest)) return 1.0;
  const int exponent = std::clamp(std::ilogb(largest), -1000, 1000);  // 2^1000 is finite
  return std::abs(exponent) > 32 ? std::ldexp(1.0, -exponent) : 1.0;
}

template <class T>
SolveParams params_of(const SolveSpec& spec, double lambda_bound, bool has_guess) {
  SolveParams params;
  params.rtol = spec.rtol;
  params.maxiter = spec.maxiter;
  params.replace_every = spec.replace_every;
  params.chebyshev_degree = spec.chebyshev_degree;
  params.lambda_bound = lambda_bound;
  params.roundoff = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2.0;
  params.has_guess = has_guess;
  params.history_capacity =
      std::clamp<std::int64_t>(spec.maxiter, 1, kHistoryCapacity - 1) + 1;  // at least 2
  return params;
}

std::int64_t most_history() { return kHistoryCapacity; }

Split mean_of(const std::vector<Split>& splits) {
  Split mean;
  for (const Split& split : splits)
    for (int k = 0; k < kPhases; ++k)
      mean.seconds[k] += split.seconds[k] / static_cast<double>(splits.size());
  return mean;
}

void unscale(SolveResult& result, double scale, bool lost) {
  Outcome& o = result.outcome;
  if (lost) o.reason = Reason::diverged_nanorinf;
  for (double* norm : {&o.residual, &o.true_residual, &o.bnorm}) *norm /= scale;
  for (double& square : result.history) square = std::sqrt(square) / scale;
}

Progress unscaled(const Progress& progress, double scale) {
  if (!progress) return {};
  return [&progress, scale](std::int64_t iteration, double square) {
    return progress(iteration, std::sqrt(square) / scale);
  };
}

template void check_solve(const SolveSpec&, const VectorView<const float>&,
                          const VectorView<const float>&, const VectorView<float>&, std::int32_t,
                          std::size_t);
template void check_solve(const SolveSpec&, const VectorView<const double>&,
                          const VectorView<const double>&, const VectorView<double>&, std::int32_t,
                          std::size_t);
template void require_update(const CsrView<float>&, std::int32_t, const PlanReport&);
template void require_update(const CsrView<double>&, std::int32_t, const PlanReport&);
template double largest_size(std::span<const float>);
template double largest_size(std::span<const double>);
template SolveParams params_of<float>(const SolveSpec&, double, bool);
template SolveParams params_of<double>(const SolveSpec&, double, bool);

}  // namespace cpufree
