// From the structs and numbers of the C interface to those of the library, and back.
#pragma once

#include <cstdint>
#include <string>

#include "cpufree/cpufree.h"
#include "cpufree/problem/csr.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// Each throws InvalidInput for what is out of its range, or missing.
template <class T>
CsrView<T> matrix_of(const cpufree_matrix& given);
SystemSpec system_spec_of(const cpufree_setup& given, std::int32_t rows);
// `like`: what AS_SET_UP stands for.
SolveSpec solve_spec_of(const cpufree_options& given, const SolveSpec& like, std::int32_t rows);

cpufree_result result_of(const SolveResult& solved, const SolveSpec& spec);
cpufree_layout layout_of(const PlanReport& plan, const SystemSpec& spec);

// CPUFREE_CONVERGED_RTOL and so on, and its name; "UNKNOWN" for another number.
std::int32_t number_of(Reason reason);
const char* name_of_reason(std::int32_t number);

// The layout and the last solve, if there was one, in lines.
std::string text_of(const PlanReport& plan, const SystemSpec& spec, double setup_seconds,
                    const SolveResult* last);

}  // namespace cpufree
