// The solver kernels of the engine for GPUs on the host, and what GPUs do with vectors before and
// after a solve.
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "cpufree/base/error.hpp"
#include "cpufree/run/cuda_kernel.hpp"
#include "cpufree/run/cuda_vectors.hpp"
#include "cpufree/solvers/cg.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/solvers/pipelined_cg.hpp"
#include "cpufree/solvers/prcg.hpp"
#include "cpufree/solvers/preconditioners.hpp"
#include "cpufree/solvers/warp_slices.hpp"
#include "host_ports.hpp"

namespace host_cuda {

using namespace cpufree;

// For kernels without rings.
class PlainPort : public warp_rig::Port {
 public:
  using warp_rig::Port::Port;
  unsigned warp_ballot(bool value) { return warp_or(value ? 1U << warp_lane() : 0U); }
  static int lowest_bit(unsigned bits) { return std::countr_zero(bits); }
  template <class T>
  T warp_broadcast(T value, int from) {
    return from_lane(value, from);
  }
  template <class T>
  T warp_sum(T value) {
    for (int half = kWarp / 2; half > 0; half /= 2) value += from_lane(value, warp_lane() ^ half);
    return value;
  }
};

template <template <class, class> class Algorithm, class M, class T, class P>
const void* kernel() {
  using Args = SolveArgs<WarpSlices<T>>;
  return kernel_of<P, Args>(
      [](P& port, const Args& args) { solve_kernel<Algorithm, M>(port, args); });
}

}  // namespace host_cuda

namespace cpufree {

template <template <class, class> class Algorithm, class M, class T>
CudaKernels cuda_kernels() {
  using host_cuda::Crossing;
  return {host_cuda::kernel<Algorithm, M, T, Crossing<host_cuda::PlainPort>>(),
          host_cuda::kernel<Algorithm, M, T, Crossing<warp_rig::StreamingPort>>()};
}

template <Study S, template <class, class> class Algorithm>
CudaKernels cuda_study_kernels() {
  throw Unsupported("the host has no studies");
}

#define CPUFREE_HOST_KERNELS(A, T)                        \
  template CudaKernels cuda_kernels<A, Identity<T>, T>(); \
  template CudaKernels cuda_kernels<A, Jacobi<T>, T>();   \
  template CudaKernels cuda_kernels<A, Chebyshev<T>, T>();
#define CPUFREE_HOST_METHOD(A)                                  \
  CPUFREE_HOST_KERNELS(A, float)                                \
  CPUFREE_HOST_KERNELS(A, double)                               \
  template CudaKernels cuda_study_kernels<Study::split, A>();   \
  template CudaKernels cuda_study_kernels<Study::no_comm, A>(); \
  template CudaKernels cuda_study_kernels<Study::no_compute, A>();
CPUFREE_HOST_METHOD(ConjugateGradient)
CPUFREE_HOST_METHOD(PredictRecompute)
CPUFREE_HOST_METHOD(PipelinedCg)

namespace {
template <class T>
void join(VectorProbe* probe, T value) {
  if (probe == nullptr) return;
  if (!std::isfinite(value)) probe->not_finite = 1;
  probe->largest = std::fmax(probe->largest, std::abs(static_cast<double>(value)));
}
}  // namespace

template <class T>
void gather_vector(const T* from, const std::int32_t* row, std::int64_t count, T* to,
                   VectorProbe* probe, cudaStream_t) {
  for (std::int64_t j = 0; j < count; ++j)
    if (row[j] >= 0) join(probe, to[j] = from[row[j]]);
}
template <class T>
void scale_vector(T* v, std::int64_t count, double factor, cudaStream_t) {
  std::for_each(v, v + count, [&](T& value) { value = static_cast<T>(value * factor); });
}
template <class T>
void scatter_vector(const T* from, const std::int32_t* row, std::int64_t count, double scale, T* to,
                    VectorProbe* probe, cudaStream_t) {
  for (std::int64_t j = 0; j < count; ++j)
    if (row[j] >= 0) join(probe, to[row[j]] = static_cast<T>(from[j] / scale));
}

#define CPUFREE_HOST_VECTORS(T)                                                              \
  template void gather_vector(const T*, const std::int32_t*, std::int64_t, T*, VectorProbe*, \
                              cudaStream_t);                                                 \
  template void scale_vector(T*, std::int64_t, double, cudaStream_t);                        \
  template void scatter_vector(const T*, const std::int32_t*, std::int64_t, double, T*,      \
                               VectorProbe*, cudaStream_t);
CPUFREE_HOST_VECTORS(float)
CPUFREE_HOST_VECTORS(double)

}  // namespace cpufree
