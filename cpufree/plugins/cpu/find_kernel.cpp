#include "cpufree/plugins/cpu/find_kernel.hpp"

#include <atomic>
#include <string>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/waited_time.hpp"
#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/plugins/cpu/kernel_table.hpp"
#include "cpufree/plugins/cpu/levels.hpp"

namespace cpufree {

namespace {

CpuKernelCompiler& compiler() {
  static CpuKernelCompiler set;
  return set;
}

WaitedTime& waited() {
  static WaitedTime all;
  return all;
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
    throw Unsupported("the CPU kernel for " + kernel.name + " is not built in" +
                      (kernel.built_in_all ? ": build cpufree with CPUFREE_KERNELS=ALL" : ""));
  kernel.flags = std::string(level) + " " + family;
  const WaitedTime::Wait wait(waited());
  return compiler()(kernel);
}

}  // namespace

void set_cpu_kernel_compiler(CpuKernelCompiler set) { compiler() = std::move(set); }
double cpu_kernel_seconds() { return waited().seconds(); }
void take_built_in_cpu_kernels(bool taken) { take_built_in = taken; }

template <class T, int K>
CpuKernel<T, K> find_cpu_kernel(const SolveSpec& spec, const CpuKernelKind& kind) {
  const CpuKernels built = built_in();
  auto* find = built.of<T>().template columns<K>();
  if constexpr (K == 1) {
    if (kind.nodes) find = built.of<T>().remote;
    if constexpr (sizeof(T) == sizeof(double))
      if (spec.study != Study::none) find = built.study;
  }
  if (spec.study == Study::trace || kind.singles) find = nullptr;
  if (const CpuKernel<T, K> found = find == nullptr ? nullptr : find(spec)) return found;
  return reinterpret_cast<CpuKernel<T, K>>(
      compiled(cpu_solver_source(spec, type_name<T>(), K, kind), built.flags.level,
               K > 1 ? built.flags.columns : built.flags.solvers));
}

template <class T>
CpuStencilKernel<T> find_cpu_stencil_kernel(const Grid& grid, bool source, Study study) {
  const CpuKernels built = built_in();
  auto* const find = built.of<T>().stencil;
  if (find != nullptr && study != Study::trace) return find(grid, source, study);
  if (study == Study::split) study = Study::none;
  source = source && !(study == Study::no_compute || study == Study::no_comm);
  return reinterpret_cast<CpuStencilKernel<T>>(
      compiled(cpu_stencil_source(grid, source, study, type_name<T>()), built.flags.level,
               built.flags.stencils));
}

#define CPUFREE_FOR(T)                                                                    \
  template CpuKernel<T, 1> find_cpu_kernel<T, 1>(const SolveSpec&, const CpuKernelKind&); \
  template CpuKernel<T, 2> find_cpu_kernel<T, 2>(const SolveSpec&, const CpuKernelKind&); \
  template CpuKernel<T, 4> find_cpu_kernel<T, 4>(const SolveSpec&, const CpuKernelKind&); \
  template CpuKernel<T, 8> find_cpu_kernel<T, 8>(const SolveSpec&, const CpuKernelKind&); \
  template CpuStencilKernel<T> find_cpu_stencil_kernel<T>(const Grid&, bool, Study);
CPUFREE_FOR(float)
CPUFREE_FOR(double)
#undef CPUFREE_FOR

}  // namespace cpufree
