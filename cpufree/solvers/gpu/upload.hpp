// Writes a matrix in the GPU's format and sends it, a chunk at a time: no copy of it in that format
// is ever in the host's memory as a whole.
#pragma once

#include <cstddef>
#include <vector>

#include "cpufree/gpu/memory.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/gpu/share_layout.hpp"

namespace cpufree {

// slices[k] become those of plan.local[k], on devices[k]. All cores and all GPUs take part. Throws
// OutOfMemory.
template <class T>
void upload_slices(const HaloPlan<T>& plan, const std::vector<PeLayout>& layouts,
                   const std::vector<int>& devices, const std::vector<std::byte*>& slices);

}  // namespace cpufree
