// Conjugate gradients out of the vendor's libraries as PETSc does it on one GPU: a call for every
// operation, scalars on the host, which waits for each of them.
#pragma once

#include <gpu_libraries.hpp>

#include <cmath>
#include <cstdint>
#include <string>

#include "cpufree/baselines/drive.hpp"

namespace cpufree::baselines {

class BlasHandle {
 public:
  explicit BlasHandle(const Stream& stream) {
    const OnDevice here(stream.device());
    expect(gpublasCreate(&handle_), "gpublasCreate");
    expect(gpublasSetStream(handle_, stream), "gpublasSetStream");
  }
  ~BlasHandle() {
    if (handle_ != nullptr) static_cast<void>(gpublasDestroy(handle_));
  }
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;
  operator gpublasHandle_t() const { return handle_; }

  static void expect(decltype(gpublasSuccess) status, const char* call) {
    if (status != gpublasSuccess)
      throw EngineError(std::string(call) + ": " + gpublasGetErrorString(status));
  }

 private:
  gpublasHandle_t handle_ = nullptr;
};

template <class T>
class Textbook {
 public:
  explicit Textbook(Rank<T>& rank) : rank_(rank), blas_(rank.compute) {}

  // x = 0 and r = b to begin with. Returns with all work done.
  Ending run(const Stop& stop, double wait_limit) {
    const OnDevice here(rank_.device);
    T* const r = rank_.r.data();
    T* const p = rank_.vector(HaloVector::p);
    T* const s = rank_.s.data();
    T* const z = jacobi() ? rank_.z.data() : r;
    copy(rank_.b.data(), r);
    precondition(r);
    copy(z, p);
    double rho = dot(r, z);
    double square = dot(r, r);
    const double target = stop.rtol < 0.0 ? -1.0 : stop.rtol * stop.rtol * square;
    Ending ending;
    const double first = square;
    while ((ending.code = judge(square, target, first)) == Code::running &&
           ending.iterations < stop.iterations) {
      rank_.product.multiply(p, s, NoSums<T>{}, {}, [] {});
      const double curvature = dot(p, s);
      if (!(curvature > 0.0)) {
        ending.code = Code::indefinite_mat;
        break;
      }
      const double alpha = rho / curvature;
      axpy(alpha, p, rank_.x.data());
      axpy(-alpha, s, r);
      precondition(r);
      const double next = dot(r, z);
      square = dot(r, r);
      scale(next / rho, p);
      axpy(1.0, z, p);
      rho = next;
      ++ending.iterations;
    }
    ending.square = square;
    rank_.compute.drain(Deadline(wait_limit), "the end of a solve");
    return ending;
  }

 private:
  static Code judge(double square, double target, double first) {
    if (!std::isfinite(square)) return Code::not_finite;
    if (square <= target || square == 0.0) return Code::converged;
    return square > 1e20 * first ? Code::grown : Code::running;
  }

  bool jacobi() const { return rank_.inverse.size() > 0; }
  void copy(const T* from, T* to) const {
    gpu::copy(to, from, at(rank_.rows) * sizeof(T), rank_.compute);
  }
  void precondition(const T* r) const {
    if (jacobi())
      BlasHandle::expect(gpublasDiagonal(blas_, rank_.rows, rank_.diagonal(), r, rank_.z.data()),
                         "gpublasDiagonal");
  }
  double dot(const T* a, const T* b) const {
    T sum = 0;
    BlasHandle::expect(gpublasDot(blas_, rank_.rows, a, b, &sum), "gpublasDot");
    return static_cast<double>(sum);
  }
  void axpy(double a, const T* v, T* to) const {
    const T factor = static_cast<T>(a);
    BlasHandle::expect(gpublasAxpy(blas_, rank_.rows, &factor, v, to), "gpublasAxpy");
  }
  void scale(double a, T* v) const {
    const T factor = static_cast<T>(a);
    BlasHandle::expect(gpublasScale(blas_, rank_.rows, &factor, v), "gpublasScale");
  }

  Rank<T>& rank_;
  BlasHandle blas_;
};

}  // namespace cpufree::baselines
