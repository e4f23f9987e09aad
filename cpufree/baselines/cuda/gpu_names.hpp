// The names by which the baselines call the GPU's runtime and the vendor's libraries: the one file
// that knows CUDA's. A port to another vendor supplies a folder with the same two files
// (gpu_names.hpp, gpu_launch.hpp); the tests do, for the host (tests/cpp/host_gpu).
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

using gpuError_t = cudaError_t;
using gpuStream_t = cudaStream_t;
using gpuEvent_t = cudaEvent_t;
using gpuGraph_t = cudaGraph_t;
using gpuGraphExec_t = cudaGraphExec_t;
using gpuLoopHandle_t = cudaGraphConditionalHandle;

inline constexpr gpuError_t gpuSuccess = cudaSuccess;
inline constexpr gpuError_t gpuErrorNotReady = cudaErrorNotReady;
inline constexpr gpuError_t gpuErrorMemoryAllocation = cudaErrorMemoryAllocation;
inline constexpr gpuError_t gpuErrorPeerAccessAlreadyEnabled = cudaErrorPeerAccessAlreadyEnabled;

#define gpuGetErrorString cudaGetErrorString
#define gpuGetLastError cudaGetLastError
#define gpuGetDeviceCount cudaGetDeviceCount
#define gpuGetDevice cudaGetDevice
#define gpuSetDevice cudaSetDevice
#define gpuDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define gpuDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
#define gpuMalloc cudaMalloc
#define gpuFree cudaFree
#define gpuFreeHost cudaFreeHost
#define gpuMemsetAsync cudaMemsetAsync
#define gpuMemcpyAsync cudaMemcpyAsync
#define gpuMemcpyPeerAsync cudaMemcpyPeerAsync
#define gpuStreamDestroy cudaStreamDestroy
#define gpuStreamQuery cudaStreamQuery
#define gpuStreamWaitEvent cudaStreamWaitEvent
#define gpuEventCreate cudaEventCreate
#define gpuEventDestroy cudaEventDestroy
#define gpuEventRecord cudaEventRecord
#define gpuEventQuery cudaEventQuery
#define gpuEventElapsedTime cudaEventElapsedTime
#define gpuStreamEndCapture cudaStreamEndCapture
#define gpuGraphCreate cudaGraphCreate
#define gpuGraphDestroy cudaGraphDestroy
#define gpuGraphExecDestroy cudaGraphExecDestroy
#define gpuGraphLaunch cudaGraphLaunch
#define gpuGraphUpload cudaGraphUpload

// Copies know from the addresses which way they go.
inline constexpr auto gpuMemcpyDefault = cudaMemcpyDefault;

inline gpuError_t gpuMultiprocessors(int* count, int device) {
  return cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}
// Pinned, and at the same address for every GPU.
inline gpuError_t gpuHostAlloc(void** p, std::size_t bytes) {
  return cudaHostAlloc(p, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
}
inline gpuError_t gpuStreamCreate(gpuStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}
// Highest priority: what it carries is short, and others wait for it.
inline gpuError_t gpuStreamCreateUrgent(gpuStream_t* stream) {
  int lowest = 0;
  int highest = 0;
  const gpuError_t status = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
  return status != cudaSuccess
             ? status
             : cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, highest);
}
inline gpuError_t gpuEventCreateUntimed(gpuEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}
// Other threads go on calling the runtime meanwhile.
inline gpuError_t gpuStreamBeginCapture(gpuStream_t stream) {
  return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
}
inline gpuError_t gpuStreamBeginCaptureInto(gpuStream_t stream, gpuGraph_t graph) {
  return cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                       cudaStreamCaptureModeThreadLocal);
}
inline gpuError_t gpuGraphInstantiate(gpuGraphExec_t* exec, gpuGraph_t graph) {
  return cudaGraphInstantiate(exec, graph, 0);
}
// A loop in `graph`: `body` runs as long as the handle's value is not 0; it is 1 at every launch.
inline gpuError_t gpuGraphAddLoop(gpuGraph_t graph, gpuLoopHandle_t handle, gpuGraph_t* body) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  const gpuError_t status = cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params);
  if (status == cudaSuccess) *body = params.conditional.phGraph_out[0];
  return status;
}
inline gpuError_t gpuGraphLoopHandle(gpuLoopHandle_t* handle, gpuGraph_t graph) {
  return cudaGraphConditionalHandleCreate(handle, graph, 1, cudaGraphCondAssignDefault);
}
// While the host waits for memory that a GPU writes.
inline void gpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

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
