// The solver kernels that call NVSHMEM, for host code: those for GPUs in several nodes, and those
// of one node whose sums are NVSHMEM's. They are linked with NVSHMEM's device library in a file of
// their own, and known by name.
#pragma once

#include <string>

#include "cpufree/device/library_board.hpp"
#include "cpufree/engines/nvshmem/seat.hpp"
#include "cpufree/run/spec.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

// The second parameter of kernels for several nodes, and the first bytes of it that of the others.
// The first one is a cuda_p2p::Shared, whose PEs are those of the node, numbered by place.
template <class M>
struct RemoteSolveArgs {
  SolveArgs<M> solve;
  nvshmem::Seat seat;
};

// The same of kernels whose sums are the library's.
template <class M>
struct LibrarySolveArgs {
  SolveArgs<M> solve;
  LibraryBoard board;
};

// The name of a method's kernel for values of type `type`; `streaming`: see CudaKernels. As
// cuda_remote_kernel.cu.in spells it.
inline std::string remote_kernel_name(const SolveSpec& spec, const char* type, bool streaming) {
  return std::string("cpufree_") + method_name(spec.method) + "_" +
         preconditioner_name(spec.preconditioner) + "_" + type + (streaming ? "_streaming" : "");
}

// Of those whose sums are the library's, which are there in double precision with a pointwise
// preconditioner. As cuda_library_kernel.cu.in spells it.
inline std::string library_kernel_name(const SolveSpec& spec, bool streaming) {
  return std::string("cpufree_library_") + method_name(spec.method) + "_" +
         preconditioner_name(spec.preconditioner) + (streaming ? "_streaming" : "");
}

}  // namespace cpufree
