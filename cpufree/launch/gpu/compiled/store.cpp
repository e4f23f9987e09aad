#include "cpufree/launch/gpu/compiled/store.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "cpufree/base/env.hpp"
#include "cpufree/base/waited_time.hpp"
#include "cpufree/base/work_ahead.hpp"
#include "cpufree/gpu/compiler.hpp"
#include "cpufree/launch/gpu/compiled/kernel_codes.hpp"
#include "cpufree/launch/gpu/compiled/kernel_headers.hpp"
#include "cpufree/launch/gpu/gpus.hpp"

namespace cpufree {

namespace {

// A kernel takes some seconds; what takes longer at the end of a process is left alone.
constexpr std::chrono::seconds kLongest{60};

// Where the compiler is, and machine code.
struct Places {
  std::string compiler;
  CodeCache cache{""};
  ShippedCodes shipped{"", ""};
};

class Store {
 public:
  // Who compiles meanwhile goes on with the places that were.
  void set(const std::string& library, const std::vector<std::string>& caches,
           const std::string& shipped) {
    auto places = std::make_shared<const Places>(
        Places{library, CodeCache(caches), ShippedCodes(shipped, texts())});
    const std::lock_guard lock(mutex_);
    places_ = std::move(places);
    shipped_.clear();
  }

  // Compiles for who ships kernels.
  void ship(const std::vector<std::string>& sources, const std::string& architecture,
            const std::string& folder) {
    const ShippedCodes shipped(folder, texts());
    const std::vector<std::string> codes =
        codes_of(sources, architecture, maker({}), CodeCache(""));
    for (std::size_t k = 0; k < codes.size(); ++k) shipped.keep(sources[k], architecture, codes[k]);
  }

  // Files are looked at once for each text.
  bool are_shipped(const std::vector<std::string>& sources, std::span<const int> devices) {
    const std::string architecture = architecture_of(devices);
    const auto here = places();
    return std::ranges::all_of(sources, [&](const std::string& source) {
      const std::string name = architecture + source;
      {
        const std::lock_guard lock(mutex_);
        if (const auto known = shipped_.find(name); known != shipped_.end()) return known->second;
      }
      const bool found = here->shipped.find(source, architecture).has_value();
      const std::lock_guard lock(mutex_);
      return shipped_[name] = found;
    });
  }

  std::string compiler_name() { return compiler().name(); }

  // Who needs what another thread compiles waits for it, and for nothing else.
  std::vector<gpuLibrary_t> get(const std::vector<std::string>& sources,
                                std::span<const int> devices,
                                const std::vector<std::string>& more) {
    const std::string architecture = architecture_of(devices);
    const std::vector<std::string> wanted = missing(sources, architecture);
    if (wanted.empty()) return found(sources, architecture);
    const auto codes = made(wanted, architecture, more);  // before the lock, which others want
    const std::lock_guard alone(loading_);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (missing({wanted[k]}, architecture).empty()) continue;
      load(architecture + wanted[k], codes[k].get());
      making_.forget(architecture + wanted[k]);
    }
    return found(sources, architecture);
  }

  // Begins to compile what is not loaded. Loads nothing: a kernel may spin.
  void compile_ahead(const std::vector<std::string>& sources, std::span<const int> devices) {
    std::string architecture = architecture_of(devices);
    std::vector<std::string> wanted = missing(sources, architecture);
    if (wanted.empty()) return;
    ahead_.begin([this, wanted = std::move(wanted), architecture = std::move(architecture)] {
      try {
        codes_of_sources(wanted, architecture, {}, [this] { return ahead_.ending(); });
      } catch (...) {  // who asks for them is told
      }
    });
  }
  void finish_compiling() { ahead_.finish(kLongest); }
  double waited() const { return waited_.seconds(); }

  // Asking the driver takes long where it is asked before every launch.
  std::string architecture_of(std::span<const int> devices) {
    const std::string first = architecture(devices[0]);
    for (const int device : devices)
      if (const std::string other = architecture(device); other != first)
        throw Unsupported("GPUs " + std::to_string(devices[0]) + " and " + std::to_string(device) +
                          " are of different architectures (" + first + ", " + other +
                          "), and kernels are compiled here for one: choose GPUs of one kind");
    return first;
  }

 private:
  // Waits until they are.
  std::vector<CodesInTheMaking::Code> made(const std::vector<std::string>& sources,
                                           const std::string& architecture,
                                           const std::vector<std::string>& more) {
    const WaitedTime::Wait wait(waited_);
    auto codes = codes_of_sources(sources, architecture, more, [] { return false; });
    for (const auto& code : codes) code.wait();
    return codes;
  }

  std::vector<CodesInTheMaking::Code> codes_of_sources(const std::vector<std::string>& sources,
                                                       const std::string& architecture,
                                                       const std::vector<std::string>& more,
                                                       const std::function<bool()>& ending) {
    std::vector<std::string> names;
    for (const std::string& source : sources) names.push_back(architecture + source);
    const auto here = places();
    return making_.get(names, [&](const std::string& name) {
      if (ending()) throw EngineError("the process ends before kernels have been compiled");
      const std::string source = name.substr(architecture.size());
      if (missing({source}, architecture).empty()) return std::string();  // loaded meanwhile
      if (auto code = here->shipped.find(source, architecture, more)) return *std::move(code);
      return code_of(source, architecture, maker(more), here->cache);
    });
  }

