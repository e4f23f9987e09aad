// Kernels that read values in single precision, where kernels are built in: none are.
#include "cpufree/base/error.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"

namespace cpufree {

GpuKernels mixed_kernels(const SolveSpec&, int) {
  throw Unsupported(
      "this build has its GPU kernels built in, and none of mixed precision: leave out "
      "precision='mixed', or build with CPUFREE_KERNELS=USUAL");
}

}  // namespace cpufree
