#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

// Adds the probes of communication to the extension.
void bind_probes(nanobind::module_& m);

}  // namespace cpufree
