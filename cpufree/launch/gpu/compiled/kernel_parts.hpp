// Texts whose first line says of how many parts their kernel is made (solvers/parts.hpp).
#pragma once

#include <gpu_compiler.hpp>
#include <gpu_linker.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/parallel.hpp"
#include "cpufree/launch/gpu/compiled/kernel_headers.hpp"
#include "cpufree/launch/kernel_text.hpp"

namespace cpufree {

// The linker beside a compiler's library, or the loader's own; none where it is older than the
// compiler: kernels are then compiled in one piece.
inline std::unique_ptr<gpu::Linker> linker_for(const gpu::Compiler& compiler) {
  const std::size_t slash = compiler.path().rfind('/');
  const std::string folder = slash == std::string::npos ? "" : compiler.path().substr(0, slash + 1);
  try {
    auto linker = std::make_unique<gpu::Linker>(folder + gpuLinkerFile);
    if (linker->release() >= compiler.release()) return linker;
  } catch (const Unsupported&) {
  }
  return nullptr;
}

// The modules of a text's parts, which compile side by side.
inline std::vector<std::string> compile_parts(const gpu::Compiler& compiler,
                                              const std::string& source,
                                              const std::string& architecture,
                                              const std::vector<std::string>& options) {
  const KernelParts parts = parts_of(source);
  std::vector<std::string> modules(static_cast<std::size_t>(parts.count));
  in_parallel(parts.count, [&](int part) {
    std::vector<std::string> all = options;
    for (const std::string& option : gpu::Compiler::options_of_part(part, parts.threads))
      all.push_back(option);
    modules[static_cast<std::size_t>(part)] =
        compiler.compile(source, architecture, kernel_headers(), all);
  });
  return modules;
}

// The machine code of a text, from its parts if there is a linker.
inline std::string compile_text(const gpu::Compiler& compiler, const gpu::Linker* linker,
                                const std::string& source, const std::string& architecture,
                                const std::vector<std::string>& options) {
  if (linker != nullptr && parts_of(source).count > 1) {
    const auto modules = compile_parts(compiler, source, architecture, options);
    try {
      return linker->link(modules, architecture);
    } catch (const EngineError&) {  // one piece needs no linker
    }
  }
  return compiler.compile(source, architecture, kernel_headers(), options);
}

}  // namespace cpufree
