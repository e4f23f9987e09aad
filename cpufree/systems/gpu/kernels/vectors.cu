#include <algorithm>

#include "cpufree/gpu/error.hpp"
#include "cpufree/systems/gpu/kernels/vectors.hpp"

namespace cpufree {

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;

unsigned blocks_for(std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kMostBlocks));
}

__device__ std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ std::int64_t stride() { return static_cast<std::int64_t>(gridDim.x) * kThreads; }

// Bit patterns of numbers >= 0 are ordered as the numbers are. Called by whole warps.
__device__ void join(VectorProbe* probe, double largest, bool not_finite) {
  for (int half = 16; half > 0; half /= 2)
    largest = fmax(largest, __shfl_xor_sync(0xffffffffU, largest, half));
  const bool any = __any_sync(0xffffffffU, not_finite ? 1 : 0) != 0;
  if (threadIdx.x % 32 != 0) return;
  if (largest > 0.0)
    atomicMax(reinterpret_cast<unsigned long long*>(&probe->largest),
              static_cast<unsigned long long>(__double_as_longlong(largest)));
  if (any) atomicOr(&probe->not_finite, 1U);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    gather(const T* from, const std::int32_t* row, std::int64_t count, T* to, VectorProbe* probe) {
  double largest = 0.0;
  bool not_finite = false;
  for (std::int64_t j = first_index(); j < count; j += stride()) {
    const std::int32_t i = row[j];
    if (i < 0) continue;
    const T value = from[i];
    to[j] = value;
    const double size = fabs(static_cast<double>(value));
    if (size > largest) largest = size;  // false for a NaN
    not_finite = not_finite || !(size - size == 0.0);
  }
  if (probe != nullptr) join(probe, largest, not_finite);
}

template <class T>
__global__ void __launch_bounds__(kThreads) scale(T* v, std::int64_t count, double factor) {
  for (std::int64_t j = first_index(); j < count; j += stride())
    v[j] = static_cast<T>(factor * static_cast<double>(v[j]));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    scatter(const T* from, const std::int32_t* row, std::int64_t count, double divisor, T* to,
            VectorProbe* probe) {
  bool not_finite = false;
  for (std::int64_t j = first_index(); j < count; j += stride()) {
    const std::int32_t i = row[j];
    if (i < 0) continue;
    const T value = static_cast<T>(static_cast<double>(from[j]) / divisor);
    to[i] = value;
    not_finite = not_finite || !(value - value == T{0});
  }
  join(probe, 0.0, not_finite);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    put_in(const T* from, std::int64_t count, int column, int columns, double factor, T* all) {
  for (std::int64_t j = first_index(); j < count; j += stride())
    all[j * columns + column] = static_cast<T>(factor * static_cast<double>(from[j]));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    take_out(const T* all, std::int64_t count, int column, int columns, T* to) {
  for (std::int64_t j = first_index(); j < count; j += stride()) to[j] = all[j * columns + column];
}

}  // namespace

template <class T>
void put_column(const T* from, std::int64_t count, int column, int columns, double factor, T* all,
                gpuStream_t stream) {
  put_in<<<blocks_for(count), kThreads, 0, stream>>>(from, count, column, columns, factor, all);
  gpu::check_launch("launch of put_in");
}

template <class T>
void take_column(const T* all, std::int64_t count, int column, int columns, T* to,
                 gpuStream_t stream) {
  take_out<<<blocks_for(count), kThreads, 0, stream>>>(all, count, column, columns, to);
  gpu::check_launch("launch of take_out");
}

template <class T>
void gather_vector(const T* from, const std::int32_t* row, std::int64_t count, T* to,
                   VectorProbe* probe, gpuStream_t stream) {
  gather<<<blocks_for(count), kThreads, 0, stream>>>(from, row, count, to, probe);
  gpu::check_launch("launch of gather");
}

template <class T>
void scale_vector(T* v, std::int64_t count, double factor, gpuStream_t stream) {
  scale<<<blocks_for(count), kThreads, 0, stream>>>(v, count, factor);
  gpu::check_launch("launch of scale");
}

template <class T>
void scatter_vector(const T* from, const std::int32_t* row, std::int64_t count, double scale, T* to,
                    VectorProbe* probe, gpuStream_t stream) {
  scatter<<<blocks_for(count), kThreads, 0, stream>>>(from, row, count, scale, to, probe);
  gpu::check_launch("launch of scatter");
}

template void put_column(const float*, std::int64_t, int, int, double, float*, gpuStream_t);
template void put_column(const double*, std::int64_t, int, int, double, double*, gpuStream_t);
template void take_column(const float*, std::int64_t, int, int, float*, gpuStream_t);
template void take_column(const double*, std::int64_t, int, int, double*, gpuStream_t);
template void gather_vector(const float*, const std::int32_t*, std::int64_t, float*, VectorProbe*,
                            gpuStream_t);
template void gather_vector(const double*, const std::int32_t*, std::int64_t, double*, VectorProbe*,
                            gpuStream_t);
template void scale_vector(float*, std::int64_t, double, gpuStream_t);
template void scale_vector(double*, std::int64_t, double, gpuStream_t);
template void scatter_vector(const float*, const std::int32_t*, std::int64_t, double, float*,
                             VectorProbe*, gpuStream_t);
template void scatter_vector(const double*, const std::int32_t*, std::int64_t, double, double*,
                             VectorProbe*, gpuStream_t);

}  // namespace cpufree
