// The class System of the extension: a matrix on PEs, and its solves.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

void bind_systems(nanobind::module_& m);
// solve_many: small systems side by side.
void bind_many(nanobind::module_& m);

// estimate_memory: what a system would take of GPUs.
void bind_memory(nanobind::module_& m);

// What a system is set up as.
SystemSpec spec_of(int pes, int blocks, const std::string& engine, const std::vector<int>& gpus,
                   const nanobind::dict& tuning);
// Of a solve's options, and of a function that outlives what is returned, or None.
SolveSpec spec_of_solve(const nanobind::dict& options);
Progress progress_of(const nanobind::object& progress);

}  // namespace cpufree
