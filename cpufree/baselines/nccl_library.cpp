#include "cpufree/baselines/nccl_library.hpp"

#include <dlfcn.h>

#include "cpufree/base/error.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>
// The numbers of nccl_library.hpp.
static_assert(int{ncclFloat32} == cpufree::baselines::kCollFloat);
static_assert(int{ncclFloat64} == cpufree::baselines::kCollDouble);
static_assert(ncclSum == cpufree::baselines::kCollSum && ncclSuccess == 0);
#endif

namespace cpufree::baselines {

namespace {

// The function `name` as one that takes `Arguments`.
template <class F>
void find(void* library, const char* name, std::function<F>& to) {
  void* const found = dlsym(library, name);
  if (found == nullptr)
    throw Unsupported(std::string("the NCCL library has no function ") + name +
                      ": version 2.10 or newer is needed");
  to = reinterpret_cast<F*>(found);
}

}  // namespace

CollLibrary load_collectives(const std::string& path) {
  const char* const name = path.empty() ? "libnccl.so.2" : path.c_str();
  // Stays loaded: its threads may run until the process ends.
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Unsupported("NCCL was not found (" + std::string(dlerror()) +
                      "); pip install nvidia-nccl-cu13, or give the option nccl_library, the path "
                      "of libnccl.so.2");
  CollLibrary all;
  all.path = name;
  find(library, "ncclCommInitAll", all.init_all);
  find(library, "ncclCommDestroy", all.destroy);
  find(library, "ncclCommAbort", all.abort);
  find(library, "ncclGroupStart", all.group_start);
  find(library, "ncclGroupEnd", all.group_end);
  find(library, "ncclAllReduce", all.all_reduce);
  find(library, "ncclSend", all.send);
  find(library, "ncclRecv", all.receive);
  find(library, "ncclGetErrorString", all.error_text);
  std::function<int(int*)> version;
  find(library, "ncclGetVersion", version);
  version(&all.version);
  return all;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace cpufree::baselines
