// What a System tells, as Python has it.
#pragma once

#include <nanobind/nanobind.h>

#include "cpufree/solvers/host/result.hpp"

namespace cpufree {

// Of a solve; `x`: the solution, or None.
nanobind::dict dict_of(SolveResult result, const nanobind::object& x, const PlanReport& plan);
// Of how the matrix lies on the PEs.
nanobind::dict dict_of(const PlanReport& plan);

}  // namespace cpufree
