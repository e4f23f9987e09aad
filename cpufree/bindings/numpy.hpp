// Arrays of NumPy that hold what C++ has made.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "cpufree/base/pages.hpp"

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

// A new NumPy array of n values: large ones in huge pages, which are filled sooner.
template <class T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> new_numpy(std::size_t n) {
  T* const values = static_cast<T*>(allocate_pages(n * sizeof(T)));
  const nanobind::capsule owner(values, &free_pages);
  return {values, {n}, owner};
}

}  // namespace cpufree
