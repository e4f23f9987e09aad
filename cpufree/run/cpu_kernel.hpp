// The solver kernels of the CPU engine.
#pragma once

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/run/spec.hpp"
#include "cpufree/solvers/sliced.hpp"

namespace cpufree {

template <class T>
using CpuKernel = void (*)(cpu_threads::Port&,
                           const SolveArgs<Sliced<T, cpu_threads::Port::width>>&);

// What a solve runs that is no study.
template <class T>
CpuKernel<T> cpu_kernel(const SolveSpec& spec);

// The same where PEs are in several nodes.
template <class T>
CpuKernel<T> cpu_remote_kernel(const SolveSpec& spec);

// What a study runs; they are there in double precision without a preconditioner.
CpuKernel<double> cpu_study_kernel(const SolveSpec& spec);

}  // namespace cpufree
