// What functions of modules do where AMD's GPUs are a stand-in on the host.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "gpu_names.hpp"

namespace host_hip {

// What text of a kernel the compiler has been given, behind these words and the architecture.
inline const std::string kMagic = "code of the stand-in for ";

// A kernel that runs on threads of its own, as host_gpu's; or what is done when it is launched.
struct Function {
  const void* kernel = nullptr;
  gpuError_t (*launch)(void** arguments, gpuStream_t stream) = nullptr;
};
// The kernel `name` of a text; nothing where the stand-in has none like it (kernels.cpp).
std::optional<Function> find_function(const std::string& text, const std::string& name);

}  // namespace host_hip
