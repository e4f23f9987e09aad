// Functions of libraries that are loaded when they are wanted.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>

#include "cpufree/base/error.hpp"

namespace cpufree {

// A library under the name that users know. It stays loaded: its threads may run until the process
// ends.
class SharedLibrary {
 public:
  // `needed`: the version that has all functions; `advice`: where to get the library. Throws
  // Unsupported where it does not load.
  SharedLibrary(const char* path, const char* name, const char* needed, const char* advice)
      : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)), name_(name), needed_(needed) {
    if (handle_ == nullptr)
      throw Unsupported(std::string(name) + " was not found (" + dlerror() + "); " + advice);
  }

  // Sets `to` to its function `function`. Throws Unsupported where it has none.
  template <class F>
  void find(const char* function, std::function<F>& to) const {
    void* const found = dlsym(handle_, function);
    if (found == nullptr)
      throw Unsupported(std::string(name_) + " has no function " + function + ": " + needed_ +
                        " is needed");
    to = reinterpret_cast<F*>(found);
  }

 private:
  void* handle_;
  const char* name_;
  const char* needed_;
};

// The folder, with a slash at its end, of the program or shared object that holds this address.
inline std::string folder_of(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr)
    throw EngineError("the folder of cpufree's shared objects cannot be found");
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// The path of a part of cpufree that is a shared object of its own. It lies beside the one that
// holds this address, as in the Python package, or in the folder `cpufree` there, as of libcpufree.
inline std::string path_of_part(const void* address, const std::string& name) {
  const std::string folder = folder_of(address);
  const std::string beside = folder + name;
  return access(beside.c_str(), F_OK) == 0 ? beside : folder + "cpufree/" + name;
}

}  // namespace cpufree
