// NumPy's functions of single values, as generated kernels call them. Where an operation is IEEE's,
// the bits are NumPy's; its rules for NaN, signs and division of whole numbers are kept.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cpufree/base/annotate.hpp"

namespace cpufree::programs {

// Whole numbers wrap around, as NumPy's do, whatever the compiler takes for granted.
CPUFREE_FN std::int32_t plus(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
CPUFREE_FN std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
CPUFREE_FN std::int32_t minus(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}
CPUFREE_FN std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
CPUFREE_FN std::int32_t times(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}
CPUFREE_FN std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// Bits beyond the ends are lost; by more bits than there are, or fewer than none, all of them.
template <class T>
CPUFREE_FN T left_shift(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  const bool some = static_cast<Bits>(b) < std::numeric_limits<Bits>::digits;
  return some ? static_cast<T>(static_cast<Bits>(a) << b) : T{0};
}
template <class T>
CPUFREE_FN T right_shift(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  const bool some = static_cast<Bits>(b) < std::numeric_limits<Bits>::digits;
  return some ? a >> b : a < 0 ? T{-1} : T{0};
}

template <class T>
CPUFREE_FN bool is_nan(T a) {
  if constexpr (std::is_floating_point_v<T>) return a != a;
  return false;
}
// NaN wins, as in np.maximum and np.max. Of equal ones, which may be zeros of both signs, it is the
// second one: NumPy's rule on x86-64, with all of its instruction sets.
template <class T>
CPUFREE_FN T maximum(T a, T b) {
  return (a > b || is_nan(a)) ? a : b;
}
template <class T>
CPUFREE_FN T minimum(T a, T b) {
  return (a < b || is_nan(a)) ? a : b;
}

// A float as a whole number, rounded towards zero. What does not fit, and NaN, is the least number,
// as of the instructions of x86-64 and so of NumPy there. What is between -1 and 1 is taken for 0
// before it is converted: compilers make a truncation of a conversion to and fro, which has -0.0.
template <class To, class T>
CPUFREE_FN To whole(T a) {
  constexpr T limit = -static_cast<T>(std::numeric_limits<To>::min());
  const T size = std::fabs(a);
  const T fitting = size < limit ? a : -limit;
  return static_cast<To>(size < T{1} ? T{0} : fitting);
}

// The remainder with the sign of the divisor; by 0 it is NaN, of whole numbers 0.
template <class T>
CPUFREE_FN T remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    T rest = std::fmod(a, b);
    if (b == T{0}) return rest;
    if (rest != T{0}) return ((b < T{0}) != (rest < T{0})) ? rest + b : rest;
    return std::copysign(T{0}, b);
  } else {
    if (b == 0 || b == T(-1)) return 0;
    const T rest = a % b;
    return (rest != 0 && ((rest < 0) != (b < 0))) ? rest + b : rest;
  }
}

// The quotient rounded down; of whole numbers by 0 it is 0.
template <class T>
CPUFREE_FN T floor_divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == T{0}) return a / b;
    T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T{0} && ((b < T{0}) != (rest < T{0}))) quotient -= T{1};
    if (quotient == T{0}) return std::copysign(T{0}, a / b);
    const T down = std::floor(quotient);
    return quotient - down > T(0.5) ? down + T{1} : down;
  } else {
    if (b == 0) return 0;
    if (b == T(-1)) return static_cast<T>(-a);
    const T quotient = a / b;
    return (quotient * b != a && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
  }
}

template <class T>
CPUFREE_FN T sign(T a) {
  if (is_nan(a)) return a;
  return a > T{0} ? T(1) : a < T{0} ? T(-1) : T{0};
}
template <class T>
CPUFREE_FN T absolute(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
  if constexpr (std::is_same_v<T, bool>) return a;
  return a < 0 ? static_cast<T>(-a) : a;
}
template <class T>
CPUFREE_FN T power(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(a, b);
  } else {
    T result = 1;
    for (T base = a; b > 0; b >>= 1, base *= base)
      if (b & 1) result *= base;
    return result;
  }
}
// Of 0 it is the least whole number, to which NumPy converts an infinity.
template <class T>
CPUFREE_FN T reciprocal(T a) {
  if constexpr (!std::is_floating_point_v<T>)
    if (a == 0) return std::numeric_limits<T>::min();
  return T(1) / a;
}
template <class T>
CPUFREE_FN T square(T a) {
  return a * a;
}

// What np.sum of a row is in generated kernels: eight partial sums of every eighth value, added in
// a fixed order, and the rows' sums with the rounding errors kept apart (Ogita, Rump, Oishi 2005,
// Accurate sum and dot product), so that the order of rows hardly matters.
struct Accurate {
  double high = 0.0, low = 0.0;
  CPUFREE_FN void add(double x) {
    const double sum = high + x;
    const double part = sum - high;
    low += (high - (sum - part)) + (x - part);
    high = sum;
  }
  CPUFREE_FN double value() const {
    const double all = high + low;
    return all == all ? all : high;  // of infinities the parts are NaN
  }
};

CPUFREE_FN Accurate joined_sums(Accurate a, const Accurate& b) {
  a.add(b.high);
  a.low += b.low;
  return a;
}

struct JoinedSums {
  CPUFREE_FN Accurate operator()(const Accurate& a, const Accurate& b) const {
    return joined_sums(a, b);
  }
};

CPUFREE_FN std::int64_t floor_division(std::int64_t a, std::int64_t b) {
  return floor_divide(a, b);
}
CPUFREE_FN std::int64_t wrapped(std::int64_t i, std::int64_t n) { return remainder(i, n); }

// The same for 0 <= i < 2 n.
CPUFREE_FN std::int64_t once_around(std::int64_t i, std::int64_t n) { return i < n ? i : i - n; }

}  // namespace cpufree::programs
