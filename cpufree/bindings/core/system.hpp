// The class System of the extension: a matrix on PEs, and its solves.
#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

void bind_systems(nanobind::module_& m);

}  // namespace cpufree
