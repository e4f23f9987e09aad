// The Jacobi kernels for tiles in registers in three dimensions whose halos travel as packets.
#pragma once

#include "cpufree/run/cuda_stencil_bricks.cuh"

namespace cpufree {

template <Study S, class T>
const void* cuda_brick_packets_kernel(const StencilKernel& wanted) {
  return find_bricks_kernel<S, T, true>(wanted);
}

}  // namespace cpufree
