// The kernels of the CPU engine, as they are compiled into a program or a shared object. What runs
// them asks find_kernel.hpp, which may take those of another shared object.
#pragma once

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/slices/sliced.hpp"
#include "cpufree/problem/grid.hpp"
#include "cpufree/solvers/args.hpp"
#include "cpufree/solvers/host/spec.hpp"
#include "cpufree/stencils/args.hpp"

namespace cpufree {

// Of a solve of K columns.
template <class T, int K = 1>
using CpuKernel = void (*)(cpu_threads::Port&,
                           const SolveArgs<Sliced<T, cpu_threads::Port::width>, K>&);
template <class T>
using CpuStencilKernel = void (*)(cpu_threads::Port&, const JacobiArgs<T>&);

// What a solve runs that is no study: cg and prcg, each with Jacobi or without preconditioner. Null
// for other methods and preconditioners.
template <class T>
CpuKernel<T> cpu_usual_kernel(const SolveSpec& spec);
template <>
CpuKernel<float> cpu_usual_kernel<float>(const SolveSpec& spec);
template <>
CpuKernel<double> cpu_usual_kernel<double>(const SolveSpec& spec);

// The others of these, null for usual ones.
template <class T>
CpuKernel<T> cpu_other_kernel(const SolveSpec& spec);

// The same, usual or not, where PEs are in several nodes.
template <class T>
CpuKernel<T> cpu_remote_kernel(const SolveSpec& spec);

// What a study runs: in double precision without a preconditioner.
CpuKernel<double> cpu_study_kernel(const SolveSpec& spec);

// Jacobi iterations; studies have no source term.
template <class T>
CpuStencilKernel<T> cpu_stencil_kernel(const Grid& grid, bool source, Study study);

// What a solve of K right-hand sides together runs.
template <class T, int K>
CpuKernel<T, K> cpu_columns_kernel(const SolveSpec& spec);

}  // namespace cpufree
