#include "cpufree/systems/gpu/kernels/kernel_source.hpp"

namespace cpufree {

namespace {

const char* algorithm_of(Method method) {
  switch (method) {
    case Method::cg:
      return "ConjugateGradient";
    case Method::prcg:
      return "PredictRecompute";
    case Method::pipecg:
      return "PipelinedCg";
  }
  throw InvalidInput("unknown method");
}

const char* class_of(Preconditioner preconditioner) {
  switch (preconditioner) {
    case Preconditioner::none:
      return "Identity";
    case Preconditioner::jacobi:
      return "Jacobi";
    case Preconditioner::chebyshev:
      return "Chebyshev";
  }
  throw InvalidInput("unknown preconditioner");
}

const char* name_of(Study study) {
  switch (study) {
    case Study::none:
      return "none";
    case Study::split:
      return "split";
    case Study::no_compute:
      return "no_compute";
    case Study::no_comm:
      return "no_comm";
  }
  throw InvalidInput("unknown study");
}

}  // namespace

std::string source_of(const SolveSpec& spec, const std::string& type, const char* port,
                      const char* format) {
  const std::string method = algorithm_of(spec.method);
  const std::string pc = std::string(class_of(spec.preconditioner)) + "<" + type + ">";
  const std::string body =
      spec.study == Study::none
          ? "solve_kernel<" + method + ", " + pc + ", " + format + ">(port, args);"
          : "study_kernel<Study::" + std::string(name_of(spec.study)) + ", " + method + ", " + pc +
                ", " + format + ">(port, args);";
  return "#include \"cpufree/systems/gpu/kernels/kernel.cuh\"\n"
         "using namespace cpufree;\n"
         "extern \"C\" __global__ void __launch_bounds__(kGpuThreads, 1)\n"
         "solve_on_gpu(const __grid_constant__ gpu_p2p::Shared shared,\n"
         "             const __grid_constant__ SolveArgs<WarpSlices<" +
         type +
         ">> args) {\n"
         "  extern __shared__ double2 fast[];\n"
         "  gpu_p2p::" +
         port +
         " port(shared, reinterpret_cast<std::byte*>(fast));\n"
         "  " +
         body + "\n}\n";
}

}  // namespace cpufree
