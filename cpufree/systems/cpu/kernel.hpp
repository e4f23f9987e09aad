// The kernels of the CPU engine, as they are compiled into this program or shared object. What runs
// them asks the table (kernel_table.hpp), which may be that of another shared object.
#pragma once

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/sliced.hpp"
#include "cpufree/problem/grid.hpp"
#include "cpufree/stencils/args.hpp"
#include "cpufree/systems/spec.hpp"

namespace cpufree {

template <class T>
using CpuKernel = void (*)(cpu_threads::Port&,
                           const SolveArgs<Sliced<T, cpu_threads::Port::width>>&);
template <class T>
using CpuStencilKernel = void (*)(cpu_threads::Port&, const JacobiArgs<T>&);

// What a solve runs that is no study.
template <class T>
CpuKernel<T> cpu_kernel(const SolveSpec& spec);

// The same where PEs are in several nodes.
template <class T>
CpuKernel<T> cpu_remote_kernel(const SolveSpec& spec);

// What a study runs; they are there in double precision without a preconditioner.
CpuKernel<double> cpu_study_kernel(const SolveSpec& spec);

// Jacobi iterations; studies have no source term.
template <class T>
CpuStencilKernel<T> cpu_stencil_kernel(const Grid& grid, bool source, Study study);

}  // namespace cpufree
