#include "cpufree/plugins/cpu/kernel_source.hpp"

#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/solvers/host/kernel_names.hpp"

namespace cpufree {

namespace {

// A text that includes `headers` and returns `kernel`, a function pointer of type `kind`.
std::string text_for(const std::string& headers, const std::string& kind,
                     const std::string& kernel) {
  return include_line("plugins/cpu/kernel.hpp") + headers +
         "using namespace cpufree;\n"
         "using P = cpu_threads::Port;\n"
         "extern \"C\" const void* cpufree_kernel() {\n"
         "  static constexpr " +
         kind + " kernel = " + kernel +
         ";\n"
         "  return reinterpret_cast<const void*>(kernel);\n}\n";
}

std::string near_kernel(const SolveSpec& spec, const std::string& type, int columns, bool singles) {
  const std::string study = spec.study == Study::none
                                ? "solve_kernel<"
                                : "study_kernel<" + std::string(name_of(spec.study)) + ", ";
  return study + algorithm_of(spec.method) + ", " + class_of(spec.preconditioner, type, columns) +
         (singles ? ", SingleSlices" : "") + ">";
}

std::string far_kernel(const SolveSpec& spec, const std::string& type) {
  return "[](P& port, const SolveArgs<Sliced<" + type +
         ", P::width>>& args) {\n"
         "    cpu_threads::RemotePort far(port);\n    " +
         near_kernel(spec, type, 1, false) + "(far, args);\n  }";
}

}  // namespace

CpuKernelText cpu_solver_source(const SolveSpec& spec, const std::string& type, int columns,
                                const CpuKernelKind& kind) {
  const std::string count = std::to_string(columns);
  CpuKernelText made;
  made.name = std::string(method_name(spec.method)) +
              (columns > 1 ? " of " + count + " right-hand sides" : "") + " with preconditioner " +
              preconditioner_name(spec.preconditioner) + ", " + type;
  if (spec.study != Study::none) made.name += std::string(", study ") + study_name(spec.study);
  if (kind.nodes) made.name += ", several nodes";
  if (kind.singles) made.name += ", values of A in single precision";
  made.built_in_all = spec.study == Study::none && !kind.nodes && !kind.singles;
  std::string headers =
      include_line(spec.study == Study::none ? "solvers/kernel.hpp" : "solvers/study.hpp");
  if (spec.preconditioner == Preconditioner::amg) headers += include_line("multigrid/cycle.hpp");
  if (const std::string own = header_of(spec.method); !own.empty()) headers += include_line(own);
  if (kind.nodes) headers += include_line("engines/cpu_threads/remote_port.hpp");
  made.text = text_for(
      headers, "CpuKernel<" + type + ", " + count + ">",
      kind.nodes ? far_kernel(spec, type) : near_kernel(spec, type, columns, kind.singles));
  return made;
}

CpuKernelText cpu_stencil_source(const Grid& grid, bool source, Study study,
                                 const std::string& type) {
  const std::string dims = std::to_string(grid.dims);
  CpuKernelText made;
  made.name = "jacobi" + dims + "d" + (source ? " with a source term" : "") + ", " + type;
  made.text = text_for(include_line("stencils/jacobi.hpp") +
                           (study == Study::trace ? include_line("trace/traced.hpp") : ""),
                       "CpuStencilKernel<" + type + ">",
                       "[](P& port, const JacobiArgs<" + type + ">& args) {\n    " +
                           call_of(study) + ", [&](auto& p) { jacobi_kernel<" + dims + ", " +
                           (source ? "true" : "false") + ">(p, args); });\n  }");
  return made;
}

}  // namespace cpufree
