// The stand-in of libamdhip64.so: streams, events, and kernels of modules.
#include <cstdio>
#include <memory>
#include <string>

#include "hip_names.hpp"
#include "kernels.hpp"

using host_hip::own;
using host_hip::status_of;

// What handles lead to. Modules and functions stay to the end of the process.
struct ihipModule_t {
  std::string text;
};
struct ihipModuleSymbol_t {
  host_hip::Function function;
};

#pragma GCC visibility push(default)
extern "C" {

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) {
  return status_of(gpuStreamCreate(own(stream)));
}
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned, int) {
  return status_of(gpuStreamCreateUrgent(own(stream)));
}
hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 1;
  *greatest = -1;
  return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t stream) { return status_of(gpuStreamDestroy(own(stream))); }
hipError_t hipStreamQuery(hipStream_t stream) { return status_of(gpuStreamQuery(own(stream))); }
hipError_t hipStreamSynchronize(hipStream_t stream) {
  return status_of(gpuStreamSynchronize(own(stream)));
}
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return status_of(gpuStreamWaitEvent(own(stream), own(event), flags));
}
hipError_t hipStreamWaitValue64(hipStream_t stream, void* word, std::uint64_t value, unsigned flags,
                                std::uint64_t mask) {
  if (flags != hipStreamWaitValueGte || mask != ~std::uint64_t{0}) return hipErrorInvalidValue;
  return status_of(gpuStreamWaitWord(own(stream), word, value));
}
hipError_t hipStreamWriteValue64(hipStream_t stream, void* word, std::uint64_t value, unsigned) {
  return status_of(gpuStreamWriteWord(own(stream), word, value));
}
hipError_t hipEventCreate(hipEvent_t* event) { return status_of(gpuEventCreate(own(event))); }
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned) {
  return status_of(gpuEventCreateUntimed(own(event)));
}
hipError_t hipEventDestroy(hipEvent_t event) { return status_of(gpuEventDestroy(own(event))); }
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return status_of(gpuEventRecord(own(event), own(stream)));
}
hipError_t hipEventQuery(hipEvent_t event) { return status_of(gpuEventQuery(own(event))); }
hipError_t hipEventSynchronize(hipEvent_t event) {
  return status_of(gpuEventSynchronize(own(event)));
}
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t from, hipEvent_t to) {
  return status_of(gpuEventElapsedTime(milliseconds, own(from), own(to)));
}

// Code is for the architecture of the device that is current, as all are of one.
hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  const std::string code = static_cast<const char*>(image);
  const std::string begin = host_hip::kMagic + host_hip::setting("ARCH", "gfx942") + "\n";
  if (!code.starts_with(host_hip::kMagic)) return hipErrorInvalidImage;
  if (!code.starts_with(begin)) return hipErrorNoBinaryForGpu;
  *module = new ihipModule_t{code.substr(begin.size())};
  return hipSuccess;
}
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  const auto found = host_hip::find_function(module->text, name);
  if (!found) {
    std::fprintf(stderr, "the stand-in has no kernel %s like this (kernels.cpp):\n%s\n", name,
                 module->text.c_str());
    return hipErrorNotFound;
  }
  *function = new ihipModuleSymbol_t{*found};
  return hipSuccess;
}
hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute, hipFunction_t) {
  *value = 0;
  return hipSuccess;
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t, int,
                                                              std::size_t) {
  *blocks = 1;
  return hipSuccess;
}
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned blocks, unsigned, unsigned,
                                 unsigned threads, unsigned, unsigned, unsigned bytes,
                                 hipStream_t stream, void** arguments, void**) {
  const host_hip::Function& f = function->function;
  if (f.launch != nullptr) return status_of(f.launch(arguments, own(stream)));
  return status_of(gpuLaunchGrid(f.kernel, static_cast<int>(blocks), static_cast<int>(threads),
                                 arguments, bytes, own(stream)));
}
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned blocks, unsigned y,
                                            unsigned z, unsigned threads, unsigned of_y,
                                            unsigned of_z, unsigned bytes, hipStream_t stream,
                                            void** arguments) {
  return hipModuleLaunchKernel(function, blocks, y, z, threads, of_y, of_z, bytes, stream,
                               arguments, nullptr);
}

}  // extern "C"
#pragma GCC visibility pop
