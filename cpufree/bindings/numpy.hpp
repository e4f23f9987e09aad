// Arrays of NumPy that hold what C++ has made.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace cpufree {

// A NumPy array that owns the values of `values`.
template <class T, class Allocator>
nanobind::object to_numpy(std::vector<T, Allocator> values) {
  using Owned = std::vector<T, Allocator>;
  auto* owned = new Owned(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<Owned*>(p); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(
      owned->data(), {owned->size()}, owner));
}

// A new NumPy array of n values, as the memory is.
template <class T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> new_numpy(std::size_t n) {
  T* const values = new T[n];
  const nanobind::capsule owner(values, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return {values, {n}, owner};
}

}  // namespace cpufree
