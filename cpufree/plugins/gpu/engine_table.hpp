// The GPU engine as a table of functions, so that it can be a shared object of its own.
//
// The extension has to import on machines without a GPU, quickly; the GPU engine holds tens of
// megabytes of kernels, and the vendor's runtime. So it is _gpu.so, next to the extension, which
// exports one function: the one that returns this table. loaded.cpp loads it for gpu_engine().
// Where the engine is linked into a program (C++ tests, programs of tests/cuda), the table comes
// with it, and loaded.cpp is left out of the link.
//
// Objects of classes with virtual functions, exceptions, strings and vectors cross the border: both
// sides are built together, by one compiler. `version` is compared before anything else is used.
#pragma once

#include "cpufree/launch/gpu/gpus.hpp"
#include "cpufree/probes/gpu/host_product.hpp"
#include "cpufree/probes/gpu/host_ways.hpp"
#include "cpufree/probes/gpu/litmus.hpp"
#include "cpufree/probes/gpu/prober.hpp"
#include "cpufree/programs/gpu/program.hpp"
#include "cpufree/solvers/gpu/make_system.hpp"
#include "cpufree/solvers/gpu/many.hpp"
#include "cpufree/stencils/gpu/stencil.hpp"

namespace cpufree {

struct GpuEngineTable {
  template <class T>
  struct Of {
    std::unique_ptr<System<T>> (*from_matrix)(const CsrView<T>&, std::span<const std::int32_t>,
                                              std::span<const std::int32_t>, const SystemSpec&);
    std::unique_ptr<System<T>> (*from_slab)(SlabPlan<T>, const SystemSpec&);
    std::unique_ptr<System<T>> (*from_given)(const GivenCsr<T>&, const SystemSpec&);
    StencilResult (*stencil)(const StencilProblem<T>&, const StencilSpec&, const StencilRun&,
                             const Progress&);
    void (*many)(const std::vector<OneOfMany<T>>&, const SolveSpec&, int, const Progress&,
                 std::vector<SolvedOne>&);
  };
  const char* version;
  std::string (*gpu_vendor)();
  std::string (*cuda_runtime)();
  std::vector<GpuInfo> (*list_gpus)();
  std::string (*gpu_note)();
  std::size_t (*gpu_free_bytes)(int);
  bool (*gpu_is_started)(int);
  std::string (*peer_problem)(const std::vector<int>&);
  int (*gpu_of)(const void*);
  void (*set_kernel_compiler)(const std::string&, const std::vector<std::string>&,
                              const std::string&);
  void (*finish_compiling)();
  int (*kernels_compiling)();
  double (*kernel_seconds)();
  int (*ship_kernels)(const std::string&, const std::string&);
  bool (*kernels_compiled)();
  std::string (*kernel_compiler)();
  void (*start_remote)(const std::shared_ptr<Team>&, const remote::Choice&, int, std::size_t);
  void (*await_remote)(const std::string&);
  Litmus (*run_litmus)(const LitmusSpec&);
  std::unique_ptr<Prober> (*make_gpu_prober)(const std::vector<int>&, int, int, std::int64_t,
                                             ProbePlace);
  std::unique_ptr<HostProduct> (*make_host_product)(const std::vector<int>&, int);
  std::unique_ptr<HostWay> (*make_host_way)(const HostWaySpec&);
  std::unique_ptr<IpcMemory> (*make_ipc_memory)(int, std::int64_t);
  std::string (*make_shmem_way_id)(const std::string&);
  std::unique_ptr<GpuProgram> (*make_gpu_program)(const GpuProgramSpec&);
  std::unique_ptr<HostedProgram> (*make_hosted_program)(const std::string&, int,
                                                        const std::vector<int>&, std::size_t, int);
  Of<float> in_float;
  Of<double> in_double;

  template <class T>
  const Of<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float))
      return in_float;
    else
      return in_double;
  }
};

// What the engine does for values of type T.
template <class T>
inline constexpr GpuEngineTable::Of<T> kGpuEngineOf = {make_cuda_system<T>, make_cuda_system<T>,
                                                       make_cuda_system<T>, run_cuda_stencil<T>,
                                                       solve_many_on_gpu<T>};

// The engine that was loaded, or is linked into this program. Where there is none, its functions
// find no GPU, say why, and do nothing; those that cannot do without throw Unsupported, which says
// why, and what to do instead.
const GpuEngineTable& gpu_engine();

}  // namespace cpufree

// C linkage: a name to look up.
extern "C" const cpufree::GpuEngineTable* cpufree_gpu_engine();
