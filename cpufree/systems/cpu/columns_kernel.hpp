// The kernels for several right-hand sides of the CPU engine, as they are compiled into this
// program or shared object (kernel_table.hpp).
#pragma once

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/sliced.hpp"
#include "cpufree/solvers/columns_args.hpp"

namespace cpufree {

template <class T, int K>
using CpuColumnsKernel = void (*)(cpu_threads::Port&,
                                  const ColumnsArgs<Sliced<T, cpu_threads::Port::width>, K>&);

// What a solve of K right-hand sides together runs.
template <class T, int K>
CpuColumnsKernel<T, K> cpu_columns_kernel(Preconditioner preconditioner);

}  // namespace cpufree
