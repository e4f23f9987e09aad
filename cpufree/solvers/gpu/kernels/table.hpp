// The solver kernels of a kind of solve: built in, or compiled when they are first wanted.
#pragma once

#include <span>

#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// Which of them a system may use, and where.
struct KernelsWanted {
  SliceKinds kinds = kAllKinds;  // what its slices are; of several columns, of these alone
  bool on_chip = false;          // also GpuKernels::on_chip, where there is one
  std::span<const int> devices;
  int columns = 1;      // right-hand sides together; of several `plain` alone
  bool streams = true;  // the matrix may come through rings; else `plain` may stand for `streaming`
};

// Kernels that are not wanted may be null. Of built_in.cpp or of compiled/, as the build says;
// those of compiled/ throw Unsupported where there is no compiler.
template <class T>
GpuKernels kernels_for(const SolveSpec& spec, const KernelsWanted& wanted);

// Those for values in single precision, of a build that has its kernels built in. Throws
// Unsupported.
GpuKernels mixed_kernels(const SolveSpec& spec, int columns);

// Begins to compile what kernels_for() is likely to be asked for, where kernels are compiled.
// Only the end of the process waits for kernels that were not asked for (finish_compiling).
template <class T>
void compile_ahead_for(const SolveSpec& spec, const KernelsWanted& wanted);

}  // namespace cpufree
