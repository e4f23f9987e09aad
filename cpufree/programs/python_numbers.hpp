// Python's rules for numbers of a run: errors go to rt.fail(fault, line), of a Runtime or the like.
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
CPUFREE_KERNEL_FN double py_divide(R& rt, double a, double b, std::int64_t line) {
  if (b == 0.0) rt.fail(Fault::division_by_zero, line);
  return a / b;
}
template <class R, class T>
CPUFREE_KERNEL_FN T py_floor_divide(R& rt, T a, T b, std::int64_t line) {
  if (b == T{0}) rt.fail(Fault::division_by_zero, line);
  return floor_divide(a, b);
}
template <class R, class T>
CPUFREE_KERNEL_FN T py_remainder(R& rt, T a, T b, std::int64_t line) {
  if (b == T{0}) rt.fail(Fault::division_by_zero, line);
  return remainder(a, b);
}
template <class R>
CPUFREE_KERNEL_FN double py_power(R& rt, double a, double b, std::int64_t line) {
  if (a == 0.0 && b < 0.0) rt.fail(Fault::division_by_zero, line);
  if (a < 0.0 && b != std::floor(b)) rt.fail(Fault::complex, line);
  return std::pow(a, b);
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
