// The texts of kernels for grids (kernel_source.hpp): those that stencils/gpu has, and ""
// for those that it has not, with values of N bytes.
#pragma once

#include <cstddef>
#include <string>

#include "cpufree/stencils/gpu/kernel.hpp"

namespace cpufree {

std::string wavefront_source(const StencilKernel& wanted, Study study, std::size_t value_bytes);
std::string registers_3d_source(const StencilKernel& wanted, Study study, std::size_t value_bytes);
std::string time_tiles_source(const StencilKernel& wanted, Study study, std::size_t value_bytes);

}  // namespace cpufree
