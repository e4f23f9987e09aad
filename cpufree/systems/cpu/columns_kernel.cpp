#include "cpufree/solvers/columns_kernel.hpp"

#include "cpufree/base/error.hpp"
#include "cpufree/systems/cpu/kernel.hpp"

namespace cpufree {

template <class T, int K>
CpuColumnsKernel<T, K> cpu_columns_kernel(Preconditioner preconditioner) {
  using P = cpu_threads::Port;
  using Matrix = Sliced<T, P::width>;
  if (preconditioner == Preconditioner::none)
    return columns_kernel<PointwiseOfColumns<T, false>, K, P, Matrix>;
  if (preconditioner == Preconditioner::jacobi)
    return columns_kernel<PointwiseOfColumns<T, true>, K, P, Matrix>;
  throw InvalidInput("right-hand sides are solved together with jacobi or without preconditioner");
}

template CpuColumnsKernel<float, 2> cpu_columns_kernel(Preconditioner);
template CpuColumnsKernel<float, 4> cpu_columns_kernel(Preconditioner);
template CpuColumnsKernel<float, 8> cpu_columns_kernel(Preconditioner);
template CpuColumnsKernel<double, 2> cpu_columns_kernel(Preconditioner);
template CpuColumnsKernel<double, 4> cpu_columns_kernel(Preconditioner);
template CpuColumnsKernel<double, 8> cpu_columns_kernel(Preconditioner);

}  // namespace cpufree
