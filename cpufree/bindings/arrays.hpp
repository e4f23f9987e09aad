// Arrays from Python: vectors in host memory, and a matrix in compressed rows.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

template <class T>
using Vector =
    nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Rows = Vector<std::int32_t>;

template <class T>
std::span<const T> span_of(const Vector<T>& array) {
  return {array.data(), array.size()};
}
inline std::span<const std::int32_t> span_of(const std::optional<Rows>& array) {
  return array ? std::span(array->data(), array->size()) : std::span<const std::int32_t>();
}

// The matrix of three arrays; `indptr` is not empty. Throws InvalidInput where they are not one's.
template <class T>
CsrView<T> matrix_of(const Vector<std::int64_t>& indptr, const Rows& indices,
                     const Vector<T>& values) {
  const CsrView<T> matrix{static_cast<std::int32_t>(indptr.size() - 1), span_of(indptr),
                          span_of(indices), span_of(values)};
  require(
      matrix.nnz() == static_cast<std::int64_t>(indices.size()) && indices.size() == values.size(),
      "indptr, indices and data do not belong together");
  return matrix;
}

}  // namespace cpufree
