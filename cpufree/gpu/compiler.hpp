// The vendor's compiler of kernels at run time, as functions of a library that is loaded when the
// first kernel is wanted. Their types are declared here, so that building needs no header of the
// compiler; gpu_compiler.hpp of the vendor has their names.
#pragma once

#include <algorithm>
#include <functional>
#include <gpu_compiler.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/shared_library.hpp"

namespace cpufree::gpu {

// Names and texts of headers.
using Headers = std::vector<std::pair<const char*, const char*>>;

class Compiler {
 public:
  // `path`: of the library. Throws Unsupported where it does not load, or is too old.
  explicit Compiler(const std::string& path)
      : path_(path), library_(path.c_str(), gpuCompilerName, "a newer version", gpuCompilerAdvice) {
    const std::string code = gpuCompilerCode;
    find("Version", version_);
    find("CreateProgram", create_);
    find("DestroyProgram", destroy_);
    find("CompileProgram", compile_);
    find("GetProgramLogSize", log_size_);
    find("GetProgramLog", log_);
    find("Get" + code + "Size", code_size_);
    find("Get" + code, code_);
    find("GetErrorString", error_);
    if constexpr (gpuCompilerLists) {
      find("GetNumSupportedArchs", architecture_count_);
      find("GetSupportedArchs", architectures_);
    }
    if constexpr (gpuCompilerPortable != nullptr) {
      const std::string portable = gpuCompilerPortable;
      find("Get" + portable + "Size", portable_size_);
      find("Get" + portable, portable_);
    }
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

  static std::vector<std::string> options() { return gpuCompilerOptions(); }

  // Machine code of `source`, by `options` and the architecture; of a portable one ("compute_80")
  // the text that drivers compile (PTX). Headers are found by name among
  // `headers`, and nowhere else. Threads may call this at the same time. Throws Unsupported where
  // the compiler does not know the architecture, EngineError with its messages for other errors.
  std::string compile(const std::string& source, const std::string& architecture,
                      const Headers& headers, const std::vector<std::string>& options) const {
    if constexpr (gpuCompilerLists) require_architecture(architecture);
    const std::string whole = gpuCompilerText(source);
    std::vector<const char*> names, texts;
    for (const auto& [name, text] : headers) {
      names.push_back(name);
      texts.push_back(text);
    }
    const std::string target = gpuCompilerTarget + architecture;
    std::vector<const char*> all = {target.c_str()};
    for (const std::string& option : options) all.push_back(option.c_str());
    Program program = nullptr;
    check(create_(&program, whole.c_str(), "kernel.cu", static_cast<int>(names.size()),
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

  template <class F>
  void find(const std::string& name, std::function<F>& to) const {
    library_.find((gpuCompilerPrefix + name).c_str(), to);
  }
  void check(int status, const char* what) const {
    if (status != 0)
      throw EngineError(std::string(gpuCompilerPrefix) + what + ": " + error_(status));
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
