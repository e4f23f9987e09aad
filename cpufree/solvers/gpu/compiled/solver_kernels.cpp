// Solver kernels that are compiled on this machine when a solve first wants them.
#include <set>

#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/launch/gpu/gpus.hpp"
#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/solvers/gpu/compiled/kernel_source.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"

namespace cpufree {

namespace {

constexpr SliceKinds kSimple = kSimpleColumns | kSimpleRuns;

// What kernels that come with the package are for, of which a matrix with `kinds` takes one set.
constexpr SliceKinds shipped_kinds(SliceKinds kinds) {
  constexpr SliceKinds runs = kRuns | kSimpleRuns;
  if (has_kind(kinds, kSingleValues)) return kinds;  // there are none
  return has_kind(kinds, runs) ? kAllKinds : kAllKinds & ~runs;
}

std::string slices_of(SliceKinds kinds) { return "SlicesOf<" + std::to_string(kinds) + ">"; }

// Those that built_in.cpp has for such a solve, but for what occurs alone (SliceKinds); the
// vectors' last. What comes through rings, and several columns, are not read as simple shares.
template <class T>
std::vector<std::string> sources_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  // What does not compute does not stream, nor does A beside the levels of multigrid.
  const bool amg = spec.preconditioner == Preconditioner::amg;
  const bool computes = spec.study != Study::no_compute && !amg;
  const bool streams = computes && wanted.streams;
  const SliceKinds kinds = wanted.kinds, streamed = kinds & ~kSimple;
  const std::string type = type_name<T>(), vectors = vectors_source(type);
  if (wanted.columns > 1)
    return {solver_source(spec, type, "Port", slices_of(streamed & ~kHaloPackets), wanted.columns),
            vectors};
  std::vector<std::string> sources = {
      solver_source(spec, type, "Port", slices_of(kinds)),
      streams ? solver_source(spec, type, "StreamingPort", slices_of(streamed))
              : solver_source(spec, type, "Port", slices_of(kinds))};
  if (wanted.on_chip)
    sources.push_back(solver_source(
        spec, type, "Port",
        computes ? "SlicesOnChipOf<" + std::to_string(kinds & kSimple) + ">" : slices_of(kinds)));
  sources.push_back(vectors);  // every solve needs them, and they compile meanwhile
  return sources;
}

// What came with the package serves any matrix: where it is there, nothing is compiled.
template <class T>
std::vector<std::string> sources_here(const SolveSpec& spec, KernelsWanted wanted) {
  const std::vector<std::string> exact = sources_for<T>(spec, wanted);
  wanted.kinds = shipped_kinds(wanted.kinds);
  const std::vector<std::string> any = sources_for<T>(spec, wanted);
  return are_shipped(any, wanted.devices) ? any : exact;
}

}  // namespace

template <class T>
GpuKernels kernels_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  const auto code = compiled_code(sources_here<T>(spec, wanted), wanted.devices);
  if (wanted.columns > 1) return for_any_code({only_kernel(code[0]), nullptr});
  return for_any_code({only_kernel(code[0]), only_kernel(code[1])},
                      wanted.on_chip ? only_kernel(code[2]) : nullptr);
}

template <class T>
void compile_ahead_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  compile_ahead(sources_here<T>(spec, wanted), wanted.devices);
}

// Those of solves in double precision by any method, with Jacobi or without a preconditioner, and
// what every set-up and solve needs besides.
int ship_kernels(const std::string& architecture, const std::string& folder) {
  const std::string type = type_name<double>();
  std::set<std::string> all;
  for (const auto& sources : {layout_sources(type), layout_sources(type_name<float>())})
    all.insert(sources.begin(), sources.end());  // levels of multigrid are in single precision
  all.insert(hierarchy_source());
  for (const Method method : {Method::cg, Method::prcg, Method::pipecg})
    for (const Preconditioner pc : {Preconditioner::none, Preconditioner::jacobi}) {
      SolveSpec spec;
      spec.method = method;
      spec.preconditioner = pc;
      for (const SliceKinds kinds : {shipped_kinds(kSingles), shipped_kinds(kRuns)}) {
        KernelsWanted wanted;
        wanted.kinds = kinds;
        wanted.on_chip = true;
        for (const std::string& source : sources_for<double>(spec, wanted)) all.insert(source);
      }
    }
  ship_code({all.begin(), all.end()}, architecture, folder);
  return static_cast<int>(all.size());
}

bool kernels_compiled() { return true; }

std::string kernel_compiler() { return compiler_found(); }

template GpuKernels kernels_for<float>(const SolveSpec&, const KernelsWanted&);
template GpuKernels kernels_for<double>(const SolveSpec&, const KernelsWanted&);
template void compile_ahead_for<float>(const SolveSpec&, const KernelsWanted&);
template void compile_ahead_for<double>(const SolveSpec&, const KernelsWanted&);

}  // namespace cpufree
