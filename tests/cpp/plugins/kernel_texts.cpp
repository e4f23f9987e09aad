// Writes texts of kernels, as they are compiled when they are first used, into a folder: a file for
// each, with its room for a name's begin. For compilers that need no GPU (tools/check_hip.py).
//   kernel_texts FOLDER
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/probes/gpu/compiled/probe_source.hpp"
#include "cpufree/solvers/gpu/compiled/kernel_source.hpp"
#include "cpufree/solvers/gpu/kernels/many_kernel.hpp"
#include "cpufree/stencils/gpu/compiled/stencil_source.hpp"

namespace {

using namespace cpufree;

class Texts {
 public:
  explicit Texts(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, const std::string& text) {
    std::ofstream out(folder_ / (name + ".cu"));
    out << text;
    if (!out.flush() || text.empty())
      throw EngineError("the text of kernel " + name + " was not written into " + folder_.string());
    ++count_;
  }
  int count() const { return count_; }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

std::string slices_of(SliceKinds columns) {
  return "SlicesOf<" + std::to_string(columns | kPlainValues) + ">";
}

// Of each method what most systems want; of the usual ones with each preconditioner, in single
// precision, and with the matrix on chip or streamed.
void add_solvers(Texts& texts) {
  using enum Method;
  using enum Preconditioner;
  const std::pair<Method, const char*> methods[] = {
      {prcg, "prcg"}, {cg, "cg"}, {pipecg, "pipecg"}, {minres, "minres"}, {bicgstab, "bicgstab"}};
  const std::pair<Preconditioner, const char*> preconditioners[] = {
      {none, "none"}, {jacobi, "jacobi"}, {chebyshev, "chebyshev"}, {fsai, "fsai"}};
  for (const auto& [method, method_name] : methods)
    for (const auto& [pc, pc_name] : preconditioners) {
      const bool usual = method == prcg || method == cg || method == pipecg;
      if (!usual && pc != none && pc != jacobi) continue;
      SolveSpec spec;
      spec.method = method;
      spec.preconditioner = pc;
      const std::string name = "solvers-" + std::string(method_name) + "-" + pc_name;
      texts.add(name, solver_source(spec, "double", "Port", slices_of(kSingles)));
      if (!usual || pc != jacobi) continue;
      texts.add(name + "-float", solver_source(spec, "float", "Port", slices_of(kSingles)));
      texts.add(name + "-streamed",
                solver_source(spec, "double", "StreamingPort", slices_of(kRuns)));
      texts.add(name + "-on-chip", solver_source(spec, "double", "Port", "SlicesOnChip"));
    }
  SolveSpec spec;
  spec.method = cg;
  spec.preconditioner = jacobi;
  texts.add("solvers-cg-jacobi-4-columns", solver_source(spec, "double", "Port", "AnySlices", 4));
  spec.preconditioner = amg;
  for (const char* type : {"double", "float"})
    texts.add(std::string("solvers-cg-amg-") + type,
              solver_source(spec, type, "Port", slices_of(kSingles)));
  texts.add("solvers-cg-amg-single-values",
            solver_source(spec, "double", "Port", slices_of(kSingles | kSingleValues)));
  spec.preconditioner = jacobi;
  texts.add("solvers-many", many_source(spec, "double"));
}

void add_setups(Texts& texts) {
  for (const char* type : {"double", "float"}) {
    texts.add(std::string("vectors-") + type, vectors_source(type));
    int part = 0;
    for (const std::string& source : layout_sources(type))
      texts.add("layout-" + std::to_string(part++) + "-" + type, source);
    texts.add(std::string("layout-inverse-") + type, inverse_source(type));
  }
  texts.add("multigrid-setup", hierarchy_source());
}

void add_stencils(Texts& texts) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{4}}) {
    const std::string type = bytes == 8 ? "-double" : "-float";
    StencilKernel wanted;
    for (wanted.dims = 2; wanted.dims <= 3; ++wanted.dims) {
      const std::string dims = std::to_string(wanted.dims) + "d" + type;
      texts.add("stencils-wavefront-" + dims, wavefront_source(wanted, Study::none, bytes));
      wanted.layers = time_tile_layers(wanted.dims).front();
      texts.add("stencils-time-tiles-" + dims, time_tiles_source(wanted, Study::none, bytes));
    }
    wanted.tile3d = tile3d_shapes(bytes).front();
    texts.add("stencils-registers-3d" + type, registers_3d_source(wanted, Study::none, bytes));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: kernel_texts FOLDER\n";
    return 2;
  }
  try {
    Texts texts(arguments[1]);
    add_solvers(texts);
    add_setups(texts);
    add_stencils(texts);
    texts.add("probes-patterns", pattern_source());
    texts.add("probes-reading", reading_source());
    std::cout << texts.count() << " texts in " << arguments[1] << "\n";
  } catch (const Error& error) {
    std::cerr << "kernel_texts: " << error.what() << "\n";
    return 1;
  }
}
