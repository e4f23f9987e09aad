// Kernels that are compiled on this machine when a solve first wants them, from the headers that
// this library carries (kernel_headers.hpp), and kept on disk.
#include <unistd.h>

#include <gpu_compiler.hpp>
#include <map>
#include <mutex>
#include <vector>

#include "cpufree/base/parallel.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/systems/gpu/kernels/code_cache.hpp"
#include "cpufree/systems/gpu/kernels/kernel_headers.hpp"
#include "cpufree/systems/gpu/kernels/kernel_source.hpp"
#include "cpufree/systems/gpu/kernels/table.hpp"

namespace cpufree {

namespace {

const gpu::Compiler& compiler() {
  static const gpu::Compiler found = [] {
    const std::string package = folder_of(reinterpret_cast<const void*>(&hash_of));
    for (const std::string place : gpuCompilerPlaces) {
      const std::string path = (place[0] == '/' ? "" : package + "../") + place + gpuCompilerFile;
      if (access(path.c_str(), R_OK) == 0) return gpu::Compiler(path);
    }
    return gpu::Compiler(gpuCompilerFile);  // by the loader's places, or its words on why not
  }();
  return found;
}

std::string architecture_of(int device) {
  const auto properties = gpu::properties_of(device);
  return gpuArchitecture(properties.major, properties.minor);
}

// All kernels of this process by their texts, loaded to its end.
class Loaded {
 public:
  // The kernels of these texts. Those that are nowhere yet are compiled, side by side.
  std::vector<const void*> get(const std::vector<std::string>& sources, int device,
                               const CodeCache& cache) {
    const std::lock_guard lock(mutex_);
    const std::string architecture = architecture_of(device);
    std::vector<std::string> missing;
    for (const std::string& source : sources)
      if (!kernels_.contains(architecture + source)) missing.push_back(source);
    std::vector<std::string> code(missing.size());
    in_parallel(static_cast<int>(missing.size()), [&](int k) {
      code[static_cast<std::size_t>(k)] =
          code_of(missing[static_cast<std::size_t>(k)], architecture, cache);
    });
    for (std::size_t k = 0; k < missing.size(); ++k)
      kernels_[architecture + missing[k]] = gpu::load_kernel(code[k]);
    std::vector<const void*> found;
    for (const std::string& source : sources) found.push_back(kernels_[architecture + source]);
    return found;
  }

 private:
  static std::string code_of(const std::string& source, const std::string& architecture,
                             const CodeCache& cache) {
    std::uint64_t key = hash_of(source, hash_of(architecture, hash_of(compiler().version())));
    for (const auto& [name, text] : kernel_headers()) key = hash_of(text, hash_of(name, key));
    if (auto code = cache.find(key)) return *std::move(code);
    std::string code = compiler().compile(source, architecture, kernel_headers());
    cache.keep(key, code);
    return code;
  }

  std::mutex mutex_;
  std::map<std::string, const void*> kernels_;
};

}  // namespace

template <class T>
GpuKernels kernels_for(const SolveSpec& spec, const KernelsWanted& wanted) {
  static Loaded loaded;
  const std::string type = sizeof(T) == sizeof(double) ? "double" : "float";
  const bool any_code =
      wanted.runs || spec.study != Study::none || spec.preconditioner == Preconditioner::chebyshev;
  const char* const format = any_code ? "AnySlices" : "SlicesWithoutRuns";
  const bool computes = spec.study != Study::no_compute;  // what does not compute does not stream
  std::vector<std::string> sources = {
      source_of(spec, type, "Port", format),
      source_of(spec, type, computes ? "StreamingPort" : "Port", format)};
  if (wanted.on_chip)
    sources.push_back(source_of(spec, type, "Port", computes ? "SlicesOnChip" : "AnySlices"));
  const auto found = loaded.get(sources, wanted.device, CodeCache(wanted.cache));
  return for_any_code({found[0], found[1]}, wanted.on_chip ? found[2] : nullptr);
}

template GpuKernels kernels_for<float>(const SolveSpec&, const KernelsWanted&);
template GpuKernels kernels_for<double>(const SolveSpec&, const KernelsWanted&);

}  // namespace cpufree
