// What the stand-ins for the collective library have alike: of one process, and of several.
#pragma once

#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/baselines/gpu.hpp"
#include "cpufree/baselines/nccl_library.hpp"

namespace cpufree::baselines {

inline std::size_t size_of(int type) { return type == kCollFloat ? 4 : 8; }

// Without its calls. `error`: what every error is called. The library "missing" is not there.
inline CollLibrary host_library(const std::string& path, const char* error) {
  if (path == "missing") throw Unsupported("NCCL was not found (missing)");
  CollLibrary library;
  library.version = 22809;
  library.path = "the host";
  library.error_text = [error](int) { return error; };
  return library;
}

}  // namespace cpufree::baselines
