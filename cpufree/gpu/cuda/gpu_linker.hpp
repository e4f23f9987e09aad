// The vendor's linker of modules at run time (nvJitLink), as functions of a library that is loaded
// when it is first wanted: the one file that knows its names. Their types are declared here
// (nvJitLink 13.0 documentation, CUDA).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/shared_library.hpp"

inline constexpr const char* gpuLinkerName = "nvJitLink";
inline constexpr const char* gpuLinkerFile = "libnvJitLink.so.13";
inline constexpr const char* gpuLinkerAdvice =
    "install it with pip install 'nvidia-nvjitlink>=13,<14', or install the CUDA toolkit 13";

namespace cpufree::gpu {

class Linker {
 public:
  // `path`: of the library. Throws Unsupported where it does not load.
  explicit Linker(const std::string& path)
      : library_(path.c_str(), gpuLinkerName, "version 13.0", gpuLinkerAdvice) {
    library_.find("nvJitLinkVersion", version_);
    library_.find("nvJitLinkCreate", create_);
    library_.find("nvJitLinkDestroy", destroy_);
    library_.find("nvJitLinkAddData", add_);
    library_.find("nvJitLinkComplete", complete_);
    library_.find("nvJitLinkGetErrorLogSize", log_size_);
    library_.find("nvJitLinkGetErrorLog", log_);
    library_.find("nvJitLinkGetLinkedCubinSize", code_size_);
    library_.find("nvJitLinkGetLinkedCubin", code_);
    unsigned major = 0, minor = 0;
    if (version_(&major, &minor) != 0) throw Unsupported("nvJitLink does not tell its version");
    release_ = {static_cast<int>(major), static_cast<int>(minor)};
  }

  // Major and minor. It links what compilers of its own version, or an older one, have made.
  std::pair<int, int> release() const { return release_; }

  // Machine code of modules that call one another. Threads may call this at the same time. Throws
  // EngineError.
  std::string link(const std::vector<std::string>& modules, const std::string& architecture) const {
    constexpr int kMachineCode = 1;  // what the modules are
    const std::string target = "-arch=" + architecture;
    const char* options[] = {target.c_str()};
    Handle handle = nullptr;
    int status = create_(&handle, 1, options);
    for (std::size_t k = 0; status == 0 && k < modules.size(); ++k)
      status = add_(handle, kMachineCode, modules[k].data(), modules[k].size(), "part");
    if (status == 0) status = complete_(handle);
    const std::string result = handle == nullptr ? ""
                               : status == 0     ? text(handle, code_size_, code_)
                                                 : text(handle, log_size_, log_);
    if (handle != nullptr) destroy_(&handle);
    if (status != 0 || result.empty())
      throw EngineError("nvJitLink cannot link a kernel for " + architecture + " (" +
                        std::to_string(status) + "): " + result);
    return result;
  }

 private:
  using Handle = struct OfLinker*;
  using Size = std::function<int(Handle, std::size_t*)>;
  using Text = std::function<int(Handle, char*)>;

  static std::string text(Handle handle, const Size& size, const Text& get) {
    std::size_t bytes = 0;
    if (size(handle, &bytes) != 0) return "";
    std::string all(bytes, '\0');
    return get(handle, all.data()) == 0 ? all : "";
  }

  SharedLibrary library_;
  std::pair<int, int> release_;
  std::function<int(unsigned*, unsigned*)> version_;
  std::function<int(Handle*, std::uint32_t, const char**)> create_;
  std::function<int(Handle*)> destroy_;
  std::function<int(Handle, int, const void*, std::size_t, const char*)> add_;
  std::function<int(Handle)> complete_;
  Size log_size_, code_size_;
  Text log_, code_;
};

}  // namespace cpufree::gpu
