#include "cpufree/systems/gpu/compiled/kernel_source.hpp"

#include "cpufree/systems/gpu/kernels/kernel.hpp"
#include "cpufree/systems/kernel_names.hpp"

namespace cpufree {

namespace {

constexpr int kProbeThreads = 1024;  // of a block, at most

// A kernel of `threads` threads at most that calls `body` with `port`, a class of gpu_p2p.
std::string kernel(const std::string& headers, int threads, const std::string& args,
                   const std::string& port, const std::string& body) {
  return include_line("engines/gpu_p2p/port.cuh") + headers +
         "using namespace cpufree;\n"
         "extern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(threads) +
         ", 1)\n"
         "run_on_gpu(const __grid_constant__ gpu_p2p::Shared shared,\n"
         "           const __grid_constant__ " +
         args +
         " args) {\n"
         "  extern __shared__ double2 fast[];\n"
         "  gpu_p2p::" +
         port + " port(shared, reinterpret_cast<std::byte*>(fast));\n  " + body + "\n}\n";
}

}  // namespace

std::string solver_source(const SolveSpec& spec, const std::string& type, const char* port,
                          const std::string& format, int columns) {
  const bool study = spec.study != Study::none;
  const bool narrow = study && spec.study != Study::trace;  // of one type, without preconditioner
  const std::string value = narrow ? "double" : type;
  const std::string preconditioner = narrow ? "Identity" : class_of(spec.preconditioner);
  const std::string call =
      study ? "study_kernel<" + std::string(name_of(spec.study)) + ", " : "solve_kernel<";
  const std::string products = columns > 1 ? "formats/warp_columns.hpp" : "formats/warp_slices.hpp";
  std::string headers =
      include_line(products) + include_line(study ? "solvers/study.hpp" : "solvers/kernel.hpp");
  if (preconditioner == "Multigrid") headers += include_line("multigrid/cycle.hpp");
  return kernel(headers, kGpuThreads,
                "SolveArgs<WarpSlices<" + value + ">, " + std::to_string(columns) + ">", port,
                call + algorithm_of(spec.method) + ", " + preconditioner + "<" + value + ">, " +
                    format + ">(port, args);");
}

std::string probe_source(ProbeWay way) {
  return kernel(include_line("engines/gpu_p2p/bulk_put.cuh") + include_line("probes/kernel.hpp"),
                kProbeThreads, "ProbeArgs", "Port",
                "probe_kernel<static_cast<ProbeWay>(" + std::to_string(static_cast<int>(way)) +
                    ")>(port, args);");
}

std::string pattern_source() {
  return kernel(include_line("probes/patterns.hpp"), kProbeThreads, "PatternArgs", "Port",
                "pattern_kernel(port, args);");
}

std::string reading_source() {
  return include_line("probes/gpu/reading.cuh") + include_line("probes/gpu/tiles.cuh") +
         "extern \"C\" __global__ void nothing() {}\n"
         "extern \"C\" __global__ void\n"
         "reading(const double* values, std::int64_t count, double* sum) {\n"
         "  cpufree::read_all(values, count, sum);\n}\n"
         "extern \"C\" __global__ void __launch_bounds__(cpufree::kTileThreads)\n"
         "tile_product(const __grid_constant__ cpufree::ProductArgs args) {\n"
         "  cpufree::multiply_tiles(args);\n}\n";
}

std::string stencil_source(const StencilText& text, Study study, const std::string& type) {
  return kernel(include_line(std::string("stencils/") + text.header), text.threads,
                "JacobiArgs<" + type + ">", "Port",
                "run_as<" + std::string(name_of(study)) + ">(port, [&](auto& p) { " + text.body +
                    ", " + (text.source ? "true" : "false") + ">(p, args); });");
}

std::vector<std::string> layout_sources(const std::string& type) {
  std::vector<std::string> sources;
  for (const char* kind : {"ROW", "SLICE"})
    sources.push_back(
        include_line("engines/gpu_p2p/free_port.cuh") + include_line("formats/layout/kernels.hpp") +
        "#define CPUFREE_ONE(K) \\\n"
        "extern \"C\" __global__ void __launch_bounds__(cpufree::layout::kThreads) \\\n"
        "K(const __grid_constant__ cpufree::layout::K<" +
        type +
        "> kernel) { \\\n"
        "  const cpufree::gpu_p2p::FreePort port; \\\n"
        "  kernel.run(port); \\\n"
        "}\n"
        "CPUFREE_LAYOUT_" +
        kind + "_KERNELS(CPUFREE_ONE)\n");
  return sources;
}

std::string vectors_source(const std::string& type) {
  const auto one = [](const std::string& name, const std::string& parameters,
                      const std::string& arguments) {
    return "extern \"C\" __global__ void __launch_bounds__(kVectorThreads)\n" + name + "(" +
           parameters + ") {\n  cpufree::" + name + "(" + arguments + ");\n}\n";
  };
  const std::string from = "const " + type + "* from, ", all = "std::int64_t count, ";
  const std::string rows = "const std::int32_t* row, " + all, to = type + "* to";
  return include_line("systems/gpu/kernels/vector_entries.cuh") + "using namespace cpufree;\n" +
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
