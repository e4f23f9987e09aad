// What GPUs do with vectors before and after a solve: between the caller's order and that of the
// private vectors. Each call starts a kernel on `stream`, a stream of the device that is current.
#pragma once

#include <gpu_names.hpp>

#include <cstdint>

namespace cpufree {

// What a look at a vector found. In device memory; zeroed before use.
struct VectorProbe {
  double largest = 0.0;          // largest |entry| that is a number
  std::uint32_t not_finite = 0;  // 1 if some entry is not finite
};

// to[j] = from[row[j]] for all j < count with row[j] >= 0. Joins |to| to `probe`, if there is one.
template <class T>
void gather_vector(const T* from, const std::int32_t* row, std::int64_t count, T* to,
                   VectorProbe* probe, gpuStream_t stream);

// v[j] *= factor.
template <class T>
void scale_vector(T* v, std::int64_t count, double factor, gpuStream_t stream);

// to[row[j]] = from[j] / scale for all j < count with row[j] >= 0. Joins the results to `probe`.
template <class T>
void scatter_vector(const T* from, const std::int32_t* row, std::int64_t count, double scale, T* to,
                    VectorProbe* probe, gpuStream_t stream);

// all[columns j + column] = factor from[j] for j < count: one of several columns, side by side.
template <class T>
void put_column(const T* from, std::int64_t count, int column, int columns, double factor, T* all,
                gpuStream_t stream);
// to[j] = all[columns j + column].
template <class T>
void take_column(const T* all, std::int64_t count, int column, int columns, T* to,
                 gpuStream_t stream);

}  // namespace cpufree
