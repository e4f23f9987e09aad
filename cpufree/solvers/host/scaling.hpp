// What the Systems of all engines share around a solve: checks, scaling, which vectors there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/solvers/gpu/share_layout.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "cpufree/solvers/resident.hpp"

namespace cpufree {

inline constexpr std::size_t kPrivateVectors = 12;  // that `each_private` lists

// Which private vectors a solve needs, in the order of `each_private`.
std::array<bool, kPrivateVectors> needed_vectors(const SolveSpec& spec);
// What of it is to stay on chip; values have `value_bytes`.
OnChipRequest wanted_by(const SolveSpec& spec, std::size_t value_bytes);

// Points the private vectors of `vectors` at what `memory(k)` gives, k in the order of
// `each_private`; those that the solve does not need become null.
template <class T, class F>
void place_private(Vectors<T>& vectors, const SolveSpec& spec, F&& memory) {
  const auto needed = needed_vectors(spec);
  std::size_t k = 0;
  each_private(vectors, [&](auto& vector) {
    vector = needed[k] ? memory(k) : nullptr;
    ++k;
  });
}

// Where b, x and the inverse diagonal stand in the order of `each_private`.
struct PrivateIndex {
  std::size_t b = 0, x = 0, inverse_diagonal = 0;
};
PrivateIndex private_index();

// Throws InvalidInput unless the options are valid and the vectors have n entries (x0: or none),
// Unsupported for a study that is not there, or a method that does not take that number of columns.
template <class T>
void check_solve(const SolveSpec& spec, const VectorView<const T>& b, const VectorView<const T>& x0,
                 const VectorView<T>& out, std::int32_t n, std::size_t columns = 1);

// Throws InvalidInput unless the matrix has as many rows and entries as the one that has been laid
// out so, of which this process knows all rows.
template <class T>
void require_update(const CsrView<T>& matrix, std::int32_t rows, const PlanReport& report);

// Throws EngineError where an update of a system has ended in the middle.
void require_usable(bool usable);

// The largest |b_i| that is a number.
template <class T>
double largest_size(std::span<const T> b);

// A power of two that brings the largest entry of b near 1 where it is far from it, so that squares
// neither underflow nor overflow; it changes no mantissa, hence no iterate but for its scale.
double scale_from(double largest);

template <class T>
SolveParams params_of(const SolveSpec& spec, double lambda_bound, bool has_guess);

// Most entries of a history.
std::int64_t most_history();

// Of all blocks of all PEs.
Split mean_of(const std::vector<Split>& splits);

// Norms of the caller's system from those of the scaled one. `lost`: x / scale is out of range.
void unscale(SolveResult& result, double scale, bool lost);

// The progress function for the scaled system.
Progress unscaled(const Progress& progress, double scale);

}  // namespace cpufree
