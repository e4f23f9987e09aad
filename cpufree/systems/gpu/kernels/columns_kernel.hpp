// The addresses of the kernels for several right-hand sides, for host code.
#pragma once

namespace cpufree {

// Of K columns of type T, with Jacobi or without a preconditioner; parameters are a gpu_p2p::Shared
// and a ColumnsArgs<WarpSlices<T>, K>, by value. Each is instantiated in a file of its own
// (columns_kernel.cu.in).
template <class T, int K, bool kJacobi>
const void* gpu_columns_kernel();

}  // namespace cpufree
