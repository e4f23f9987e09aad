// The kernel that solves many systems, each by one block (solvers/many.hpp).
#pragma once

#include <string>

#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/solvers/host/kernel_names.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

inline constexpr int kManyThreads = 256;  // most threads of a block

// Its text, for values of type `type`, a method and a preconditioner that is pointwise. It is
// compiled for blocks of twice as many threads, so that two have registers at a time.
inline std::string many_source(const SolveSpec& spec, const std::string& type) {
  return port_kernel(include_line("formats/csr_rows.hpp") + include_line("solvers/many.hpp"),
                     2 * kManyThreads, "ManyArgs<CsrRows<" + type + ">>", "Port",
                     "solve_each<" + std::string(algorithm_of(spec.method)) + ", " +
                         class_of(spec.preconditioner) + "<" + type + ">>(port, args);");
}

// The kernel itself for values of type T, on `device`, where it is compiled when it is first used,
// in any build. Throws Unsupported, EngineError.
template <class T>
const void* many_kernel(const SolveSpec& spec, int device);

}  // namespace cpufree