  std::shared_ptr<const Places> places() {
    const std::lock_guard lock(mutex_);
    return places_;
  }

  void load(const std::string& name, const std::string& code) {
    const gpuLibrary_t loaded = gpu::load_code(code);
    const std::lock_guard lock(mutex_);
    loaded_[name] = loaded;
  }

  // What all code depends on, whichever thread compiles it: options and headers.
  static const std::string& texts() {
    static const std::string all = [] {
      std::string version;
      for (const std::string& option : gpu::Compiler::options()) version.append(" ").append(option);
      for (const auto& [name, text] : kernel_headers())
        version.append(" ").append(std::to_string(hash_of({name, text})));
      return version;
    }();
    return all;
  }

  std::string architecture(int device) {
    const std::lock_guard lock(mutex_);
    std::string& known = architectures_[device];
    if (known.empty()) {
      const auto properties = gpu::properties_of(device);
      const std::string asked = gpu_architecture_asked_for();
      known =
          asked.empty() ? gpuArchitecture(properties) : gpuPortableArchitecture(asked, properties);
    }
    return known;
  }

  // Those that are not loaded, each once.
  std::vector<std::string> missing(const std::vector<std::string>& sources,
                                   const std::string& architecture) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> wanted;
    for (const std::string& source : sources)
      if (!loaded_.contains(architecture + source) && !std::ranges::count(wanted, source))
        wanted.push_back(source);
    return wanted;
  }
  std::vector<gpuLibrary_t> found(const std::vector<std::string>& sources,
                                  const std::string& architecture) {
    const std::lock_guard lock(mutex_);
    std::vector<gpuLibrary_t> all;
    for (const std::string& source : sources) all.push_back(loaded_.at(architecture + source));
    return all;
  }

  // The library that was named, or the one that the loader or the toolkit has.
  const gpu::Compiler& compiler() {
    const std::lock_guard alone(finding_);
    if (compiler_) return *compiler_;
    if (const std::string path = places()->compiler; !path.empty()) {
      compiler_ = std::make_unique<gpu::Compiler>(path);
      return *compiler_;
    }
    try {
      compiler_ = std::make_unique<gpu::Compiler>(gpuCompilerFile);
    } catch (const Unsupported& not_found) {
      try {
        compiler_ = std::make_unique<gpu::Compiler>(gpuCompilerPlace);
      } catch (const Unsupported&) {
        throw Unsupported(std::string("GPU kernels are compiled when they are first used: ") +
                          not_found.what());
      }
    }
    return *compiler_;
  }

  CodeMaker maker(const std::vector<std::string>& more) {
    const gpu::Compiler& found = compiler();
    std::vector<std::string> options = found.options();
    options.insert(options.end(), more.begin(), more.end());
    CodeMaker maker;
    maker.version.append(gpuCompilerName).append(" ").append(found.version()).append(texts());
    for (const std::string& option : more) maker.version.append(" ").append(option);
    maker.compile = [&found, options](const std::string& source, const std::string& architecture) {
      return found.compile(source, architecture, kernel_headers(), options);
    };
    return maker;
  }

  std::mutex finding_;  // the compiler
  std::unique_ptr<gpu::Compiler> compiler_;
  CodesInTheMaking making_;
  std::mutex loading_;
  std::mutex mutex_;  // of what follows; taken for moments, also while others are held
  std::shared_ptr<const Places> places_ = std::make_shared<const Places>();
  std::map<std::string, gpuLibrary_t> loaded_;
  std::map<int, std::string> architectures_;
  std::map<std::string, bool> shipped_;  // texts: whether their code came with the package
  WaitedTime waited_;
  WorkAhead ahead_;
};

// Never freed: a thread that compiles may outlast kLongest.
Store& store() {
  static Store& all = *new Store;
  return all;
}

}  // namespace

std::vector<gpuLibrary_t> compiled_code(const std::vector<std::string>& sources,
                                        std::span<const int> devices,
                                        const std::vector<std::string>& options) {
  return store().get(sources, devices, options);
}

const void* only_kernel(gpuLibrary_t code) {
  return gpu::find_kernel(code, "a compiled kernel", "run_on_gpu");
}

void set_kernel_compiler(const std::string& library, const std::vector<std::string>& caches,
                         const std::string& shipped) {
  store().set(library, caches, shipped);
}

void compile_ahead(const std::vector<std::string>& sources, std::span<const int> devices) {
  try {
    store().compile_ahead(sources, devices);
  } catch (...) {  // GPUs of several kinds: who asks for them is told
  }
}

void finish_compiling() { store().finish_compiling(); }

int kernels_compiling() { return codes_being_made(); }
double kernel_seconds() { return store().waited(); }

bool are_shipped(const std::vector<std::string>& sources, std::span<const int> devices) {
  return store().are_shipped(sources, devices);
}

void ship_code(const std::vector<std::string>& sources, const std::string& architecture,
               const std::string& folder) {
  store().ship(sources, architecture, folder);
}

std::string compiler_found() { return store().compiler_name(); }

}  // namespace cpufree
