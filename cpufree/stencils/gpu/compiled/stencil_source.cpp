#include "cpufree/stencils/gpu/compiled/stencil_source.hpp"

#include <algorithm>

#include "cpufree/launch/kernel_text.hpp"

namespace cpufree {

namespace {

// "name<first, second", or "name<first".
std::string body_of(const char* name, int first, int second = 0) {
  const std::string more = second > 0 ? ", " + std::to_string(second) : "";
  return std::string(name) + "<" + std::to_string(first) + more;
}

// A kernel for grids: `header` of cpufree/stencils/ has the function template `body`, with its
// arguments but for the source term, such as "register_kernel<2, 4".
std::string source_of(const char* header, const std::string& body, int threads,
                      const StencilKernel& wanted, Study study, std::size_t value_bytes) {
  if (study != Study::none && wanted.source) return "";
  const std::string type = value_bytes == 4 ? type_name<float>() : type_name<double>();
  return port_kernel(include_line(std::string("stencils/") + header), threads,
                     "JacobiArgs<" + type + ">", "Port",
                     "run_as<" + std::string(name_of(study)) + ">(port, [&](auto& p) { " + body +
                         ", " + (wanted.source ? "true" : "false") + ">(p, args); });");
}

}  // namespace

std::string wavefront_source(const StencilKernel& wanted, Study study, std::size_t value_bytes) {
  return source_of("jacobi.hpp", body_of("jacobi_kernel", wanted.dims), kCudaStencilThreads, wanted,
                   study, value_bytes);
}

std::string registers_3d_source(const StencilKernel& wanted, Study study, std::size_t value_bytes) {
  const int columns = wanted.tile3d.columns, planes = wanted.tile3d.planes;
  if (std::ranges::none_of(tile3d_shapes(value_bytes), [&](const Tile3dShape& shape) {
        return shape.columns == columns && shape.planes == planes;
      }))
    return "";
  return source_of("registers_3d.hpp", body_of("tile3d_kernel", columns, planes),
                   kCudaStencilThreads, wanted, study, value_bytes);
}

std::string time_tiles_source(const StencilKernel& wanted, Study study, std::size_t value_bytes) {
  if (!std::ranges::count(time_tile_layers(wanted.dims), wanted.layers)) return "";
  return source_of("time_tiles.hpp", body_of("time_tile_kernel", wanted.dims, wanted.layers),
                   time_tile_threads(wanted.dims), wanted, study, value_bytes);
}

}  // namespace cpufree
