// Python's rules for numbers of a run: errors go to rt.fail(fault, line), of a Runtime or the like.
// The first one counts.
#pragma once

#include <cmath>
#include <cstdint>

#include "cpufree/programs/args.hpp"
#include "cpufree/programs/stages.hpp"

namespace cpufree::programs {

template <class R>
CPUFREE_KERNEL_FN std::int64_t py_add(R& rt, std::int64_t a, std::int64_t b, std::int64_t line) {
  const std::int64_t sum = plus(a, b);
  if (((a ^ sum) & (b ^ sum)) < 0) rt.fail(Fault::overflow, line);
  return sum;
}
template <class R>
CPUFREE_KERNEL_FN std::int64_t py_subtract(R& rt, std::int64_t a, std::int64_t b,
                                           std::int64_t line) {
  const std::int64_t rest = minus(a, b);
  if (((a ^ b) & (a ^ rest)) < 0) rt.fail(Fault::overflow, line);
  return rest;
}
template <class R>
CPUFREE_KERNEL_FN std::int64_t py_multiply(R& rt, std::int64_t a, std::int64_t b,
                                           std::int64_t line) {
  const std::int64_t product = times(a, b);
  // -1 apart: the quotient of the least number by it has no value.
  const bool right =
      a == 0 || (a == -1 ? b != std::numeric_limits<std::int64_t>::min() : product / a == b);
  if (!right) rt.fail(Fault::overflow, line);
  return product;
}
template <class R>
CPUFREE_KERNEL_FN std::int64_t py_negative(R& rt, std::int64_t a, std::int64_t line) {
  return py_subtract(rt, 0, a, line);
}
template <class R>
CPUFREE_KERNEL_FN std::int64_t py_absolute(R& rt, std::int64_t a, std::int64_t line) {
  return a < 0 ? py_negative(rt, a, line) : a;
}
template <class R>
CPUFREE_KERNEL_FN double py_divide(R& rt, double a, double b, std::int64_t line) {
  if (b == 0.0) rt.fail(Fault::division_by_zero, line);
  return a / b;
}

CPUFREE_FN std::uint64_t magnitude(std::int64_t a) {
  return a < 0 ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
}
// The quotient of whole numbers, rounded once: they need not be floats themselves.
template <class R>
CPUFREE_KERNEL_FN double py_divide(R& rt, std::int64_t a, std::int64_t b, std::int64_t line) {
  const std::uint64_t over = magnitude(a), under = magnitude(b);
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
  if (b == 0) rt.fail(Fault::division_by_zero, line);
  if (b == 0 || (over <= kExact && under <= kExact))
    return static_cast<double>(a) / static_cast<double>(b);
  // Two bits more than a float has, and whether anything is left: that decides how to round.
  std::uint64_t quotient = over / under, rest = over % under;
  double unit = 1.0;
  for (; rest != 0 && quotient < kExact * 4; unit /= 2) {
    rest *= 2;
    quotient = quotient * 2 + (rest >= under ? 1 : 0);
    if (rest >= under) rest -= under;
  }
  if (rest != 0) quotient |= 1;
  const double value = static_cast<double>(quotient) * unit;
  return (a < 0) != (b < 0) ? -value : value;
}
template <class R, class T>
CPUFREE_KERNEL_FN T py_floor_divide(R& rt, T a, T b, std::int64_t line) {
  if (b == T{0}) rt.fail(Fault::division_by_zero, line);
  if constexpr (!std::is_floating_point_v<T>)
    if (b == T(-1)) return py_negative(rt, a, line);
  return floor_divide(a, b);
}
template <class R, class T>
CPUFREE_KERNEL_FN T py_remainder(R& rt, T a, T b, std::int64_t line) {
  if (b == T{0}) rt.fail(Fault::division_by_zero, line);
  return remainder(a, b);
}

// Keeps the host's compiler from computing with a number beforehand, or by other rules: it makes
// a * a of a power, which is another function's rounding.
CPUFREE_FN double unknown_to_compilers(double a) {
#if !defined(CPUFREE_ON_GPU)
  volatile double kept = a;
  return kept;
#else
  return a;
#endif
}
template <class R>
CPUFREE_KERNEL_FN double py_power(R& rt, double a, double b, std::int64_t line) {
  const bool finite = std::isfinite(a) && std::isfinite(b);
  if (a == 0.0 && b < 0.0 && finite) rt.fail(Fault::division_by_zero, line);
  if (a < 0.0 && finite && b != std::floor(b)) rt.fail(Fault::complex, line);
  const double result = std::pow(a, unknown_to_compilers(b));
  if (finite && std::isinf(result)) rt.fail(Fault::range, line);  // of what has not failed above
  return result;
}

// --- functions of Python's math ---

// `f` has no value where it makes NaN of a number, or infinity with `has_poles`; else an infinity
// that is made of finite numbers is too large.
template <class R, class F>
CPUFREE_KERNEL_FN double py_math(R& rt, double a, F f, bool has_poles, std::int64_t line) {
  const double result = f(unknown_to_compilers(a));
  const bool infinite = std::isinf(result) && std::isfinite(a);
  if ((is_nan(result) && !is_nan(a)) || (infinite && has_poles)) rt.fail(Fault::domain, line);
  if (infinite) rt.fail(Fault::range, line);
  return result;
}
template <class R>
CPUFREE_KERNEL_FN double py_math_pow(R& rt, double a, double b, std::int64_t line) {
  const bool finite = std::isfinite(a) && std::isfinite(b);
  const double result = std::pow(a, unknown_to_compilers(b));
  if (finite && (is_nan(result) || (a == 0.0 && std::isinf(result)))) rt.fail(Fault::domain, line);
  if (finite && std::isinf(result)) rt.fail(Fault::range, line);
  return result;
}

// --- conversions ---

template <class R>
CPUFREE_KERNEL_FN std::int64_t py_to_int64(R& rt, double a, std::int64_t line) {
  if (is_nan(a)) rt.fail(Fault::not_a_number, line);
  if (std::isinf(a)) rt.fail(Fault::infinite, line);
  if (!(a >= -0x1p63 && a < 0x1p63)) rt.fail(Fault::overflow, line);
  return whole<std::int64_t>(a);
}
template <class R>
CPUFREE_KERNEL_FN std::int32_t py_to_int32(R& rt, std::int64_t a, std::int64_t line) {
  const auto narrow = static_cast<std::int32_t>(a);
  if (narrow != a) rt.fail(Fault::out_of_int32, line);
  return narrow;
}
template <class R>
CPUFREE_KERNEL_FN std::int32_t py_to_int32(R& rt, double a, std::int64_t line) {
  return py_to_int32(rt, py_to_int64(rt, a, line), line);
}
template <class R, class T>
CPUFREE_KERNEL_FN T py_exponent(R& rt, T a, std::int64_t line) {
  if (a < 0) rt.fail(Fault::negative_power, line);
  return a;
}

// The place of index i among n, which counts from the end where it is negative.
template <class R>
CPUFREE_KERNEL_FN std::int64_t py_index(R& rt, std::int64_t i, std::int64_t n, std::int64_t line) {
  if (i < -n || i >= n) {
    rt.fail(Fault::out_of_bounds, line);
    return 0;
  }
  return i < 0 ? i + n : i;
}

// --- comparisons of whole numbers with floats: exact ---

// Less than 0, 0, more than 0 where a is less than b, b, more than b; b is no NaN.
CPUFREE_FN int exact_order(std::int64_t a, double b) {
  if (b >= 0x1p63) return -1;
  if (b < -0x1p63) return 1;
  const auto below = static_cast<std::int64_t>(std::floor(b));
  if (a != below) return a < below ? -1 : 1;
  return b > std::floor(b) ? -1 : 0;
}
template <class R>
CPUFREE_KERNEL_FN bool py_equal(R&, std::int64_t a, double b, std::int64_t) {
  return !is_nan(b) && exact_order(a, b) == 0;
}
template <class R>
CPUFREE_KERNEL_FN bool py_less(R&, std::int64_t a, double b, std::int64_t) {
  return !is_nan(b) && exact_order(a, b) < 0;
}
template <class R>
CPUFREE_KERNEL_FN bool py_greater(R&, std::int64_t a, double b, std::int64_t) {
  return !is_nan(b) && exact_order(a, b) > 0;
}
template <class R>
CPUFREE_KERNEL_FN bool py_less_equal(R&, std::int64_t a, double b, std::int64_t) {
  return !is_nan(b) && exact_order(a, b) <= 0;
}
template <class R>
CPUFREE_KERNEL_FN bool py_greater_equal(R&, std::int64_t a, double b, std::int64_t) {
  return !is_nan(b) && exact_order(a, b) >= 0;
}

// A value of an array that every PE has.
template <class R, class T>
CPUFREE_KERNEL_FN T element(R& rt, const Array<T, 1>& f, std::int64_t i, std::int64_t line) {
  if (i < -f.rows || i >= f.rows) {
    rt.fail(Fault::out_of_bounds, line);
    return T{};
  }
  return f.base[i < 0 ? i + f.rows : i];
}

}  // namespace cpufree::programs
