// The vendor's sparse and dense libraries on the host, for tests.
#pragma once

#include <gpu_names.hpp>

#include <cstddef>
#include <cstdint>

enum gpusparseStatus_t { gpusparseSuccess };
enum gpublasStatus_t { gpublasSuccess };
inline const char* gpusparseGetErrorString(gpusparseStatus_t) { return "no error"; }
inline const char* gpublasGetErrorString(gpublasStatus_t) { return "no error"; }

struct HostHandle {
  gpuStream_t stream = nullptr;
};
struct HostMatrix {
  std::int64_t rows = 0;
  const std::int32_t* row_ptr = nullptr;
  const std::int32_t* col = nullptr;
  const void* val = nullptr;
  bool analysed = false;
};
struct HostVector {
  void* values = nullptr;
};
using gpusparseHandle_t = HostHandle*;
using gpusparseMatrix_t = HostMatrix*;
using gpusparseVector_t = HostVector*;
using gpublasHandle_t = HostHandle*;
enum gpusparseAlgorithm_t { gpusparseDefault, gpusparseCsr1, gpusparseCsr2 };

inline auto gpusparseCreate(gpusparseHandle_t* h) {
  *h = new HostHandle;
  return gpusparseSuccess;
}
inline auto gpusparseDestroy(gpusparseHandle_t h) {
  delete h;
  return gpusparseSuccess;
}
inline auto gpusparseSetStream(gpusparseHandle_t h, gpuStream_t stream) {
  h->stream = stream;
  return gpusparseSuccess;
}
template <class T>
auto gpusparseCreateMatrix(gpusparseMatrix_t* matrix, std::int64_t rows, std::int64_t,
                           std::int32_t* row_ptr, std::int32_t* col, T* val) {
  *matrix = new HostMatrix{rows, row_ptr, col, val};
  return gpusparseSuccess;
}
inline auto gpusparseDestroyMatrix(gpusparseMatrix_t matrix) {
  delete matrix;
  return gpusparseSuccess;
}
template <class T>
auto gpusparseCreateVector(gpusparseVector_t* vector, std::int64_t, T* values) {
  *vector = new HostVector{values};
  return gpusparseSuccess;
}
inline auto gpusparseDestroyVector(gpusparseVector_t vector) {
  delete vector;
  return gpusparseSuccess;
}
inline auto gpusparseSetValues(gpusparseVector_t vector, void* values) {
  vector->values = values;
  return gpusparseSuccess;
}
template <class T>
auto gpusparseBufferSize(gpusparseHandle_t, const T*, gpusparseMatrix_t, gpusparseVector_t,
                         const T*, gpusparseVector_t, gpusparseAlgorithm_t, std::size_t* bytes) {
  *bytes = host_gpu::sparse_buffer();
  return gpusparseSuccess;
}
template <class T>
auto gpusparsePreprocess(gpusparseHandle_t, const T*, gpusparseMatrix_t a, gpusparseVector_t,
                         const T*, gpusparseVector_t, gpusparseAlgorithm_t, void*) {
  a->analysed = true;
  return gpusparseSuccess;
}
template <class T>
auto gpusparseMultiply(gpusparseHandle_t h, const T*, gpusparseMatrix_t a, gpusparseVector_t x,
                       const T*, gpusparseVector_t y, gpusparseAlgorithm_t, void*) {
  const HostMatrix m = *a;
  const auto* const from = static_cast<const T*>(x->values);
  auto* const to = static_cast<T*>(y->values);
  static_cast<void>(
      host_gpu::launch(h->stream, {{},
                                   [=] {
                                     for (std::int64_t i = 0; i < m.rows; ++i) {
                                       T sum = 0;
                                       for (auto k = m.row_ptr[i]; k < m.row_ptr[i + 1]; ++k)
                                         sum += static_cast<const T*>(m.val)[k] * from[m.col[k]];
                                       to[i] = sum;
                                     }
                                   },
                                   {},
                                   0,
                                   {},
                                   {}}));
  return gpusparseSuccess;
}

inline auto gpublasCreate(gpublasHandle_t* h) {
  *h = new HostHandle;
  return gpublasSuccess;
}
inline auto gpublasDestroy(gpublasHandle_t h) {
  delete h;
  return gpublasSuccess;
}
inline auto gpublasSetStream(gpublasHandle_t h, gpuStream_t stream) {
  h->stream = stream;
  return gpublasSuccess;
}
// In the order of the stream, and done when the call returns: scalars are the host's.
template <class F>
gpublasStatus_t host_blas(gpublasHandle_t h, F&& work) {
  while (gpuStreamQuery(h->stream) == gpuErrorNotReady) {
  }
  work();
  return gpublasSuccess;
}
template <class T>
auto gpublasDot(gpublasHandle_t h, int n, const T* x, const T* y, T* out) {
  return host_blas(h, [=] {
    *out = 0;
    for (int i = 0; i < n; ++i) *out += x[i] * y[i];
  });
}
template <class T>
auto gpublasAxpy(gpublasHandle_t h, int n, const T* a, const T* x, T* y) {
  return host_blas(h, [=] {
    for (int i = 0; i < n; ++i) y[i] += *a * x[i];
  });
}
template <class T>
auto gpublasScale(gpublasHandle_t h, int n, const T* a, T* x) {
  return host_blas(h, [=] {
    for (int i = 0; i < n; ++i) x[i] *= *a;
  });
}
template <class T>
auto gpublasDiagonal(gpublasHandle_t h, int n, const T* diagonal, const T* x, T* y) {
  return host_blas(h, [=] {
    for (int i = 0; i < n; ++i) y[i] = diagonal[i] * x[i];
  });
}
