#include "cpufree/solvers/gpu/kernels/vectors.hpp"

#include "cpufree/gpu/error.hpp"
#include "cpufree/solvers/gpu/kernels/vector_entries.cuh"

namespace cpufree {

namespace {

template <class T>
__global__ void __launch_bounds__(kVectorThreads)
    gather(const T* from, const std::int32_t* row, std::int64_t count, T* to, VectorProbe* probe) {
  gather_entries(from, row, count, to, probe);
}

template <class T>
__global__ void __launch_bounds__(kVectorThreads) scale(T* v, std::int64_t count, double factor) {
  scale_entries(v, count, factor);
}

template <class T>
__global__ void __launch_bounds__(kVectorThreads)
    scatter(const T* from, const std::int32_t* row, std::int64_t count, double divisor, T* to,
            VectorProbe* probe) {
  scatter_entries(from, row, count, divisor, to, probe);
}

template <class T>
__global__ void __launch_bounds__(kVectorThreads)
    put_in(const T* from, std::int64_t count, int column, int columns, double factor, T* all) {
  put_entries(from, count, column, columns, factor, all);
}

template <class T>
__global__ void __launch_bounds__(kVectorThreads)
    take_out(const T* all, std::int64_t count, int column, int columns, T* to) {
  take_entries(all, count, column, columns, to);
}

}  // namespace

template <class T>
void put_column(const T* from, std::int64_t count, int column, int columns, double factor, T* all,
                gpuStream_t stream) {
  put_in<<<vector_blocks(count), kVectorThreads, 0, stream>>>(from, count, column, columns, factor,
                                                              all);
  gpu::check_launch("launch of put_in");
}

template <class T>
void take_column(const T* all, std::int64_t count, int column, int columns, T* to,
                 gpuStream_t stream) {
  take_out<<<vector_blocks(count), kVectorThreads, 0, stream>>>(all, count, column, columns, to);
  gpu::check_launch("launch of take_out");
}

template <class T>
void gather_vector(const T* from, const std::int32_t* row, std::int64_t count, T* to,
                   VectorProbe* probe, gpuStream_t stream) {
  gather<<<vector_blocks(count), kVectorThreads, 0, stream>>>(from, row, count, to, probe);
  gpu::check_launch("launch of gather");
}

template <class T>
void scale_vector(T* v, std::int64_t count, double factor, gpuStream_t stream) {
  scale<<<vector_blocks(count), kVectorThreads, 0, stream>>>(v, count, factor);
  gpu::check_launch("launch of scale");
}

template <class T>
void scatter_vector(const T* from, const std::int32_t* row, std::int64_t count, double scale, T* to,
                    VectorProbe* probe, gpuStream_t stream) {
  scatter<<<vector_blocks(count), kVectorThreads, 0, stream>>>(from, row, count, scale, to, probe);
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
