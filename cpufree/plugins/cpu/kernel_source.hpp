// The texts of the CPU engine's kernels, for those that are compiled when they are first used.
#pragma once

#include <functional>
#include <string>

#include "cpufree/problem/grid.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// A text with one function, `const void* cpufree_kernel()`, which returns where the kernel is.
struct CpuKernelText {
  std::string name;  // for users: "prcg with chebyshev, double"
  std::string text;
  std::string flags;         // for the compiler, separated by blanks
  bool built_in_all = true;  // CPUFREE_KERNELS=ALL builds it in
};

// What a kernel is for besides.
struct CpuKernelKind {
  bool nodes = false;    // PEs are in several nodes
  bool singles = false;  // products read values in single precision (SingleSlices)
};

// The kernels of kernel.hpp, with values of type `type`.
CpuKernelText cpu_solver_source(const SolveSpec& spec, const std::string& type, int columns,
                                const CpuKernelKind& kind);
CpuKernelText cpu_stencil_source(const Grid& grid, bool source, Study study,
                                 const std::string& type);

// Compiles a text, or finds it compiled, and returns what its function returns; it stays loaded.
using CpuKernelCompiler = std::function<const void*(const CpuKernelText&)>;
// To be called before the first solve.
void set_cpu_kernel_compiler(CpuKernelCompiler compiler);
// Seconds in which threads have waited for it until now.
double cpu_kernel_seconds();
// Whether kernels that are built in are used; else all are compiled. For tests.
void take_built_in_cpu_kernels(bool taken);

}  // namespace cpufree
