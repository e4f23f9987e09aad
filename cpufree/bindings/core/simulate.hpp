// The simulator's event engine.
#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

void bind_simulate(nanobind::module_& m);

}  // namespace cpufree
