// What GPUs do with vectors before and after a solve, on the host.
#include <algorithm>
#include <cmath>

#include "cpufree/solvers/gpu/kernels/vectors.hpp"

namespace cpufree {

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
                   VectorProbe* probe, gpuStream_t) {
  for (std::int64_t j = 0; j < count; ++j)
    if (row[j] >= 0) join(probe, to[j] = from[row[j]]);
}
template <class T>
void scale_vector(T* v, std::int64_t count, double factor, gpuStream_t) {
  std::for_each(v, v + count, [&](T& value) { value = static_cast<T>(value * factor); });
}
template <class T>
void scatter_vector(const T* from, const std::int32_t* row, std::int64_t count, double scale, T* to,
                    VectorProbe* probe, gpuStream_t) {
  for (std::int64_t j = 0; j < count; ++j)
    if (row[j] >= 0) join(probe, to[row[j]] = static_cast<T>(from[j] / scale));
}
template <class T>
void put_column(const T* from, std::int64_t count, int column, int columns, double factor, T* all,
                gpuStream_t) {
  for (std::int64_t j = 0; j < count; ++j)
    all[j * columns + column] = static_cast<T>(factor * from[j]);
}
template <class T>
void take_column(const T* all, std::int64_t count, int column, int columns, T* to, gpuStream_t) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = all[j * columns + column];
}

#define CPUFREE_HOST_VECTORS(T)                                                              \
  template void gather_vector(const T*, const std::int32_t*, std::int64_t, T*, VectorProbe*, \
                              gpuStream_t);                                                  \
  template void scale_vector(T*, std::int64_t, double, gpuStream_t);                         \
  template void scatter_vector(const T*, const std::int32_t*, std::int64_t, double, T*,      \
                               VectorProbe*, gpuStream_t);                                   \
  template void put_column(const T*, std::int64_t, int, int, double, T*, gpuStream_t);       \
  template void take_column(const T*, std::int64_t, int, int, T*, gpuStream_t);
CPUFREE_HOST_VECTORS(float)
CPUFREE_HOST_VECTORS(double)

}  // namespace cpufree
