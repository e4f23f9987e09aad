// The text of a solver kernel, to be compiled on this machine.
#pragma once

#include <string>

#include "cpufree/systems/spec.hpp"

namespace cpufree {

// A kernel for values of type `type` that calls what kernel.cuh has: `port`, a class of gpu_p2p, and
// `format`, a policy of slice_codes.hpp, by their names.
std::string source_of(const SolveSpec& spec, const std::string& type, const char* port,
                      const char* format);

}  // namespace cpufree
