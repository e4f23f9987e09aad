// Values that lie on a GPU, taken from there.
#pragma once

#include "cpufree/run/box_fill.hpp"

namespace cpufree {

// Fills a box on `device` from values that it can address. Waits for the end of it.
template <class T>
void cuda_fill_box(int device, const BoxFill<T>& fill);

}  // namespace cpufree
