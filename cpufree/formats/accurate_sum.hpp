// Sums of products for residuals that are verified. A row's sum in working precision is wrong by up
// to n u |a| . |x| (n entries, u the unit roundoff), which in long rows may be larger than the
// residual itself: a solve could then be called converged by luck. Sums as if in twice the
// precision are wrong by less than n^2 u^2 |a| . |x| (Ogita, Rump & Oishi 2005, "Accurate sum and
// dot product", SIAM J. Sci. Comput. 26(6), algorithm Dot2, theorem 3.4 without its last rounding).
// With n u < 1e-9 that is below the effect of one rounding of x, so that what is computed of
// b - A x is the residual of the x that is handed out.
//
// They take some ten operations an entry instead of one, and so are for cold products alone.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// a x, and by how much it differs from the exact product. A fused multiply-add with 0 is a product
// that compilers fuse with nothing else; where it would be a call, there is nothing to fuse with,
// and factors are split in halves (Dekker 1971, "A floating-point technique for extending the
// available precision", Numer. Math. 18).
struct ExactProduct {
  double high, low;
};
CPUFREE_KERNEL_FN ExactProduct exact_product(double a, double x) {
  if constexpr (kFastFma) {
    const double p = std::fma(a, x, 0.0);
    return {p, std::fma(a, x, -p)};
  } else {
    constexpr double kSplit = 134217729.0;  // 2^27 + 1
    const double p = a * x;
    const double wide_a = kSplit * a, wide_x = kSplit * x;
    const double high_a = wide_a - (wide_a - a), high_x = wide_x - (wide_x - x);
    const double low_a = a - high_a, low_x = x - high_x;
    return {p, ((high_a * high_x - p) + high_a * low_x + low_a * high_x) + low_a * low_x};
  }
}

// high + low += value, without an error in `high + low` but for the rounding of `low` (Knuth's
// TwoSum).
CPUFREE_KERNEL_FN void add_exactly(double& high, double& low, double value, double rest) {
  const double sum = high + value;
  const double part = sum - high;
  const double error = (high - (sum - part)) + (value - part);
  low = (low + rest) + error;
  high = sum;
}

template <class T>
struct AccurateSum;

template <>
struct AccurateSum<double> {
  double high = 0.0, low = 0.0;

  // Out of line, where registers are scarce: inlined, it needs so many that the loops of
  // iterations, which call cold functions now and then, keep some of theirs in memory.
  CPUFREE_COLD_FN void add_product(double a, double x) {
    const ExactProduct product = exact_product(a, x);
    add_exactly(high, low, product.high, product.low);
  }
  // The same bits whichever of two is added to the other.
  CPUFREE_KERNEL_FN AccurateSum& operator+=(const AccurateSum& other) {
    add_exactly(high, low, other.high, other.low);
    return *this;
  }
  // b - the sum. Near the end of the range of numbers the error cannot be computed.
  CPUFREE_KERNEL_FN double below(double b) const {
    return low - low == 0.0 ? (b - high) - low : b - high;
  }
  // The sum in working precision.
  CPUFREE_KERNEL_FN double plain() const { return high; }
  // f(a part): all parts, by the same function of each.
  template <class F>
  CPUFREE_KERNEL_FN AccurateSum each_part(F&& f) const {
    return {f(high), f(low)};
  }
};

// Products of two floats are exact in double.
template <>
struct AccurateSum<float> {
  double sum = 0.0;
  float single = 0.0F;

  CPUFREE_KERNEL_FN void add_product(float a, float x) {
    sum += static_cast<double>(a) * x;
    single += a * x;
  }
  CPUFREE_KERNEL_FN AccurateSum& operator+=(const AccurateSum& other) {
    sum += other.sum;
    single += other.single;
    return *this;
  }
  CPUFREE_KERNEL_FN double below(double b) const { return b - sum; }
  CPUFREE_KERNEL_FN float plain() const { return single; }
  template <class F>
  CPUFREE_KERNEL_FN AccurateSum each_part(F&& f) const {
    return {f(sum), f(single)};
  }
};

// sum += a x, for either kind of sum.
template <std::floating_point T>
CPUFREE_KERNEL_FN void add_product(T& sum, T a, T x) {
  sum += a * x;
}
template <class T>
CPUFREE_KERNEL_FN void add_product(AccurateSum<T>& sum, T a, T x) {
  sum.add_product(a, x);
}

// -sum, for either kind of sum.
template <std::floating_point T>
CPUFREE_KERNEL_FN T negative(T sum) {
  return -sum;
}
template <class T>
CPUFREE_KERNEL_FN AccurateSum<T> negative(const AccurateSum<T>& sum) {
  return sum.each_part([](auto part) { return -part; });
}

// What a lane of a warp tells others, for either kind of sum.
template <class P, std::floating_point T>
CPUFREE_KERNEL_FN T sum_across(P& port, T sum, int bits) {
  return port.warp_across(sum, bits);
}
template <class P, class T>
CPUFREE_KERNEL_FN AccurateSum<T> sum_across(P& port, const AccurateSum<T>& sum, int bits) {
  return sum.each_part([&](auto part) { return port.warp_across(part, bits); });
}
template <class P, std::floating_point T>
CPUFREE_KERNEL_FN T sum_broadcast(P& port, T sum, int from) {
  return port.warp_broadcast(sum, from);
}
template <class P, class T>
CPUFREE_KERNEL_FN AccurateSum<T> sum_broadcast(P& port, const AccurateSum<T>& sum, int from) {
  return sum.each_part([&](auto part) { return port.warp_broadcast(part, from); });
}
template <class P, std::floating_point T>
CPUFREE_KERNEL_FN T sum_of_warp(P& port, T sum) {
  return port.warp_sum(sum);
}
template <class P, class T>
CPUFREE_KERNEL_FN AccurateSum<T> sum_of_warp(P& port, AccurateSum<T> sum) {
  CPUFREE_ONE_COPY
  for (int half = P::warp_width / 2; half > 0; half /= 2) sum += sum_across(port, sum, half);
  return sum;
}

// An operand (Operand, PacketOperand) of a cold product: one that is short and accurate rather than
// fast. It gives f an AccurateSum in the place of a number.
template <class X>
struct ColdOperand : X {
  static constexpr bool in_pieces = true;
};
template <class X>
ColdOperand(X) -> ColdOperand<X>;
template <class X>
inline constexpr bool is_cold = false;
template <class X>
inline constexpr bool is_cold<ColdOperand<X>> = true;

// In what the products of a row are summed.
template <class T, class X>
using SumOf = std::conditional_t<is_cold<std::remove_cvref_t<X>>, AccurateSum<T>, T>;

}  // namespace cpufree
