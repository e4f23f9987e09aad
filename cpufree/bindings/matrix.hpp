#pragma once

#include <nanobind/nanobind.h>

namespace cpufree {

// Adds what looks at the arrays of a matrix to the extension.
void bind_matrix(nanobind::module_& m);
void bind_matrix_text(nanobind::module_& m);

}  // namespace cpufree
