#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

// Adds what there is to know of the GPUs to the extension.
void bind_gpus(nanobind::module_& m);

}  // namespace cpufree
