// Values that are moved together.
#pragma once

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// N values that are moved together, 16 bytes at a time where there are as many. They lie at
// multiples of that.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T value[N];
};
template <class T, int N>
CPUFREE_KERNEL_FN void load_pack(const T* from, T (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
  CPUFREE_UNROLL
  for (int k = 0; k < N; ++k) to[k] = pack.value[k];
}
template <class T, int N>
CPUFREE_KERNEL_FN void store_pack(T* to, const T (&from)[N]) {
  Pack<T, N> pack;
  CPUFREE_UNROLL
  for (int k = 0; k < N; ++k) pack.value[k] = from[k];
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

}  // namespace cpufree
