// Where a library is given sums, and leaves them (library_reduce.hpp).
#pragma once

#include "cpufree/device/types.hpp"

namespace cpufree {

// Symmetric; one for each PE.
struct LibraryBoard {
  double* in = nullptr;    // two parities x kLibraryValues
  double* out = nullptr;   // kLibraryValues
  Packet* told = nullptr;  // kReduceWidth, for the blocks of the PE
};

}  // namespace cpufree
