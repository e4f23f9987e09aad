#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

// Adds the stencils to the extension.
void bind_stencils(nanobind::module_& m);

}  // namespace cpufree
