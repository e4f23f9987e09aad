// How the columns of a slice are stored (host code).
#pragma once

#include <cstdint>

#include "cpufree/formats/warp_slices_build.hpp"

namespace cpufree {

// Chooses the code that takes least, and its bases.
template <class T>
void choose_code(const ShareSource<T>& source, const LaneRows& rows, WarpSlice& slice);

// A column, or the first one of a run, in the slice's code, which is not plain.
std::uint32_t code_of(const WarpSlice& slice, std::int32_t column);

}  // namespace cpufree
