// The kernel on two GPUs that reach each other's memory.
//
// Plain CUDA: any program that has its memory and its streams already can run kernels over the
// port. What an engine's kernel needs is in `cpufree::gpu_p2p::Shared`.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "report.hpp"

namespace {

using cpufree::WaitRecord;
using cpufree::gpu_p2p::Shared;

constexpr int kThreads = 256;  // of a block: whole warps
constexpr int kPes = 2;

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// The entry point: the port of this engine, and the kernel.
__global__ void __launch_bounds__(kThreads)
    entry(const __grid_constant__ Shared shared, const __grid_constant__ own::Args args) {
  cpufree::gpu_p2p::Port port(shared, nullptr);
  own::kernel(port, args);
}

// Host memory that kernels reach at the same address; zeroed. It lives until the program ends.
template <class T>
T* mapped(std::size_t count) {
  void* p = nullptr;
  check(cudaHostAlloc(&p, count * sizeof(T), cudaHostAllocMapped | cudaHostAllocPortable),
        "cudaHostAlloc");
  T* const objects = static_cast<T*>(p);
  for (std::size_t k = 0; k < count; ++k) objects[k] = T{};
  return objects;
}

// Lets GPU `from` write into the memory of GPU `to`.
void connect(int from, int to) {
  int reaches = 0;
  check(cudaDeviceCanAccessPeer(&reaches, from, to), "cudaDeviceCanAccessPeer");
  if (reaches == 0) throw std::runtime_error("the GPUs do not reach each other's memory");
  check(cudaSetDevice(from), "cudaSetDevice");
  check(cudaDeviceEnablePeerAccess(to, 0), "cudaDeviceEnablePeerAccess");
}

// All blocks wait for one another, so all of them must fit on the GPU at once: a cooperative
// launch checks that. Nothing may be allocated or loaded while a kernel spins, so that comes first.
int run(int absent) {
  int blocks = 0;
  check(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0), "device 0");
  for (int pe = 0; pe < kPes; ++pe) connect(pe, 1 - pe);

  own::Memory memory(kPes, blocks);
  const auto leave = memory.layout.reserve<cpufree::Flag>(1);  // the engine's own
  std::byte* heaps[kPes] = {};
  for (int pe = 0; pe < kPes; ++pe) {
    check(cudaSetDevice(pe), "cudaSetDevice");
    check(cudaMalloc(&heaps[pe], memory.layout.bytes()), "cudaMalloc");
    check(cudaMemset(heaps[pe], 0, memory.layout.bytes()), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    cudaFuncAttributes attributes;  // loads the kernel
    check(cudaFuncGetAttributes(&attributes, entry), "cudaFuncGetAttributes");
  }
  const auto records_in_all = static_cast<std::size_t>(kPes * blocks);
  WaitRecord* const records = mapped<WaitRecord>(records_in_all);
  own::Outcome* const outcomes = mapped<own::Outcome>(kPes);
  unsigned* const words = mapped<unsigned>(2);

  std::vector<Shared> shared(kPes);
  std::vector<own::Args> args;
  for (int pe = 0; pe < kPes; ++pe) {
    Shared& s = shared[static_cast<std::size_t>(pe)];
    s.pe = pe;
    s.pes = kPes;
    for (int k = 0; k < kPes; ++k) s.heaps[k] = heaps[k];
    s.leave = leave.at(heaps[pe]);
    s.host_leave = &words[0];
    s.notes = &words[1];
    s.iteration = mapped<std::int64_t>(1);
    s.residual = mapped<double>(1);
    s.records = records + pe * blocks;
    s.wait_limit_ns = absent < 0 ? 60'000'000'000ULL : 1'000'000'000ULL;
    args.push_back(memory.args(heaps[pe]));
    args.back().outcome = &outcomes[pe];
    args.back().absent = absent;
  }
  for (int pe = 0; pe < kPes; ++pe) {  // all are launched before any is waited for
    check(cudaSetDevice(pe), "cudaSetDevice");
    void* parameters[] = {&shared[static_cast<std::size_t>(pe)],
                          &args[static_cast<std::size_t>(pe)]};
    check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(entry), dim3(blocks),
                                      dim3(kThreads), parameters, 0, nullptr),
          "cudaLaunchCooperativeKernel");
  }
  for (int pe = 0; pe < kPes; ++pe) {
    check(cudaSetDevice(pe), "cudaSetDevice");
    check(cudaDeviceSynchronize(), "the kernel");
  }
  if (own::print_waits(records, records_in_all, blocks) > 0) return 1;
  own::print(outcomes[0]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < kPes) {
    std::printf("skipped: this program needs %d GPUs, and there are %d\n", kPes, gpus);
    return 0;
  }
  try {
    return run(own::absent_pe(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
