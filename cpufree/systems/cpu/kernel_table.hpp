// The kernels of the CPU engine as a table of functions, so that a program can choose among several
// versions of them.
//
// A wheel has to run on every x86-64-v2 processor, and its kernels have to be as fast as the
// processor allows. So the files that hold kernels are compiled once per level of the instruction
// set, each time into a shared object of its own (_cpu_v2.so, _cpu_v3.so, _cpu_v4.so) that exports
// one function: the one that returns this table. levels.cpp loads the object for the processor
// at hand.
//
// Why separate shared objects: kernels are templates. Compiled with different flags into one
// program, the same template would have several definitions under one name, of which a linker
// keeps any; a function with AVX-512 instructions could be called on a processor that lacks them.
// In shared objects that export nothing else, and are loaded with RTLD_LOCAL, every name is bound
// inside its own object.
//
// Where one version is enough (C++ tests, CPUFREE_NATIVE, other processors), the kernels are linked
// into the program, and linked.cpp returns their table.
#pragma once

#include <string>
#include <vector>

#include "cpufree/systems/cpu/columns_kernel.hpp"
#include "cpufree/systems/cpu/kernel.hpp"

namespace cpufree {

struct CpuKernels {
  template <class T>
  struct Of {
    CpuKernel<T> (*solve)(const SolveSpec&);
    CpuKernel<T> (*remote)(const SolveSpec&);
    CpuStencilKernel<T> (*stencil)(const Grid&, bool source, Study);
    CpuColumnsKernel<T, 2> (*two)(Preconditioner);
    CpuColumnsKernel<T, 4> (*four)(Preconditioner);
    CpuColumnsKernel<T, 8> (*eight)(Preconditioner);

    template <int K>
    CpuColumnsKernel<T, K> columns(Preconditioner preconditioner) const {
      if constexpr (K == 2)
        return two(preconditioner);
      else if constexpr (K == 4)
        return four(preconditioner);
      else
        return eight(preconditioner);
    }
  };
  Of<float> in_float;
  Of<double> in_double;
  CpuKernel<double> (*study)(const SolveSpec&);

  template <class T>
  const Of<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float))
      return in_float;
    else
      return in_double;
  }
};

// The table of the kernels in use. Throws Unsupported where the level asked for (CPUFREE_CPU_LEVEL)
// is not that of this processor, and InvalidInput where there is no such level.
const CpuKernels& cpu_kernels();

// The level in use, such as "x86-64-v3"; "native" or "baseline" for kernels that are linked. Throws
// as `cpu_kernels` does.
std::string cpu_level();

// The levels that this processor can run, lowest first; the one in use where kernels are linked.
std::vector<std::string> cpu_levels();

}  // namespace cpufree

// The table of the kernels that are compiled into this program or shared object. C linkage: a name
// to look up.
extern "C" const cpufree::CpuKernels* cpufree_cpu_kernels();
