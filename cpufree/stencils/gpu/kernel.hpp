// The addresses of the Jacobi kernels of the GPU engine, for host code. Their parameters are a
// gpu_p2p::Shared and a JacobiArgs<T>, by value.
#pragma once

#include <span>

#include "cpufree/device/study.hpp"
#include "cpufree/stencils/tile3d_shape.hpp"
#include "cpufree/stencils/time_tile_shape.hpp"

namespace cpufree {

inline constexpr int kCudaStencilThreads = 512;  // of a block, at most, but for time tiles
constexpr int time_tile_threads(int dims) { return kCudaStencilThreads + 32 * rim_warps(dims); }

// Which tiles the kernels in registers are made for, for values of N bytes.
std::span<const Tile3dShape> tile3d_shapes(std::size_t value_bytes);
// Iterations of a pass that kernels for values in memory are made for.
std::span<const int> time_tile_layers(int dims);

// What a kernel is made for, of which each sweep reads what concerns it.
struct StencilKernel {
  int dims = 2;
  bool source = false;
  int layers = 1;           // of time tiles
  Tile3dShape tile3d = {};  // of 3-D tiles in registers
  // Where it is going to run: kernels that are not built in are compiled for these GPUs.
  std::span<const int> devices = {};
};

// Each of them null where there is no such kernel. Studies have none for source terms.
template <Study S, class T>
const void* cuda_wavefront_kernel(const StencilKernel& wanted);
template <Study S, class T>
const void* cuda_registers_3d_kernel(const StencilKernel& wanted);
template <Study S, class T>
const void* cuda_time_tiles_kernel(const StencilKernel& wanted);

}  // namespace cpufree
