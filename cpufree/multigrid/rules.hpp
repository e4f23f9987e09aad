// What a set-up decides row by row and entry by entry, for hosts and kernels: the same answers.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/multigrid/noise.hpp"

namespace cpufree::multigrid {

// Numbers as far apart as this, relative, count as equal: hosts and kernels sum in other orders,
// and decide alike.
inline constexpr double kEqual = 1e-10;

// Entries that are strong are `theta` or more; where the largest ones of a row beside its diagonal
// are small, half of these is enough, but no less than theta / 8.
inline constexpr double kLeastStrong = 0.125;
CPUFREE_FN double threshold_of(double most, double theta) {
  const double half = 0.5 * most, least = kLeastStrong * theta;
  return half < least ? least : half > theta ? theta : half;
}
// `needed`: the larger threshold of an entry's row and column.
CPUFREE_FN bool is_strong(double size, double needed) { return size * (1.0 + kEqual) >= needed; }
// Whether a coupling is stronger than the strongest one before it.
CPUFREE_FN bool is_stronger(double size, double most) { return size > most * (1.0 + kEqual); }

// The bits of a row's entries are in bytes of the row's own, from this one on; rows begin at entry
// `begin`.
CPUFREE_FN std::int64_t byte_of_row(std::int64_t row, std::int64_t begin) {
  return begin / 8 + row;
}

// The diagonal of the filtered matrix, where `lumped` is that of A and the weak entries of the row.
inline constexpr double kLeastDiagonal = 0.3;
CPUFREE_FN double guarded_diagonal(double lumped) {
  if (!(lumped - lumped == 0.0)) return 1.0;  // not finite
  return lumped > kLeastDiagonal ? lumped : kLeastDiagonal;
}

// Of a matrix with a diagonal of ones: what it makes of a vector that it maps to 0, relative; and a
// pivot of its inverse at which it is singular.
inline constexpr double kNull = 1e-11, kSingular = 1e-12;

// For independent sets: a row's state in the two highest bits, then its priority, so that states
// are compared first.
using Key = std::uint64_t;
inline constexpr Key kIn = Key{2} << 62U, kUndecided = Key{1} << 62U, kOut = 0;
CPUFREE_FN Key priority_of(std::int32_t row) {
  return kUndecided | (hash(row) >> 34U << 32U) | static_cast<std::uint32_t>(row);
}
// What becomes of a row that is undecided, where the largest key within two steps is `most`.
CPUFREE_FN Key decided(Key own, Key most) {
  if (most == own) return kIn | (own & ~kUndecided);
  return most >= kIn ? kOut : own;
}

// Sums of the Lanczos method are sums of integers, in units of 2^-40: no order of rows shows.
// They are at most 2^23, and vectors at first so long that this holds of them, too.
inline constexpr int kLanczosSteps = 10;
CPUFREE_FN std::uint64_t fixed(double term) {
  constexpr double kMost = 4096.0;
  const double kept = !(term == term) ? 0.0 : term > kMost ? kMost : term < -kMost ? -kMost : term;
  const double units = kept * 0x1p40;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(units + (units < 0.0 ? -0.5 : 0.5)));
}
CPUFREE_FN double from_fixed(std::uint64_t sum) {
  return static_cast<double>(static_cast<std::int64_t>(sum)) * 0x1p-40;
}
// What the first vector has at a row.
CPUFREE_FN double lanczos_start(std::int32_t row, std::int32_t rows) {
  double scale = 1.0;
  for (std::int64_t n = rows; n > 1; n /= 4) scale *= 0.5;
  return noise(row) * scale;
}

}  // namespace cpufree::multigrid
