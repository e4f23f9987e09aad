// The class System of the extension: a matrix on PEs, and its solves.
#pragma once

#include <nanobind/nanobind.h>

#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

void bind_systems(nanobind::module_& m);
// solve_many: small systems side by side.
void bind_many(nanobind::module_& m);

// Of a solve's options, and of a function that outlives what is returned, or None.
SolveSpec spec_of_solve(const nanobind::dict& options);
Progress progress_of(const nanobind::object& progress);

}  // namespace cpufree
