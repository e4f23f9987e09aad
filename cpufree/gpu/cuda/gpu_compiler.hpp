// The vendor's compiler of kernels at run time (NVRTC), as functions of a library that is loaded
// when the first kernel is wanted: the one file that knows its names. Their types are declared
// here, so that building needs no header of the compiler (NVRTC 13.0 documentation, CUDA).
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/shared_library.hpp"

inline constexpr const char* gpuCompilerName = "NVRTC";
inline constexpr const char* gpuCompilerFile = "libnvrtc.so.13";
inline constexpr int gpuCompilerOldest = 13;  // major version
inline constexpr const char* gpuCompilerAdvice =
    "install it with pip install 'nvidia-cuda-nvrtc>=13,<14', or install the CUDA toolkit 13";
// Where the toolkit puts it, besides the loader's own places.
inline constexpr const char* gpuCompilerPlace = "/usr/local/cuda/lib64/libnvrtc.so.13";

// The oldest compute capability that kernels are made for, times ten: 16-byte copies of a thread
// that run by themselves, and barriers in shared memory, came with 8.0 (PTX ISA 8.x).
inline constexpr int gpuOldest = 80;

// The name of an architecture of machine code, by compute capability.
inline std::string gpuArchitecture(int major, int minor) {
  return "sm_" + std::to_string(major) + std::to_string(minor);
}
// The architecture of code for a GPU where another one's is asked for ("sm_80"): portable code
// ("compute_80"), which the driver compiles for the GPU. Throws InvalidInput for what no such GPU
// runs.
inline std::string gpuPortableArchitecture(const std::string& asked, int major, int minor) {
  const std::string digits = asked.starts_with("sm_") ? asked.substr(3) : "";
  const bool number = (digits.size() == 2 || digits.size() == 3) &&
                      std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  const int wanted = number ? std::stoi(digits) : 0;
  const int own = 10 * major + minor;
  if (wanted < gpuOldest || wanted > own)
    throw cpufree::InvalidInput("CPUFREE_ARCH is '" + asked + "'; it takes sm_" +
                                std::to_string(gpuOldest) + " to " + gpuArchitecture(major, minor) +
                                ", which this GPU has; unset it");
  return wanted == own ? asked : "compute_" + digits;
}

namespace cpufree::gpu {

// Names and texts of headers.
using Headers = std::vector<std::pair<const char*, const char*>>;

class Compiler {
 public:
  // `path`: of the library. Throws Unsupported where it does not load, or is too old.
  explicit Compiler(const std::string& path)
      : path_(path), library_(path.c_str(), gpuCompilerName, "version 13.0", gpuCompilerAdvice) {
    library_.find("nvrtcVersion", version_);
    library_.find("nvrtcGetNumSupportedArchs", architecture_count_);
    library_.find("nvrtcGetSupportedArchs", architectures_);
    library_.find("nvrtcCreateProgram", create_);
    library_.find("nvrtcDestroyProgram", destroy_);
    library_.find("nvrtcCompileProgram", compile_);
    library_.find("nvrtcGetProgramLogSize", log_size_);
    library_.find("nvrtcGetProgramLog", log_);
    library_.find("nvrtcGetCUBINSize", code_size_);
    library_.find("nvrtcGetCUBIN", code_);
    library_.find("nvrtcGetPTXSize", portable_size_);
    library_.find("nvrtcGetPTX", portable_);
    library_.find("nvrtcGetErrorString", error_);
    check(version_(&major_, &minor_), "Version");
    if (major_ < gpuCompilerOldest)
      throw Unsupported(name() + " is too old: version " + std::to_string(gpuCompilerOldest) +
                        ".0 or newer is needed; " + gpuCompilerAdvice);
  }

  // "13.0"
  std::string version() const { return std::to_string(major_) + "." + std::to_string(minor_); }
  // With version and path, for messages.
  std::string name() const {
    return std::string(gpuCompilerName) + " " + version() + " (" + path_ + ")";
  }

  // What all kernels are compiled with, besides the architecture. All functions are device
  // functions where they do not say what they are; device_std.hpp has move and forward.
  static std::vector<std::string> options() {
    return {"-std=c++20", "-default-device", "-builtin-move-forward=false"};
  }

  // Machine code of `source`, by `options` and the architecture; of a portable one ("compute_80")
  // the text that drivers compile (PTX). Headers are found by name among
  // `headers`, and nowhere else. Threads may call this at the same time. Throws Unsupported where
  // the compiler does not know the architecture, EngineError with its messages for other errors.
  std::string compile(const std::string& source, const std::string& architecture,
                      const Headers& headers, const std::vector<std::string>& options) const {
    require_architecture(architecture);
    std::vector<const char*> names, texts;
    for (const auto& [name, text] : headers) {
      names.push_back(name);
      texts.push_back(text);
    }
    const std::string target = "--gpu-architecture=" + architecture;
    std::vector<const char*> all = {target.c_str()};
    for (const std::string& option : options) all.push_back(option.c_str());
    Program program = nullptr;
    check(create_(&program, source.c_str(), "kernel.cu", static_cast<int>(names.size()),
                  texts.data(), names.data()),
          "CreateProgram");
    const int status = compile_(program, static_cast<int>(all.size()), all.data());
    const bool portable = architecture.starts_with(kPortable);
    std::string result = status != 0 ? text(program, log_size_, log_)
                         : portable  ? text(program, portable_size_, portable_)
                                     : text(program, code_size_, code_);
    destroy_(&program);
    if (status != 0)
      throw EngineError(name() + " cannot compile a kernel for " + architecture + " (" +
                        error_(status) + "); please report this with what it says:\n" +
                        result.substr(0, kMostLog));
    return result;
  }

 private:
  using Program = struct OfCompiler*;
  using Size = std::function<int(Program, std::size_t*)>;
  using Text = std::function<int(Program, char*)>;
  static constexpr const char* kPortable = "compute_";
  static constexpr std::size_t kMostLog = 4000;  // characters of messages that are shown

  void check(int status, const char* what) const {
    if (status != 0) throw EngineError(std::string("nvrtc") + what + ": " + error_(status));
  }
  void require_architecture(const std::string& wanted) const {
    int count = 0;
    check(architecture_count_(&count), "GetNumSupportedArchs");
    std::vector<int> known(static_cast<std::size_t>(std::max(count, 1)));
    check(architectures_(known.data()), "GetSupportedArchs");
    const std::string number = wanted.substr(wanted.find('_') + 1);
    if (std::ranges::none_of(known, [&](int one) { return std::to_string(one) == number; }))
      throw Unsupported(name() + " does not know GPUs of the architecture " + wanted +
                        ": a newer one is needed; " + gpuCompilerAdvice);
  }
  std::string text(Program program, const Size& size, const Text& get) const {
    std::size_t bytes = 0;
    check(size(program, &bytes), "GetSize");
    std::string all(bytes, '\0');
    check(get(program, all.data()), "Get");
    return all;
  }

  std::string path_;
  SharedLibrary library_;
  int major_ = 0, minor_ = 0;
  std::function<int(int*, int*)> version_;
  std::function<int(int*)> architecture_count_, architectures_;
  std::function<int(Program*, const char*, const char*, int, const char* const*,
                    const char* const*)>
      create_;
  std::function<int(Program*)> destroy_;
  std::function<int(Program, int, const char* const*)> compile_;
  Size log_size_, code_size_, portable_size_;
  Text log_, code_, portable_;
  std::function<const char*(int)> error_;
};

}  // namespace cpufree::gpu
