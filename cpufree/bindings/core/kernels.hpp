#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

// The CPU engine's kernels, and the cache of what is compiled at run time.
void bind_kernels(nanobind::module_& m);

}  // namespace cpufree
