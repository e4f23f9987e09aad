// Machine code of kernels by their texts: from disk, or compiled.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/code_cache.hpp"

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
  // compiler's own version excepted: it is not asked for here.
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
  std::string key(const std::string& source, const std::string& architecture,
                  const std::vector<std::string>& options) const {
    std::string all = "shipped " + version_;
    for (const std::string& option : options) all.append(" ").append(option);
    return digits_of(hash_of({source, architecture, all}));
  }

  CodeCache cache_;
  std::string version_;
};

// The code of a source: from disk, or compiled, and kept there. Throws what the compiler throws.
std::string code_of(const std::string& source, const std::string& architecture,
                    const CodeMaker& maker, const CodeCache& cache);

// How many sources are compiled right now, for who tells users what they wait for.
int codes_being_made();

// The code of each source, side by side on the cores of this process.
std::vector<std::string> codes_of(const std::vector<std::string>& sources,
                                  const std::string& architecture, const CodeMaker& maker,
                                  const CodeCache& cache);

// Codes by name that are being made, or have been. Who wants one that another thread makes waits
// for it. What could not be made is forgotten: who asks later has it tried again.
class CodesInTheMaking {
 public:
  using Code = std::shared_future<std::string>;

  // The codes of all names; `make(name)` is called, side by side, for those that no thread has
  // begun to make. Returns once these are there. A code that could not be made throws when it is
  // asked for.
  std::vector<Code> get(const std::vector<std::string>& names,
                        const std::function<std::string(const std::string&)>& make);
  // For who has no more use for one.
  void forget(const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::string, Code> codes_;
};

}  // namespace cpufree
