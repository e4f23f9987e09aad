#include "cpufree/solvers/gpu/compiled/kernel_source.hpp"

#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/host/kernel_names.hpp"

namespace cpufree {

std::string solver_source(const SolveSpec& spec, const std::string& type, const char* port,
                          const std::string& format, int columns) {
  const bool study = spec.study != Study::none;
  const bool narrow = study && spec.study != Study::trace;  // of one type, without preconditioner
  const std::string value = narrow ? "double" : type;
  const Preconditioner pc = narrow ? Preconditioner::none : spec.preconditioner;
  const std::string call =
      study ? "study_kernel<" + std::string(name_of(spec.study)) + ", " : "solve_kernel<";
  const std::string products = columns > 1 ? "formats/warp_columns.hpp" : "formats/warp_slices.hpp";
  std::string headers =
      include_line(products) + include_line(study ? "solvers/study.hpp" : "solvers/kernel.hpp");
  if (pc == Preconditioner::amg) headers += include_line("multigrid/cycle.hpp");
  if (const std::string own = header_of(spec.method); !own.empty()) headers += include_line(own);
  return port_kernel(headers, kGpuThreads,
                     "SolveArgs<WarpSlices<" + value + ">, " + std::to_string(columns) + ">", port,
                     call + algorithm_of(spec.method) + ", " + class_of(pc, value, columns) + ", " +
                         format + ">(port, args);",
                     pc == Preconditioner::amg ? "CPUFREE_CALLS_STEPS " : "");
}

namespace {
// All kernels of a list, structs of a namespace that run on the port of threads that do not wait.
std::string free_kernels(const std::string& header, const std::string& room,
                         const std::string& list, const std::string& type = "") {
  return include_line("engines/gpu_p2p/free_port.cuh") + include_line(header) +
         "#define CPUFREE_ONE(K) \\\n"
         "extern \"C\" __global__ void __launch_bounds__(cpufree::layout::kThreads) \\\n"
         "K(const __grid_constant__ cpufree::" +
         room + "::K" + type +
         " given) { \\\n"
         "  const cpufree::gpu_p2p::FreePort port; \\\n"
         "  cpufree::gpu_p2p::argument(given, 0).run(port); \\\n"
         "}\n" +
         list + "(CPUFREE_ONE)\n";
}
}  // namespace

std::vector<std::string> layout_sources(const std::string& type) {
  const std::string header = "formats/layout/kernels.hpp", room = "layout", of = "<" + type + ">";
  return {free_kernels(header, room, "CPUFREE_LAYOUT_ROW_KERNELS", of),
          free_kernels(header, room, "CPUFREE_LAYOUT_SLICE_KERNELS", of)};
}

std::string inverse_source(const std::string& type) {
  return free_kernels("formats/layout/kernels.hpp", "layout", "CPUFREE_LAYOUT_INVERSE_KERNELS",
                      "<" + type + ">");
}

std::string hierarchy_source() {
  return free_kernels("multigrid/setup/kernels.hpp", "multigrid::setup",
                      "CPUFREE_MULTIGRID_KERNELS");
}

std::string vectors_source(const std::string& type) {
  const auto one = [](const std::string& name, const std::string& parameters,
                      const std::string& arguments) {
    return "extern \"C\" __global__ void __launch_bounds__(kVectorThreads)\n" + name + "(" +
           parameters + ") {\n  cpufree::" + name + "(" + arguments + ");\n}\n";
  };
  const std::string from = "const " + type + "* from, ", all = "std::int64_t count, ";
  const std::string rows = "const std::int32_t* row, " + all, to = type + "* to";
  return include_line("solvers/gpu/kernels/vector_entries.cuh") + "using namespace cpufree;\n" +
         one("gather_entries", from + rows + to + ", VectorProbe* probe",
             "from, row, count, to, probe") +
         one("scale_entries", type + "* v, " + all + "double factor", "v, count, factor") +
         one("scatter_entries", from + rows + "double divisor, " + to + ", VectorProbe* probe",
             "from, row, count, divisor, to, probe") +
         one("put_entries", from + all + "int column, int columns, double factor, " + to,
             "from, count, column, columns, factor, to") +
         one("take_entries", from + all + "int column, int columns, " + to,
             "from, count, column, columns, to");
}

}  // namespace cpufree
