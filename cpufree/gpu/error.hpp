// What the GPU's runtime says went wrong, as exceptions.
#pragma once

#include <gpu_names.hpp>

#include <string>

#include "cpufree/base/error.hpp"

namespace cpufree::gpu {

[[noreturn]] inline void fail(gpuError_t status, const std::string& what) {
  static_cast<void>(gpuGetLastError());  // the error is told here, and not again elsewhere
  std::string message = what + ": " + gpuGetErrorString(status);
  if (gpuIsSticky(status))
    message += std::string("; ") + gpuRuntimeName +
               " cannot go on in this process after that: restart it, and please report this";
  throw EngineError(message);
}

// Throws EngineError that says what failed, and what the runtime says of it.
inline void check(gpuError_t status, const char* what) {
  if (status != gpuSuccess) fail(status, what);
}

// The same for a function of the runtime, `name` without the vendor's prefix; `of`: more of what
// failed, such as " of a vector".
inline void check_call(gpuError_t status, const char* name, const char* of = "") {
  if (status != gpuSuccess) fail(status, std::string(gpuPrefix) + name + of);
}

// After a kernel was launched by its name.
inline void check_launch(const char* what) { check(gpuGetLastError(), what); }

}  // namespace cpufree::gpu
