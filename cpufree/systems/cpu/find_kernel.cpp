#include "cpufree/systems/cpu/find_kernel.hpp"

#include <atomic>
#include <string>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/systems/cpu/kernel_source.hpp"
#include "cpufree/systems/cpu/kernel_table.hpp"
#include "cpufree/systems/cpu/levels.hpp"

namespace cpufree {

namespace {

CpuKernelCompiler& compiler() {
  static CpuKernelCompiler set;
  return set;
}

std::atomic<bool> take_built_in{true};

// What a build for another processor was compiled with, for this one.
constexpr CpuKernelFlags kNative = {"-O3 -march=native", "-ffp-contract=off", "-ffp-contract=off",
                                    "-ffp-contract=fast"};

// The table of what may be used of the build.
CpuKernels built_in() {
  const CpuKernels* const built = cpu_kernels();
  if (built == nullptr) return {.flags = kNative};
  return take_built_in ? *built : CpuKernels{.flags = built->flags};
}

// `level`, `family`: the flags of all kernels of the build, and of this one's family.
const void* compiled(CpuKernelText kernel, const char* level, const char* family) {
  if (!compiler())
    throw Unsupported("the CPU kernel for " + kernel.name +
                      " is not built in: build cpufree with " + "CPUFREE_KERNELS=ALL");
  kernel.flags = std::string(level) + " " + family;
  return compiler()(kernel);
}

}  // namespace

void set_cpu_kernel_compiler(CpuKernelCompiler set) { compiler() = std::move(set); }
void take_built_in_cpu_kernels(bool taken) { take_built_in = taken; }

template <class T>
CpuKernel<T> find_cpu_kernel(const SolveSpec& spec, bool nodes) {
  const CpuKernels built = built_in();
  auto* find = nodes ? built.of<T>().remote : built.of<T>().solve;
  if constexpr (sizeof(T) == sizeof(double))
    if (spec.study != Study::none) find = built.study;
  if (const CpuKernel<T> found = find == nullptr ? nullptr : find(spec)) return found;
  return reinterpret_cast<CpuKernel<T>>(compiled(cpu_solver_source(spec, type_name<T>(), nodes),
                                                 built.flags.level, built.flags.solvers));
}

template <class T, int K>
CpuColumnsKernel<T, K> find_cpu_columns_kernel(Preconditioner preconditioner) {
  const CpuKernels built = built_in();
  if (auto* const find = built.of<T>().template columns<K>()) return find(preconditioner);
  return reinterpret_cast<CpuColumnsKernel<T, K>>(
      compiled(cpu_columns_source(preconditioner, K, type_name<T>()), built.flags.level,
               built.flags.columns));
}

template <class T>
CpuStencilKernel<T> find_cpu_stencil_kernel(const Grid& grid, bool source, Study study) {
  const CpuKernels built = built_in();
  if (auto* const find = built.of<T>().stencil) return find(grid, source, study);
  if (study == Study::split) study = Study::none;
  source = source && study == Study::none;
  return reinterpret_cast<CpuStencilKernel<T>>(
      compiled(cpu_stencil_source(grid, source, study, type_name<T>()), built.flags.level,
               built.flags.stencils));
}

#define CPUFREE_FOR(T)                                                        \
  template CpuKernel<T> find_cpu_kernel<T>(const SolveSpec&, bool);           \
  template CpuColumnsKernel<T, 2> find_cpu_columns_kernel<T>(Preconditioner); \
  template CpuColumnsKernel<T, 4> find_cpu_columns_kernel<T>(Preconditioner); \
  template CpuColumnsKernel<T, 8> find_cpu_columns_kernel<T>(Preconditioner); \
  template CpuStencilKernel<T> find_cpu_stencil_kernel<T>(const Grid&, bool, Study);
CPUFREE_FOR(float)
CPUFREE_FOR(double)
#undef CPUFREE_FOR

}  // namespace cpufree
