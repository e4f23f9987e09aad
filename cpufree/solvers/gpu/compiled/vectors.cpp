// What GPUs do with vectors, by kernels that are compiled on this machine.
#include "cpufree/solvers/gpu/kernels/vectors.hpp"
#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/solvers/gpu/compiled/kernel_source.hpp"

namespace cpufree {

namespace {

// Launches the kernel of that name on the device that is current.
template <class T, class... Args>
void launch(const char* name, std::int64_t count, gpuStream_t stream, Args... args) {
  int device = 0;
  gpu::check_call(gpuGetDevice(&device), "GetDevice");
  const int devices[] = {device};
  const gpuLibrary_t code = compiled_code({vectors_source(type_name<T>())}, devices)[0];
  const void* const kernel = gpu::find_kernel(code, "compiled kernels", name);
  void* arguments[] = {&args...};
  gpu::check(gpuLaunchKernel(kernel, vector_blocks(count), kVectorThreads, arguments, stream),
             (std::string("launch of ") + name).c_str());
}

}  // namespace

template <class T>
void put_column(const T* from, std::int64_t count, int column, int columns, double factor, T* all,
                gpuStream_t stream) {
  launch<T>("put_entries", count, stream, from, count, column, columns, factor, all);
}

template <class T>
void take_column(const T* all, std::int64_t count, int column, int columns, T* to,
                 gpuStream_t stream) {
  launch<T>("take_entries", count, stream, all, count, column, columns, to);
}

template <class T>
void gather_vector(const T* from, const std::int32_t* row, std::int64_t count, T* to,
                   VectorProbe* probe, gpuStream_t stream) {
  launch<T>("gather_entries", count, stream, from, row, count, to, probe);
}

template <class T>
void scale_vector(T* v, std::int64_t count, double factor, gpuStream_t stream) {
  launch<T>("scale_entries", count, stream, v, count, factor);
}

template <class T>
void scatter_vector(const T* from, const std::int32_t* row, std::int64_t count, double scale, T* to,
                    VectorProbe* probe, gpuStream_t stream) {
  launch<T>("scatter_entries", count, stream, from, row, count, scale, to, probe);
}

#define CPUFREE_COMPILED_VECTORS(T)                                                          \
  template void put_column(const T*, std::int64_t, int, int, double, T*, gpuStream_t);       \
  template void take_column(const T*, std::int64_t, int, int, T*, gpuStream_t);              \
  template void gather_vector(const T*, const std::int32_t*, std::int64_t, T*, VectorProbe*, \
                              gpuStream_t);                                                  \
  template void scale_vector(T*, std::int64_t, double, gpuStream_t);                         \
  template void scatter_vector(const T*, const std::int32_t*, std::int64_t, double, T*,      \
                               VectorProbe*, gpuStream_t);
CPUFREE_COMPILED_VECTORS(float)
CPUFREE_COMPILED_VECTORS(double)

}  // namespace cpufree
