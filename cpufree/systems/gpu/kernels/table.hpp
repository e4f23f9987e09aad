// The solver kernels of a kind of solve: built in, or compiled when they are first wanted.
#pragma once

#include <string>

#include "cpufree/systems/gpu/kernels/kernel.hpp"
#include "cpufree/systems/spec.hpp"

namespace cpufree {

// Which of them a system may use, and where machine code is kept between runs.
struct KernelsWanted {
  bool runs = false;     // GpuKernels::runs, else singles
  bool on_chip = false;  // also GpuKernels::on_chip, where there is one
  int device = 0;        // the first GPU: all are of one architecture
  std::string cache;     // folder; empty: nowhere
};

// Kernels that are not wanted may be null. built_in.cpp or compiled.cpp, as the build says.
template <class T>
GpuKernels kernels_for(const SolveSpec& spec, const KernelsWanted& wanted);

}  // namespace cpufree
