// The solver kernels that call NVSHMEM, for host code: those for GPUs in several nodes. They are
// linked with NVSHMEM's device library in a file of their own, and known by name.
#pragma once

#include <string>

#include "cpufree/engines/remote/seat.hpp"
#include "cpufree/solvers/args.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// The second parameter of kernels for several nodes, and the first bytes of it that of the others.
// The first one is a gpu_p2p::Shared, whose PEs are those of the node, numbered by place.
template <class M>
struct RemoteSolveArgs {
  SolveArgs<M> solve;
  remote::Seat seat;
};

// The name of a method's kernel for values of type `type`; `streaming`: see GpuKernels. As
// remote_kernel.cu.in spells it.
inline std::string remote_kernel_name(const SolveSpec& spec, const char* type, bool streaming) {
  const char* const pc =
      has_factors(spec.preconditioner) ? "factored" : preconditioner_name(spec.preconditioner);
  return std::string("cpufree_") + method_name(spec.method) + "_" + pc + "_" + type +
         (streaming ? "_streaming" : "");
}

}  // namespace cpufree
