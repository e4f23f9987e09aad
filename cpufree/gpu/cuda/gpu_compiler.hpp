// The vendor's compiler of kernels at run time (NVRTC), as functions of a library that is loaded
// when the first kernel is wanted: the one file that knows its names.
#pragma once

#include <nvrtc.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/shared_library.hpp"

inline constexpr const char* gpuCompilerName = "NVRTC";
inline constexpr const char* gpuCompilerFile = "libnvrtc.so.13";
inline constexpr const char* gpuCompilerAdvice =
    "install it with pip install nvidia-cuda-nvrtc, or install the CUDA toolkit";
// Where wheels and the toolkit put it, besides the loader's own places; the first two relative to
// the folder that holds the package.
inline constexpr const char* gpuCompilerPlaces[] = {"nvidia/cu13/lib/", "nvidia/cuda_nvrtc/lib/",
                                                    "/usr/local/cuda/lib64/"};

// The name of an architecture of machine code, by compute capability.
inline std::string gpuArchitecture(int major, int minor) {
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

namespace cpufree::gpu {

class Compiler {
 public:
  // `path`: of the library. Throws Unsupported where it does not load.
  explicit Compiler(const std::string& path)
      : library_(path.c_str(), gpuCompilerName, "13.0 or newer", gpuCompilerAdvice) {
    library_.find("nvrtcVersion", version_);
    library_.find("nvrtcCreateProgram", create_);
    library_.find("nvrtcDestroyProgram", destroy_);
    library_.find("nvrtcCompileProgram", compile_);
    library_.find("nvrtcGetProgramLogSize", log_size_);
    library_.find("nvrtcGetProgramLog", log_);
    library_.find("nvrtcGetCUBINSize", code_size_);
    library_.find("nvrtcGetCUBIN", code_);
    library_.find("nvrtcGetErrorString", error_);
  }

  std::string version() const {
    int major = 0, minor = 0;
    check(version_(&major, &minor), "Version");
    return std::to_string(major) + "." + std::to_string(minor);
  }

  // Machine code of `source`. Headers are found by name among `headers` (name, text), and nowhere
  // else. Threads may call this at the same time. Throws EngineError with the compiler's messages.
  std::string compile(const std::string& source, const std::string& architecture,
                      const std::vector<std::pair<const char*, const char*>>& headers) const {
    std::vector<const char*> names, texts;
    for (const auto& [name, text] : headers) {
      names.push_back(name);
      texts.push_back(text);
    }
    nvrtcProgram program = nullptr;
    check(create_(&program, source.c_str(), "kernel.cu", static_cast<int>(names.size()),
                  texts.data(), names.data()),
          "CreateProgram");
    const std::string target = "--gpu-architecture=" + architecture;
    // All functions are device functions where they do not say what they are.
    const char* const options[] = {target.c_str(), "-std=c++20", "-default-device"};
    const nvrtcResult status = compile_(program, 3, options);
    std::string result =
        status == NVRTC_SUCCESS ? text(program, code_size_, code_) : text(program, log_size_, log_);
    destroy_(&program);
    if (status != NVRTC_SUCCESS)
      throw EngineError(std::string(gpuCompilerName) + " " + version() +
                        " cannot compile a kernel for " + architecture + " (" + error_(status) +
                        "); please report this: " + result.substr(0, 2000));
    return result;
  }

 private:
  using Size = std::function<nvrtcResult(nvrtcProgram, std::size_t*)>;
  using Text = std::function<nvrtcResult(nvrtcProgram, char*)>;

  void check(nvrtcResult status, const char* what) const {
    if (status != NVRTC_SUCCESS)
      throw EngineError(std::string("nvrtc") + what + ": " + error_(status));
  }
  std::string text(nvrtcProgram program, const Size& size, const Text& get) const {
    std::size_t bytes = 0;
    check(size(program, &bytes), "the size of its result");
    std::string all(bytes, '\0');
    check(get(program, all.data()), "its result");
    return all;
  }

  SharedLibrary library_;
  std::function<decltype(nvrtcVersion)> version_;
  std::function<decltype(nvrtcCreateProgram)> create_;
  std::function<decltype(nvrtcDestroyProgram)> destroy_;
  std::function<decltype(nvrtcCompileProgram)> compile_;
  Size log_size_, code_size_;
  Text log_, code_;
  std::function<decltype(nvrtcGetErrorString)> error_;
};

}  // namespace cpufree::gpu
