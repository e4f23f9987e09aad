// The stencil kernels of the engine for GPUs on the host: a few shapes, without studies.
#include "cpufree/stencils/gpu/kernel.hpp"
#include "cpufree/stencils/jacobi.hpp"
#include "cpufree/stencils/registers_3d.hpp"
#include "cpufree/stencils/time_tiles.hpp"
#include "host_ports.hpp"

namespace cpufree {

namespace {

constexpr Tile3dShape kTiles3d[] = {{1, 4}};
constexpr int kLayers2d[] = {1, 2};
constexpr int kLayers3d[] = {1, 2};

template <class T, class F>
const void* kernel_of(F body) {
  return host_engine::kernel_of<host_engine::Crossing<warp_rig::Port>, JacobiArgs<T>>(body);
}

// The address of f<with or without a source term>(port, args).
template <class T, class F>
const void* with_source(bool source, F) {
  if (source)
    return kernel_of<T>(
        [](auto& port, const JacobiArgs<T>& args) { F{}.template operator()<true>(port, args); });
  return kernel_of<T>(
      [](auto& port, const JacobiArgs<T>& args) { F{}.template operator()<false>(port, args); });
}

}  // namespace

std::span<const Tile3dShape> tile3d_shapes(std::size_t) { return kTiles3d; }
std::span<const int> time_tile_layers(int dims) {
  return dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d);
}

template <Study S, class T>
const void* cuda_registers_3d_kernel(const StencilKernel& wanted) {
  if (S != Study::none) return nullptr;
  return with_source<T>(wanted.source, []<bool kSource>(auto& port, const JacobiArgs<T>& args) {
    tile3d_kernel<1, 4, kSource>(port, args);
  });
}

template <Study S, class T>
const void* cuda_time_tiles_kernel(const StencilKernel& wanted) {
  if (S != Study::none) return nullptr;
  const auto of = [&]<int D, int K>() {
    return with_source<T>(wanted.source, []<bool kSource>(auto& port, const JacobiArgs<T>& args) {
      time_tile_kernel<D, K, kSource>(port, args);
    });
  };
  if (wanted.dims == 3)
    return wanted.layers == 1 ? of.template operator()<3, 1>() : of.template operator()<3, 2>();
  return wanted.layers == 1 ? of.template operator()<2, 1>() : of.template operator()<2, 2>();
}

template <Study S, class T>
const void* cuda_wavefront_kernel(const StencilKernel& wanted) {
  if (S != Study::none) return nullptr;
  const auto of = [&]<int D>() {
    return with_source<T>(wanted.source, []<bool kSource>(auto& port, const JacobiArgs<T>& args) {
      jacobi_kernel<D, kSource>(port, args);
    });
  };
  return wanted.dims == 2 ? of.template operator()<2>() : of.template operator()<3>();
}

#define CPUFREE_HOST_STENCILS(S, T)                                          \
  template const void* cuda_registers_3d_kernel<S, T>(const StencilKernel&); \
  template const void* cuda_time_tiles_kernel<S, T>(const StencilKernel&);   \
  template const void* cuda_wavefront_kernel<S, T>(const StencilKernel&);
#define CPUFREE_HOST_STENCILS_OF(T)        \
  CPUFREE_HOST_STENCILS(Study::none, T)    \
  CPUFREE_HOST_STENCILS(Study::no_comm, T) \
  CPUFREE_HOST_STENCILS(Study::no_compute, T)
CPUFREE_HOST_STENCILS_OF(float)
CPUFREE_HOST_STENCILS_OF(double)

}  // namespace cpufree
