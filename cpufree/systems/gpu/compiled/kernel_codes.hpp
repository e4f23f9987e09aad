// Machine code of kernels by their texts: from disk, or compiled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cpufree/systems/gpu/compiled/code_cache.hpp"

namespace cpufree {

// A compiler, which several threads call at the same time.
struct CodeMaker {
  std::string version;  // all that its code depends on, besides source and architecture
  std::function<std::string(const std::string& source, const std::string& architecture)> compile;
};

// The code of each source. Those that are not on disk are compiled, side by side on the cores of
// this process, and kept there. Throws what the compiler throws.
std::vector<std::string> codes_of(const std::vector<std::string>& sources,
                                  const std::string& architecture, const CodeMaker& maker,
                                  const CodeCache& cache);

}  // namespace cpufree
