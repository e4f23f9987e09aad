// Kernels are compiled to machine code for a GPU, which need not be there: of each family a few,
// without optimisation; as many as CPUFREE_TEST_KERNELS says, or all that there are.
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "cpufree/base/parallel.hpp"
#include "cpufree/formats/layout/kernels.hpp"
#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/gpu/compiler.hpp"
#include "cpufree/launch/gpu/compiled/kernel_headers.hpp"
#include "cpufree/multigrid/setup/kernels.hpp"
#include "cpufree/probes/gpu/compiled/probe_source.hpp"
#include "cpufree/solvers/gpu/compiled/kernel_source.hpp"
#include "cpufree/solvers/gpu/kernels/many_kernel.hpp"
#include "cpufree/stencils/gpu/compiled/stencil_source.hpp"
#include "harness.hpp"

namespace {

using namespace cpufree;

constexpr const char* kArchitecture = "sm_90";

const gpu::Compiler& compiler() {
  static const gpu::Compiler found(CPUFREE_TEST_COMPILER);
  return found;
}

std::string compile(const std::string& source, bool quickly = true,
                    const std::string& architecture = kArchitecture) {
  std::vector<std::string> options = gpu::Compiler::options();
  if (quickly) options.push_back("--Ofast-compile=max");
  return compiler().compile(source, architecture, kernel_headers(), options);
}

// How many of a number of kernels are compiled: the first ones.
std::size_t count_of(std::size_t all, std::size_t usual) {
  const char* const asked = std::getenv("CPUFREE_TEST_KERNELS");
  return std::min(all, asked == nullptr ? usual : static_cast<std::size_t>(std::atoll(asked)));
}

// Whether a file of machine code (ELF) has a kernel of that name.
bool holds(const std::string& code, const std::string& kernel) {
  return code.starts_with(
             "\x7f"
             "ELF") &&
         code.find(".text." + kernel) != std::string::npos;
}

// Compiles the first `usual` of them, side by side.
void check_compiled(const std::vector<std::string>& sources, std::size_t usual) {
  const std::size_t count = count_of(sources.size(), usual);
  std::atomic<std::size_t> good = 0;
  in_parallel(static_cast<int>(count), [&](int k) {
    try {
      if (holds(compile(sources[static_cast<std::size_t>(k)]), "run_on_gpu")) ++good;
    } catch (const Error& error) {
      std::cerr << error.what() << "\nof:\n" + sources[static_cast<std::size_t>(k)];
    }
  });
  CHECK_EQ(good.load(), count);
  CHECK(count > 0);
}

SolveSpec spec_of(Method method, Preconditioner preconditioner, Study study = Study::none) {
  SolveSpec spec;
  spec.method = method;
  spec.preconditioner = preconditioner;
  spec.study = study;
  return spec;
}

TEST(probes_compile) {
  std::vector<std::string> sources = {pattern_source()};
  for (int way = 0; way < kProbeWays; ++way)
    sources.push_back(probe_source(static_cast<ProbeWay>(way)));
  check_compiled(sources, sources.size());
  const std::string plain = compile(reading_source());
  CHECK(holds(plain, "nothing") && holds(plain, "reading") && holds(plain, "tile_product"));
}

std::string slices_of(SliceKinds columns) {
  return "SlicesOf<" + std::to_string(columns | kPlainValues) + ">";
}

TEST(kernels_of_many_systems_compile) {
  std::vector<std::string> sources;
  for (const char* type : {"double", "float"})
    for (const Method method : {Method::prcg, Method::cg})
      for (const Preconditioner pc : {Preconditioner::jacobi, Preconditioner::none})
        sources.push_back(many_source(spec_of(method, pc), type));
  check_compiled(sources, 1);
}

TEST(kernels_with_multigrid_compile) {
  std::vector<std::string> sources;
  for (const char* type : {"double", "float"})
    sources.push_back(
        solver_source(spec_of(Method::cg, Preconditioner::amg), type, "Port", slices_of(kSingles)));
  check_compiled(sources, 1);
}

TEST(solver_kernels_compile) {
  std::vector<std::string> sources = {solver_source(spec_of(Method::prcg, Preconditioner::jacobi),
                                                    "double", "Port", slices_of(kSingles)),
                                      solver_source(spec_of(Method::pipecg, Preconditioner::fsai),
                                                    "float", "StreamingPort", "AnySlices")};
  using enum Preconditioner;
  using enum Method;
  for (const Method method : {prcg, pipecg, cg, minres, bicgstab})
    for (const std::string& format :
         {slices_of(kSingles), slices_of(kRuns), std::string("SlicesWithoutRuns"),
          std::string("AnySlices"), std::string("SlicesOnChip")})
      for (const char* port : {"Port", "StreamingPort"}) {
        if (format == "SlicesOnChip" && std::string(port) != "Port") continue;
        for (const char* type : {"double", "float"})
          for (const Preconditioner preconditioner : {none, jacobi, chebyshev, fsai})
            if (preconditioner == none || preconditioner == jacobi ||
                (method != bicgstab && (method != minres || preconditioner == fsai)))
              sources.push_back(solver_source(spec_of(method, preconditioner), type, port, format));
        for (const Study study : {Study::split, Study::no_compute, Study::no_comm})
          if (study != Study::no_compute || std::string(port) == "Port")
            sources.push_back(solver_source(spec_of(method, none, study), "double", port, format));
      }
  check_compiled(sources, 2);
}

TEST(kernels_of_mixed_precision_compile) {
  using enum Preconditioner;
  std::vector<std::string> sources;
  for (const Preconditioner pc : {jacobi, fsai})
    for (const char* port : {"StreamingPort", "Port"})
      for (const SliceKinds columns : {kRuns, kSingles})
        for (const Method method : {Method::prcg, Method::cg, Method::pipecg})
          sources.push_back(solver_source(spec_of(method, pc), "double", port,
                                          slices_of(columns | kSingleValues)));
  sources.push_back(solver_source(spec_of(Method::cg, jacobi), "double", "Port",
                                  slices_of(kSingles | kSingleValues), 4));
  check_compiled(sources, 1);
}

TEST(kernels_of_several_right_hand_sides_compile) {
  std::vector<std::string> sources;
  for (const int columns : {2, 4, 8})
    for (const Preconditioner pc : {Preconditioner::none, Preconditioner::jacobi})
      for (const char* type : {"double", "float"})
        sources.push_back(
            solver_source(spec_of(Method::cg, pc), type, "Port", "AnySlices", columns));
  check_compiled(sources, 1);
}

// Of a study, or none: those with the smallest tiles first.
std::vector<std::string> grid_sources(Study study, bool source, std::size_t bytes) {
  std::vector<std::string> sources;
  StencilKernel wanted;
  wanted.source = source;
  for (const Tile3dShape& shape : tile3d_shapes(bytes)) {
    wanted.tile3d = shape;
    sources.push_back(registers_3d_source(wanted, study, bytes));
  }
  for (wanted.dims = 2; wanted.dims <= 3; ++wanted.dims) {
    sources.push_back(wavefront_source(wanted, study, bytes));
    for (const int layers : time_tile_layers(wanted.dims)) {
      wanted.layers = layers;
      sources.push_back(time_tiles_source(wanted, study, bytes));
    }
  }
  return sources;
}

TEST(grid_kernels_compile) {
  StencilKernel two, three;
  two.source = true;
  three.dims = 3;
  three.tile3d = tile3d_shapes(4).front();
  std::vector<std::string> sources = {wavefront_source(three, Study::none, 8),
                                      registers_3d_source(three, Study::none, 4),
                                      time_tiles_source(two, Study::none, 4)};
  for (const std::size_t bytes : {8, 4})
    for (const Study study : {Study::none, Study::no_compute, Study::no_comm})
      for (const bool source : {false, true})
        for (std::string& text : grid_sources(study, source, bytes))
          if (!text.empty()) sources.push_back(std::move(text));
  check_compiled(sources, 4);
}

TEST(there_are_texts_for_the_kernels_that_are_built_and_for_no_others) {
  StencilKernel wanted;
  wanted.tile3d = {3, 5};
  wanted.layers = 3;
  CHECK(registers_3d_source(wanted, Study::none, 8).empty());
  CHECK(time_tiles_source(wanted, Study::none, 8).empty());
  CHECK(!wavefront_source(wanted, Study::none, 8).empty());
  CHECK(!wavefront_source(wanted, Study::no_comm, 8).empty());
  wanted.source = true;  // studies have no source term
  CHECK(wavefront_source(wanted, Study::no_comm, 8).empty());
}

TEST(kernels_for_vectors_compile) {
  for (const char* type : {"double", "float"}) {
    const std::string code = compile(vectors_source(type), false);
    for (const char* name :
         {"gather_entries", "scale_entries", "scatter_entries", "put_entries", "take_entries"})
      CHECK(holds(code, name));
  }
}

// What a first set-up waits for: two texts, compiled side by side.
TEST(kernels_that_lay_a_matrix_out_compile) {
  for (const char* type : {"double", "float"}) {
    std::string code;
    for (const std::string& source : layout_sources(type)) code += compile(source, true);
    code += compile(inverse_source(type), true);
#define CPUFREE_IS_THERE(K) CHECK(holds(code, #K));
    CPUFREE_LAYOUT_KERNELS(CPUFREE_IS_THERE)
  }
}

TEST(kernels_that_make_hierarchies_compile) {
  const std::string code = compile(hierarchy_source(), true);
  CPUFREE_MULTIGRID_KERNELS(CPUFREE_IS_THERE)
}

// What generations have alike is compiled by the others: here are those of copies that run by
// themselves, in a solver's kernel and in a probe.
TEST(kernels_compile_for_every_generation) {
  const std::string solver = solver_source(spec_of(Method::prcg, Preconditioner::jacobi), "double",
                                           "StreamingPort", "AnySlices");
  const std::vector<std::string> all = {"sm_80",  "sm_120", "sm_86", "sm_89",
                                        "sm_100", "sm_103", "sm_110"};
  const std::size_t count = count_of(all.size(), 2);
  std::atomic<std::size_t> good = 0;
  in_parallel(static_cast<int>(count), [&](int k) {
    const std::string& architecture = all[static_cast<std::size_t>(k)];
    if (holds(compile(solver, true, architecture), "run_on_gpu") &&
        holds(compile(probe_source(ProbeWay::bulk), true, architecture), "run_on_gpu"))
      ++good;
  });
  CHECK_EQ(good.load(), count);
}

TEST(portable_code_is_text_for_the_driver) {
  const std::string code = compile(vectors_source("double"), false, "compute_80");
  CHECK(code.find(".target sm_80") != std::string::npos && code.ends_with('\0'));
}

TEST(architecture_that_is_asked_for_must_run_on_the_gpu) {
  CHECK_EQ(gpuPortableArchitecture("sm_80", 9, 0), std::string("compute_80"));
  CHECK_EQ(gpuPortableArchitecture("sm_90", 9, 0), std::string("sm_90"));
  for (const char* asked : {"sm_75", "sm_100", "80", "sm_9x", "compute_80", "sm_"})
    CHECK_THROWS(InvalidInput, gpuPortableArchitecture(asked, 9, 0));
}

TEST(optimised_code_is_other_code) {
  const std::string source = vectors_source("double");
  CHECK(compile(source, false) != compile(source, true));
}

std::string message_of(const std::string& source, const std::string& architecture) {
  try {
    compiler().compile(source, architecture, kernel_headers(), gpu::Compiler::options());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(error_names_compiler_file_and_line) {
  const std::string said =
      message_of("#include \"cpufree/device/study.hpp\"\nno such word;\n", kArchitecture);
  CHECK(said.find("NVRTC " + compiler().version()) != std::string::npos);
  CHECK(said.find("kernel.cu(2): error") != std::string::npos);
  CHECK(said.find("report") != std::string::npos);
}

TEST(header_that_is_not_there_is_named) {
  const std::string said = message_of("#include \"cpufree/nowhere.hpp\"\n", kArchitecture);
  CHECK(said.find("cpufree/nowhere.hpp") != std::string::npos);
}

TEST(architecture_that_the_compiler_does_not_know_is_named_with_what_to_do) {
  const std::string said = message_of(vectors_source("double"), "sm_999");
  CHECK(said.find("sm_999") != std::string::npos);
  CHECK(said.find("pip install") != std::string::npos);
}

TEST(library_that_is_missing_is_named_with_what_to_do) {
  try {
    gpu::Compiler none("/nowhere/libnvrtc.so.13");
    CHECK(false);
  } catch (const Unsupported& error) {
    const std::string said = error.what();
    CHECK(said.find("/nowhere/libnvrtc.so.13") != std::string::npos);
    CHECK(said.find("pip install 'nvidia-cuda-nvrtc") != std::string::npos);
  }
}

}  // namespace
