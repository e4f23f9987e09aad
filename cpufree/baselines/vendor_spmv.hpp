// The vendor's product of a CSR matrix and a vector.
#pragma once

#include <gpu_libraries.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/baselines/gpu.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree::baselines {

inline void check_sparse(decltype(gpusparseSuccess) status, const char* call) {
  if (status != gpusparseSuccess)
    throw EngineError(std::string(call) + ": " + gpusparseGetErrorString(status));
}

// A square matrix of `part`'s own columns. It has fewer than 2^31 nonzeros: the library takes row
// pointers and columns of one width, and wider columns would cost it a third of its speed.
template <class T>
class VendorSpmv {
 public:
  static bool fits(const LocalSystem<T>& part) {
    const std::int64_t nnz = part.row_ptr.back();
    return nnz < (std::int64_t{1} << 31) && (nnz > 0 || part.row_ptr.size() == 1);
  }

  VendorSpmv(const Stream& stream, const LocalSystem<T>& part, gpusparseAlgorithm_t algorithm, T* x,
             T* y)
      : device_(stream.device()),
        algorithm_(algorithm),
        row_ptr_(stream, std::vector<std::int32_t>(part.row_ptr.begin(), part.row_ptr.end())),
        col_(stream, part.col),
        val_(stream, part.val) {
    const OnDevice here(device_);
    const auto rows = static_cast<std::int64_t>(part.row_ptr.size()) - 1;
    check_sparse(gpusparseCreate(&handle_), "gpusparseCreate");
    check_sparse(gpusparseSetStream(handle_, stream), "gpusparseSetStream");
    check_sparse(gpusparseCreateMatrix(&matrix_, rows, part.row_ptr.back(), row_ptr_.data(),
                                       col_.data(), val_.data()),
                 "gpusparseCreateMatrix");
    check_sparse(gpusparseCreateVector(&x_, rows, x), "gpusparseCreateVector");
    check_sparse(gpusparseCreateVector(&y_, rows, y), "gpusparseCreateVector");
    std::size_t bytes = 0;
    check_sparse(gpusparseBufferSize(handle_, &one_, matrix_, x_, &zero_, y_, algorithm_, &bytes),
                 "gpusparseBufferSize");
    buffer_ = DeviceArray<char>(stream, bytes);
    check_sparse(
        gpusparsePreprocess(handle_, &one_, matrix_, x_, &zero_, y_, algorithm_, buffer_.data()),
        "gpusparsePreprocess");
    stream.drain(Deadline(kCopyLimit), "the analysis of a matrix");
  }
  ~VendorSpmv() {
    if (x_ != nullptr) static_cast<void>(gpusparseDestroyVector(x_));
    if (y_ != nullptr) static_cast<void>(gpusparseDestroyVector(y_));
    if (matrix_ != nullptr) static_cast<void>(gpusparseDestroyMatrix(matrix_));
    if (handle_ != nullptr) static_cast<void>(gpusparseDestroy(handle_));
  }
  VendorSpmv(const VendorSpmv&) = delete;
  VendorSpmv& operator=(const VendorSpmv&) = delete;

  // y = A x on the stream of the constructor.
  void multiply(T* x, T* y) {
    check_sparse(gpusparseSetValues(x_, x), "gpusparseSetValues");
    check_sparse(gpusparseSetValues(y_, y), "gpusparseSetValues");
    check_sparse(
        gpusparseMultiply(handle_, &one_, matrix_, x_, &zero_, y_, algorithm_, buffer_.data()),
        "gpusparseMultiply");
  }

 private:
  int device_;
  gpusparseAlgorithm_t algorithm_;
  DeviceArray<std::int32_t> row_ptr_;
  DeviceArray<std::int32_t> col_;
  DeviceArray<T> val_;
  DeviceArray<char> buffer_;
  gpusparseHandle_t handle_ = nullptr;
  gpusparseMatrix_t matrix_ = nullptr;
  gpusparseVector_t x_ = nullptr;
  gpusparseVector_t y_ = nullptr;
  T one_ = 1;
  T zero_ = 0;
};

}  // namespace cpufree::baselines
