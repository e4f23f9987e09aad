// The names by which the baselines call the vendor's libraries: the one file that knows CUDA's. The
// tests supply another one, for the host (tests/cpp/host_gpu).
#pragma once

#include <cublas_v2.h>
#include <cusparse.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Sparse products of the vendor.
using gpusparseHandle_t = cusparseHandle_t;
using gpusparseMatrix_t = cusparseSpMatDescr_t;
using gpusparseVector_t = cusparseDnVecDescr_t;
using gpusparseAlgorithm_t = cusparseSpMVAlg_t;
inline constexpr auto gpusparseDefault = CUSPARSE_SPMV_ALG_DEFAULT;
inline constexpr auto gpusparseCsr1 = CUSPARSE_SPMV_CSR_ALG1;
inline constexpr auto gpusparseCsr2 = CUSPARSE_SPMV_CSR_ALG2;
inline constexpr auto gpusparseSuccess = CUSPARSE_STATUS_SUCCESS;
#define gpusparseCreate cusparseCreate
#define gpusparseDestroy cusparseDestroy
#define gpusparseSetStream cusparseSetStream
#define gpusparseGetErrorString cusparseGetErrorString
#define gpusparseDestroyMatrix cusparseDestroySpMat
#define gpusparseDestroyVector cusparseDestroyDnVec
#define gpusparseSetValues cusparseDnVecSetValues

template <class T>
inline constexpr cudaDataType gpuDataType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_64F;

template <class T>
auto gpusparseCreateMatrix(gpusparseMatrix_t* matrix, std::int64_t rows, std::int64_t nnz,
                           std::int32_t* row_ptr, std::int32_t* col, T* val) {
  return cusparseCreateCsr(matrix, rows, rows, nnz, row_ptr, col, val, CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, gpuDataType<T>);
}
template <class T>
auto gpusparseCreateVector(gpusparseVector_t* vector, std::int64_t size, T* values) {
  return cusparseCreateDnVec(vector, size, values, gpuDataType<T>);
}
template <class T>
auto gpusparseBufferSize(gpusparseHandle_t h, const T* one, gpusparseMatrix_t a,
                         gpusparseVector_t x, const T* zero, gpusparseVector_t y,
                         gpusparseAlgorithm_t algorithm, std::size_t* bytes) {
  return cusparseSpMV_bufferSize(h, CUSPARSE_OPERATION_NON_TRANSPOSE, one, a, x, zero, y,
                                 gpuDataType<T>, algorithm, bytes);
}
template <class T>
auto gpusparsePreprocess(gpusparseHandle_t h, const T* one, gpusparseMatrix_t a,
                         gpusparseVector_t x, const T* zero, gpusparseVector_t y,
                         gpusparseAlgorithm_t algorithm, void* buffer) {
  return cusparseSpMV_preprocess(h, CUSPARSE_OPERATION_NON_TRANSPOSE, one, a, x, zero, y,
                                 gpuDataType<T>, algorithm, buffer);
}
template <class T>
auto gpusparseMultiply(gpusparseHandle_t h, const T* one, gpusparseMatrix_t a, gpusparseVector_t x,
                       const T* zero, gpusparseVector_t y, gpusparseAlgorithm_t algorithm,
                       void* buffer) {
  return cusparseSpMV(h, CUSPARSE_OPERATION_NON_TRANSPOSE, one, a, x, zero, y, gpuDataType<T>,
                      algorithm, buffer);
}

// Dense vectors, scalars on the host.
using gpublasHandle_t = cublasHandle_t;
inline constexpr auto gpublasSuccess = CUBLAS_STATUS_SUCCESS;
#define gpublasCreate cublasCreate
#define gpublasDestroy cublasDestroy
#define gpublasSetStream cublasSetStream
#define gpublasGetErrorString cublasGetStatusString
inline auto gpublasDot(gpublasHandle_t h, int n, const double* x, const double* y, double* out) {
  return cublasDdot(h, n, x, 1, y, 1, out);
}
inline auto gpublasDot(gpublasHandle_t h, int n, const float* x, const float* y, float* out) {
  return cublasSdot(h, n, x, 1, y, 1, out);
}
inline auto gpublasAxpy(gpublasHandle_t h, int n, const double* a, const double* x, double* y) {
  return cublasDaxpy(h, n, a, x, 1, y, 1);
}
inline auto gpublasAxpy(gpublasHandle_t h, int n, const float* a, const float* x, float* y) {
  return cublasSaxpy(h, n, a, x, 1, y, 1);
}
inline auto gpublasScale(gpublasHandle_t h, int n, const double* a, double* x) {
  return cublasDscal(h, n, a, x, 1);
}
inline auto gpublasScale(gpublasHandle_t h, int n, const float* a, float* x) {
  return cublasSscal(h, n, a, x, 1);
}
// y = diagonal * x, entry by entry.
inline auto gpublasDiagonal(gpublasHandle_t h, int n, const double* diagonal, const double* x,
                            double* y) {
  return cublasDdgmm(h, CUBLAS_SIDE_LEFT, n, 1, x, n, diagonal, 1, y, n);
}
inline auto gpublasDiagonal(gpublasHandle_t h, int n, const float* diagonal, const float* x,
                            float* y) {
  return cublasSdgmm(h, CUBLAS_SIDE_LEFT, n, 1, x, n, diagonal, 1, y, n);
}
