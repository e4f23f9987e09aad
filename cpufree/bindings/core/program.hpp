#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

// Adds what runs generated kernels to the extension.
void bind_programs(nanobind::module_& m);
void bind_gpu_programs(nanobind::module_& m);

}  // namespace cpufree
