// What GPUs do with vectors before and after a solve: between the caller's order and that of the
// private vectors. Each call starts a kernel on `stream`, a stream of the device that is current.
#pragma once

#include <gpu_names.hpp>

#include <algorithm>
#include <cstdint>

#include "cpufree/solvers/gpu/kernels/vector_probe.hpp"

namespace cpufree {

// Of a launch for `count` entries.
inline unsigned vector_blocks(std::int64_t count) {
  constexpr std::int64_t kMost = 4096;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((count + kVectorThreads - 1) / kVectorThreads, 1, kMost));
}

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
