// What kernels use of the C++ standard library, for a compiler that comes without one: kernels that
// are compiled on the user's machine (solvers/gpu/compiled/kernel_source.hpp) find this under the
// names of the standard headers. Meanings and names are the standard's (ISO/IEC 14882:2020).
#pragma once

namespace std {

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;
using uint64_t = unsigned long;
using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));
using uintptr_t = unsigned long;
using nullptr_t = decltype(nullptr);
enum class byte : unsigned char {};

template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;

template <bool condition, class A, class>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool condition, class A, class B>
using conditional_t = typename conditional<condition, A, B>::type;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;

template <class A>
inline constexpr bool is_const_v = false;
template <class A>
inline constexpr bool is_const_v<const A> = true;
template <class A>
inline constexpr bool is_floating_point_v = false;
template <>
inline constexpr bool is_floating_point_v<float> = true;
template <>
inline constexpr bool is_floating_point_v<double> = true;

template <class T>
struct remove_reference {
  using type = T;
};
template <class T>
struct remove_reference<T&> {
  using type = T;
};
template <class T>
struct remove_reference<T&&> {
  using type = T;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;

template <class T>
struct remove_cv {
  using type = T;
};
template <class T>
struct remove_cv<const T> {
  using type = T;
};
template <class T>
struct remove_cv<volatile T> {
  using type = T;
};
template <class T>
struct remove_cv<const volatile T> {
  using type = T;
};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;

template <class T>
T&& declval() noexcept;

template <class T, T... numbers>
struct integer_sequence {
  using value_type = T;
};
template <bool ended, class T, T count, T... numbers>
struct sequence_of : sequence_of<count == 1, T, count - 1, count - 1, numbers...> {};
template <class T, T count, T... numbers>
struct sequence_of<true, T, count, numbers...> {
  using type = integer_sequence<T, numbers...>;
};
template <class T, T count>
using make_integer_sequence = typename sequence_of<count == 0, T, count>::type;

template <class A, class B>
concept same_as = is_same_v<A, B> && is_same_v<B, A>;
template <class T>
concept floating_point = is_same_v<remove_cv_t<T>, float> || is_same_v<remove_cv_t<T>, double>;
template <class From, class To>
concept convertible_to = requires(void (&take)(To), From (&from)()) { take(from()); };

template <class T>
constexpr remove_reference_t<T>&& move(T&& value) noexcept {
  return static_cast<remove_reference_t<T>&&>(value);
}
template <class T>
constexpr T&& forward(remove_reference_t<T>& value) noexcept {
  return static_cast<T&&>(value);
}
template <class T, class U = T>
constexpr T exchange(T& object, U&& value) {
  T before = move(object);
  object = forward<U>(value);
  return before;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<double> {
  static double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000LL); }
  static double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000LL); }
};
template <>
struct numeric_limits<float> {
  static float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000); }
  static float infinity() { return __builtin_bit_cast(float, 0x7f800000); }
};
template <>
struct numeric_limits<int32_t> {
  static constexpr int32_t max() { return 0x7fffffff; }
  static constexpr int32_t min() { return -max() - 1; }
  static constexpr int32_t lowest() { return min(); }
};
template <>
struct numeric_limits<int64_t> {
  static constexpr int64_t max() { return 0x7fffffffffffffffL; }
  static constexpr int64_t min() { return -max() - 1; }
  static constexpr int64_t lowest() { return min(); }
};
template <>
struct numeric_limits<bool> {
  static constexpr bool max() { return true; }
  static constexpr bool min() { return false; }
  static constexpr bool lowest() { return false; }
};

// What the compiler knows of C's mathematics, for float and double.
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmod;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::pow;
using ::rint;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;

#if defined(__HIP__)
// NVRTC has these by itself.
template <class T>
struct make_unsigned;
template <>
struct make_unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct make_unsigned<int64_t> {
  using type = uint64_t;
};
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <>
struct numeric_limits<uint32_t> {
  static constexpr int digits = 32;
};
template <>
struct numeric_limits<uint64_t> {
  static constexpr int digits = 64;
};
inline void* memcpy(void* to, const void* from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}
#else
using ::memcpy;
#endif

}  // namespace std
