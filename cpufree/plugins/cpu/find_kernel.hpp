// The kernel that a solve on the CPU engine runs: one that is built in (kernel_table.hpp), or one
// that is compiled when it is first used.
#pragma once

#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/plugins/cpu/kernel_source.hpp"

namespace cpufree {

// Each throws what `cpu_kernels` and the compiler of kernels throw; Unsupported where a kernel is
// not built in and there is no compiler. K: columns.
template <class T, int K = 1>
CpuKernel<T, K> find_cpu_kernel(const SolveSpec& spec, const CpuKernelKind& kind = {});
template <class T>
CpuStencilKernel<T> find_cpu_stencil_kernel(const Grid& grid, bool source, Study study);

}  // namespace cpufree
