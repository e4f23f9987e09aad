// Which solver kernels a matrix on GPUs is expected to need, before it is laid out.
#pragma once

#include "cpufree/problem/csr.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"
#include "cpufree/solvers/gpu/place.hpp"

namespace cpufree {

// What a matrix is expected to be made of on GPUs: kernels for that compile while it is laid out. A
// small one is expected to stay on chip, with halos of blocks and its values as they are
// (format_choice.cpp).
template <class T>
KernelsWanted likely_kernels(const GpuPlace& place, const CsrView<T>& matrix);

}  // namespace cpufree
