// Compiles the solver templates for the GPU port, so that device code cannot rot where there is no
// GPU. Nothing here is run.
#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/solvers/csr_rows.hpp"
#include "cpufree/solvers/kernel.hpp"

namespace {

using cpufree::CsrRows;
using cpufree::SolveArgs;
using GpuPort = cpufree::cuda_p2p::Port;

template <template <class, class> class Algorithm, class M, class T>
__global__ void __launch_bounds__(512)
    solve(const __grid_constant__ cpufree::cuda_p2p::Shared shared,
          const SolveArgs<CsrRows<T>>* args) {
  __shared__ double scratch[GpuPort::kScratchDoubles];
  GpuPort port(shared, scratch);
  cpufree::solve_kernel<Algorithm, M>(port, *args);
}

}  // namespace

// Every algorithm, preconditioner and precision at least once; the full product takes minutes.
void list_kernels(const void** kernels) {
  using cpufree::Chebyshev, cpufree::Identity, cpufree::Jacobi;
  kernels[0] =
      reinterpret_cast<const void*>(solve<cpufree::ConjugateGradient, Jacobi<double>, double>);
  kernels[1] =
      reinterpret_cast<const void*>(solve<cpufree::PredictRecompute, Identity<float>, float>);
  kernels[2] =
      reinterpret_cast<const void*>(solve<cpufree::PipelinedCg, Chebyshev<double>, double>);
}
