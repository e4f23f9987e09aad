#pragma once

#include <nanobind/nanobind.h>

#include "cpufree/problem/entries.hpp"

namespace cpufree {

nanobind::dict dict_of(const EntryReport& seen);

// Adds what looks at the arrays of a matrix to the extension.
void bind_matrix(nanobind::module_& m);
void bind_matrix_text(nanobind::module_& m);

}  // namespace cpufree
