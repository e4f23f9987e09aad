// Many small systems on one GPU, in one kernel. What calls it takes it from the table of
// plugins/gpu/engine_table.hpp.
#pragma once

#include <vector>

#include "cpufree/solvers/host/many.hpp"

namespace cpufree {

// As solve_many, on `device`: matrices as compressed rows, of which a pattern that follows itself
// is there once; what there is no room for at once is solved in turns. Only what `solved` does not
// call refused is solved. `progress` is called with 0. Throws OutOfMemory, EngineError,
// Unsupported.
template <class T>
void solve_many_on_gpu(const std::vector<OneOfMany<T>>& systems, const SolveSpec& spec, int device,
                       const Progress& progress, std::vector<SolvedOne>& solved);

}  // namespace cpufree
