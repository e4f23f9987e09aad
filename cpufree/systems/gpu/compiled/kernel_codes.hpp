// Machine code of kernels by their texts: from disk, or compiled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/systems/gpu/compiled/code_cache.hpp"

namespace cpufree {

// A compiler, which several threads call at the same time.
struct CodeMaker {
  std::string version;  // all that its code depends on, besides source and architecture
  std::function<std::string(const std::string& source, const std::string& architecture)> compile;
};

// Kernels that come with the package: a folder of machine code that was made beforehand, so that no
// compiler is needed here. Nothing is written there.
class ShippedCodes {
 public:
  // `version`: all that the code depends on, besides source, architecture and options, the
  // compiler's own version excepted: nobody asks for that here.
  ShippedCodes(const std::string& folder, std::string version)
      : cache_(folder), version_(std::move(version)) {}

  std::optional<std::string> find(const std::string& source, const std::string& architecture,
                                  const std::vector<std::string>& options = {}) const {
    return cache_.find(key(source, architecture, options));
  }
  // For who makes the folder.
  void keep(const std::string& source, const std::string& architecture,
            const std::string& code) const {
    cache_.keep(key(source, architecture, {}), code);
  }

 private:
  std::uint64_t key(const std::string& source, const std::string& architecture,
                    const std::vector<std::string>& options) const {
    std::string all = "shipped " + version_;
    for (const std::string& option : options) all.append(" ").append(option);
    return hash_of({source, architecture, all});
  }

  CodeCache cache_;
  std::string version_;
};

// The code of each source. Those that are not on disk are compiled, side by side on the cores of
// this process, and kept there. Throws what the compiler throws.
std::vector<std::string> codes_of(const std::vector<std::string>& sources,
                                  const std::string& architecture, const CodeMaker& maker,
                                  const CodeCache& cache);

}  // namespace cpufree
