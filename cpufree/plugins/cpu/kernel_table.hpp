// The kernels of the CPU engine that are built in, as a table of functions, so that a program can
// choose among several versions of them, and knows which are left to be compiled when they are
// first used (find_kernel.hpp).
//
// A build from source has its kernels compiled for the processor at hand (native). A wheel has to
// run on every x86-64-v2 processor, and its kernels have to be as fast as the processor allows: its
// files that hold kernels are compiled once per level of the instruction set. Each version is a
// shared object (_cpu_native.so; _cpu_v2.so, _cpu_v3.so) that exports one function: the one that
// returns this table. levels.cpp loads the object for the processor at hand.
//
// Why separate shared objects: kernels are templates. Compiled with different flags into one
// program, the same template would have several definitions under one name, of which a linker
// keeps any; a function with AVX-512 instructions could be called on a processor that lacks them.
// In shared objects that export nothing else, and are loaded with RTLD_LOCAL, every name is bound
// inside its own object.
//
// Where one version is enough (C++ tests), the kernels are linked into the program, and linked.cpp
// returns their table.
#pragma once

#include "cpufree/plugins/cpu/kernel.hpp"

namespace cpufree {

// What kernels are compiled with: all of them, and each family besides.
struct CpuKernelFlags {
  const char* level = "";
  const char* solvers = "";
  const char* columns = "";
  const char* stencils = "";
};

// A function that returns null, or is null, leaves a kernel to be compiled. `remote` and `study`
// are for tests and measurements: no package has them built in.
struct CpuKernels {
  template <class T>
  struct Of {
    CpuKernel<T> (*solve)(const SolveSpec&) = nullptr;
    CpuKernel<T> (*remote)(const SolveSpec&) = nullptr;
    CpuStencilKernel<T> (*stencil)(const Grid&, bool source, Study) = nullptr;
    CpuKernel<T, 2> (*two)(const SolveSpec&) = nullptr;
    CpuKernel<T, 4> (*four)(const SolveSpec&) = nullptr;
    CpuKernel<T, 8> (*eight)(const SolveSpec&) = nullptr;

    // Of N right-hand sides together.
    template <int K>
    auto columns() const {
      if constexpr (K == 1)
        return solve;
      else if constexpr (K == 2)
        return two;
      else if constexpr (K == 4)
        return four;
      else
        return eight;
    }
  };
  CpuKernelFlags flags = {};
  Of<float> in_float = {};
  Of<double> in_double = {};
  CpuKernel<double> (*study)(const SolveSpec&) = nullptr;

  template <class T>
  const Of<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float))
      return in_float;
    else
      return in_double;
  }
};

}  // namespace cpufree

// The table of the kernels that are compiled into this program or shared object. C linkage: a name
// to look up.
extern "C" const cpufree::CpuKernels* cpufree_cpu_kernels();
