// What a port offers for blocks of one thread, for engines whose threads are blocks.
#pragma once

#include <cmath>
#include <cstddef>

#include "cpufree/device/study.hpp"

namespace cpufree {

struct SoloBlock : Unstudied {
  static constexpr int lane() { return 0; }
  static constexpr int lanes() { return 1; }
  static bool all(bool value) { return value; }
  static bool warp_all(bool value) { return value; }

  template <int K, class F>
  static void scatter(const double (&partial)[K], int targets, unsigned note, F&& store) {
    for (int pe = 0; pe < targets; ++pe)
      for (int k = 0; k < K; ++k) store(pe, k, partial[k], note);
  }
  template <int K, class F, class G>
  static void combine(double (&total)[K], unsigned&, bool, F&& prepare, G&& body) {
    for (int k = 0; k < K; ++k) total[k] = body(prepare(k, 0, 1));
  }
  template <int K>
  static constexpr void recall(double (&)[K]) {}
  template <class T>
  static constexpr T in_register(T value) {
    return value;
  }
  static constexpr bool bookkeeper() { return true; }
  static constexpr double reciprocal(double x) { return 1.0 / x; }
  static double reciprocal_root(double x) { return 1.0 / std::sqrt(x); }

  template <class T>
  using Kept = T;
  template <class T>
  static T keep(const T& value) {
    return value;
  }
  template <class T>
  using Held = T;
  template <class T>
  static T hold(const T& value) {
    return value;
  }
  static std::byte* fast_memory() { return nullptr; }
};

}  // namespace cpufree
