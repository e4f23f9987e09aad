// What all who call MPI need: errors, and what an MPI says of GPU memory.
#pragma once

#include <mpi.h>

#include <string>

#include "cpufree/base/error.hpp"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI's extensions
#endif

namespace cpufree::baselines {

inline void check_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  static_cast<void>(MPI_Error_string(status, text, &length));
  throw EngineError(std::string(call) + ": " + text);
}

// What this MPI says, now: whether it takes addresses of GPU memory.
enum class GpuAware { no, yes, unknown };

inline GpuAware mpi_gpu_aware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)  // Open MPI, MVAPICH2
  return MPIX_Query_cuda_support() != 0 ? GpuAware::yes : GpuAware::no;
#elif defined(MPIX_GPU_SUPPORT_CUDA)  // MPICH and its kin, such as Cray's
  int takes = 0;
  if (MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &takes) != MPI_SUCCESS)
    return GpuAware::unknown;
  return takes != 0 ? GpuAware::yes : GpuAware::no;
#else
  return GpuAware::unknown;
#endif
}

}  // namespace cpufree::baselines
