// What texts of kernels are made of, for those that are compiled when they are first used.
#pragma once

#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/device/study.hpp"

namespace cpufree {

// Values of type T.
template <class T>
constexpr const char* type_name() {
  return sizeof(T) == sizeof(double) ? "double" : "float";
}

inline const char* name_of(Study study) {
  switch (study) {
    case Study::none:
      return "Study::none";
    case Study::split:
      return "Study::split";
    case Study::no_compute:
      return "Study::no_compute";
    case Study::no_comm:
      return "Study::no_comm";
    case Study::trace:
      return "Study::trace";
  }
  throw InvalidInput("unknown study");
}

// The begin of a call of `run_as` or `run_traced`, with `port` and what `args` has for it.
inline std::string call_of(Study study) {
  if (study == Study::trace) return "run_traced(port, args.traces";
  return "run_as<" + std::string(name_of(study)) + ">(port";
}

inline std::string include_line(const std::string& header) {
  return "#include \"cpufree/" + header + "\"\n";
}

// A kernel for GPUs, of `threads` threads at most that calls `body` with `port`, a class of
// gpu_p2p. `marks`: such as "CPUFREE_CALLS_STEPS ".
inline std::string port_kernel(const std::string& headers, int threads, const std::string& args,
                               const std::string& port, const std::string& body,
                               const std::string& marks = "") {
  const std::string header = port == "StreamingPort" ? "streaming_port.cuh" : "port.cuh";
  return include_line("engines/gpu_p2p/" + header) + headers +
         "using namespace cpufree;\n"
         "extern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(threads) + ", 1)\n" + marks +
         "run_on_gpu(const __grid_constant__ gpu_p2p::Shared given_shared,\n"
         "           const __grid_constant__ " +
         args +
         " given_args) {\n"
         "  const auto& shared = gpu_p2p::argument(given_shared, 0);\n"
         "  const auto& args = gpu_p2p::argument(given_args, sizeof shared);\n"
         "  extern __shared__ double2 fast[];\n"
         "  gpu_p2p::" +
         port + " port(shared, reinterpret_cast<std::byte*>(fast));\n  " + body + "\n}\n";
}

}  // namespace cpufree
