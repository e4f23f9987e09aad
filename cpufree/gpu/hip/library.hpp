// Functions of HIP's runtime, of a library that is loaded when the first one is called: a machine
// without ROCm has none. And kernels of machine code, which HIP loads for one device at a time.
#pragma once

#include <dlfcn.h>

// The header's own switch for AMD's GPUs.
#if !defined(__HIP_PLATFORM_AMD__)
#define __HIP_PLATFORM_AMD__
#endif
#if !defined(__HIP_PLATFORM_HCC__)  // of ROCm 5
#define __HIP_PLATFORM_HCC__
#endif
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace cpufree::gpu_hip {

inline void* find(const char* function) {
  static void* const library = [] {
    for (const char* name : {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                             "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"})
      if (void* const found = dlopen(name, RTLD_NOW | RTLD_LOCAL); found != nullptr) return found;
    return static_cast<void*>(nullptr);
  }();
  return library == nullptr ? nullptr : dlsym(library, function);
}

// Calls a function of type F. Where there is no library, there are no GPUs of this vendor; a
// function that it lacks is one that it does not support.
template <class F, class... A>
hipError_t call(void* found, A... arguments) {
  if (found != nullptr) return reinterpret_cast<F*>(found)(arguments...);
  return find("hipGetDeviceCount") == nullptr ? hipErrorInsufficientDriver : hipErrorNotSupported;
}

// CPUFREE_HIP_CALL(hipFree, (void*), p): its name may be a macro of the header, and it must have
// this type there. CPUFREE_HIP_LATER: of one that old headers lack.
#define CPUFREE_HIP_NAME(function) #function
template <class F>
struct Pointed;
template <class F>
struct Pointed<F*> {
  using Type = F;
};
#define CPUFREE_HIP_FOUND(name)                              \
  [] {                                                       \
    static void* const found = cpufree::gpu_hip::find(name); \
    return found;                                            \
  }()
#define CPUFREE_HIP_OF(function, parameters, name, ...)                   \
  cpufree::gpu_hip::call<typename cpufree::gpu_hip::Pointed<              \
      decltype(static_cast<hipError_t(*) parameters>(&function))>::Type>( \
      CPUFREE_HIP_FOUND(name) __VA_OPT__(, ) __VA_ARGS__)
#define CPUFREE_HIP_TEXT(function) CPUFREE_HIP_NAME(function)
#define CPUFREE_HIP_CALL(function, parameters, ...) \
  CPUFREE_HIP_OF(function, parameters, CPUFREE_HIP_TEXT(function) __VA_OPT__(, ) __VA_ARGS__)
#define CPUFREE_HIP_LATER(function, parameters, ...)                                        \
  cpufree::gpu_hip::call<hipError_t parameters>(CPUFREE_HIP_FOUND(#function) __VA_OPT__(, ) \
                                                    __VA_ARGS__)

inline hipError_t current(int* device) { return CPUFREE_HIP_CALL(hipGetDevice, (int*), device); }

class Library;

// A kernel on all devices. Its address is what the program knows it by.
struct Kernel {
  Library* library = nullptr;
  std::string name;
  std::map<int, hipFunction_t> functions;  // by devices
};

// Machine code, to the end of the process.
class Library {
 public:
  explicit Library(std::string code) : code_(std::move(code)) {}

  // Loads the code on the device that is current, where it is not.
  hipError_t load() {
    int device = 0;
    if (const hipError_t status = current(&device); status != hipSuccess) return status;
    const std::lock_guard lock(mutex_);
    hipModule_t& module = modules_[device];
    if (module != nullptr) return hipSuccess;
    return CPUFREE_HIP_CALL(hipModuleLoadData, (hipModule_t*, const void*), &module, code_.data());
  }
  hipError_t find(const void** kernel, const char* name) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Kernel>& known = kernels_[name];
    if (known == nullptr) known = std::make_unique<Kernel>(Kernel{this, name, {}});
    *kernel = known.get();
    return hipSuccess;
  }
  // Of the device that is current.
  hipError_t function(Kernel& kernel, hipFunction_t* to) {
    if (const hipError_t status = load(); status != hipSuccess) return status;
    int device = 0;
    if (const hipError_t status = current(&device); status != hipSuccess) return status;
    const std::lock_guard lock(mutex_);
    hipFunction_t& known = kernel.functions[device];
    hipError_t status = hipSuccess;
    if (known == nullptr)
      status = CPUFREE_HIP_CALL(hipModuleGetFunction, (hipFunction_t*, hipModule_t, const char*),
                                &known, modules_[device], kernel.name.c_str());
    *to = known;
    return status;
  }
  // Of the device that is current.
  hipError_t variable(void** begin, std::size_t* bytes, const char* name) {
    if (const hipError_t status = load(); status != hipSuccess) return status;
    int device = 0;
    if (const hipError_t status = current(&device); status != hipSuccess) return status;
    const std::lock_guard lock(mutex_);
    return CPUFREE_HIP_CALL(hipModuleGetGlobal,
                            (hipDeviceptr_t*, std::size_t*, hipModule_t, const char*), begin, bytes,
                            modules_[device], name);
  }

 private:
  std::string code_;
  std::mutex mutex_;
  std::map<int, hipModule_t> modules_;  // by devices
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;
};

inline hipError_t function_of(const void* kernel, hipFunction_t* to) {
  Kernel& known = *static_cast<Kernel*>(const_cast<void*>(kernel));
  return known.library->function(known, to);
}

}  // namespace cpufree::gpu_hip
