// Solver kernels that are compiled on this machine when a solve first wants them.
#include "cpufree/systems/gpu/compiled/kernel_source.hpp"
#include "cpufree/systems/gpu/compiled/store.hpp"
#include "cpufree/systems/gpu/engine.hpp"
#include "cpufree/systems/gpu/kernels/table.hpp"

namespace cpufree {

namespace {

bool pointwise(Preconditioner preconditioner) {
  return preconditioner == Preconditioner::none || preconditioner == Preconditioner::jacobi;
}

// Those that built_in.cpp has for such a solve, of which it wants one format; the vectors' last.
template <class T>
std::vector<std::string> sources_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  const bool study = spec.study != Study::none;
  const bool computes = spec.study != Study::no_compute;  // what does not compute does not stream
  const char* const format =
      wanted.runs || study || !pointwise(spec.preconditioner) ? "AnySlices" : "SlicesWithoutRuns";
  const std::string type = type_name<T>();
  if (wanted.columns > 1)
    return {solver_source(spec, type, "Port", "AnySlices", wanted.columns), vectors_source(type)};
  std::vector<std::string> sources = {
      solver_source(spec, type, "Port", format),
      solver_source(spec, type, computes ? "StreamingPort" : "Port", format)};
  if (wanted.on_chip)
    sources.push_back(solver_source(spec, type, "Port", computes ? "SlicesOnChip" : "AnySlices"));
  sources.push_back(vectors_source(type));  // every solve needs them, and they compile meanwhile
  return sources;
}

}  // namespace

template <class T>
GpuKernels kernels_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  const auto code = compiled_code(sources_for<T>(spec, wanted), wanted.devices);
  if (wanted.columns > 1) return for_any_code({only_kernel(code[0]), nullptr});
  return for_any_code({only_kernel(code[0]), only_kernel(code[1])},
                      wanted.on_chip ? only_kernel(code[2]) : nullptr);
}

template <class T>
void compile_ahead_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  compile_ahead(sources_for<T>(spec, wanted), wanted.devices);
}

// Those of solves in double precision by any method, with Jacobi or without a preconditioner, and
// what every set-up and solve needs besides.
int ship_kernels(const std::string& architecture, const std::string& folder) {
  const std::string type = type_name<double>();
  std::vector<std::string> sources = layout_sources(type);
  sources.push_back(vectors_source(type));
  for (const Method method : {Method::cg, Method::prcg, Method::pipecg})
    for (const Preconditioner pc : {Preconditioner::none, Preconditioner::jacobi}) {
      SolveSpec spec;
      spec.method = method;
      spec.preconditioner = pc;
      for (const char* format : {"AnySlices", "SlicesWithoutRuns"})
        for (const char* port : {"Port", "StreamingPort"})
          sources.push_back(solver_source(spec, type, port, format));
      sources.push_back(solver_source(spec, type, "Port", "SlicesOnChip"));
    }
  ship_code(sources, architecture, folder);
  return static_cast<int>(sources.size());
}

bool kernels_compiled() { return true; }

std::string kernel_compiler() { return compiler_found(); }

template GpuKernels kernels_for<float>(const SolveSpec&, const KernelsWanted&);
template GpuKernels kernels_for<double>(const SolveSpec&, const KernelsWanted&);
template void compile_ahead_for<float>(const SolveSpec&, const KernelsWanted&);
template void compile_ahead_for<double>(const SolveSpec&, const KernelsWanted&);

}  // namespace cpufree
