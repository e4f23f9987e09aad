// What N empty kernels take from the first call until the last has ended: on a stream, in a graph,
// and with programmatic launches, of which each may begin before the one before it has ended
// (LeBeane et al. 2017, figure 1).
//
//   launches KERNELS stream|graph|programmatic REPEATS
//
// One line of JSON: median, 99th percentile and least seconds.
#include "timing.cuh"

#include <chrono>
#include <cstring>

namespace ablations {

__global__ void empty_kernel() {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

void launch(int kernels, bool programmatic, cudaStream_t stream) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how = {};
  how.gridDim = dim3(1), how.blockDim = dim3(32), how.stream = stream;
  how.attrs = &early, how.numAttrs = programmatic ? 1 : 0;
  for (int k = 0; k < kernels; ++k) EXPECT(cudaLaunchKernelEx(&how, empty_kernel));
}

}  // namespace ablations

int main(int count, char** words) {
  using namespace ablations;
  if (count != 4) {
    std::fprintf(stderr, "usage: launches KERNELS stream|graph|programmatic REPEATS\n");
    return 2;
  }
  const int kernels = std::atoi(words[1]), repeats = std::atoi(words[3]);
  const bool graph = std::strcmp(words[2], "graph") == 0;
  const bool programmatic = std::strcmp(words[2], "programmatic") == 0;
  cudaStream_t stream;
  EXPECT(cudaStreamCreate(&stream));
  cudaGraphExec_t recorded = nullptr;
  if (graph) {
    cudaGraph_t found;
    EXPECT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch(kernels, false, stream);
    EXPECT(cudaStreamEndCapture(stream, &found));
    EXPECT(cudaGraphInstantiate(&recorded, found, 0));
    EXPECT(cudaGraphUpload(recorded, stream));
  }
  std::vector<double> times;
  for (int k = -10; k < repeats; ++k) {
    EXPECT(cudaStreamSynchronize(stream));
    const auto begin = std::chrono::steady_clock::now();
    if (graph)
      EXPECT(cudaGraphLaunch(recorded, stream));
    else
      launch(kernels, programmatic, stream);
    EXPECT(cudaStreamSynchronize(stream));
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (k >= 0) times.push_back(passed.count());
  }
  std::printf("{\"seconds\": %.9g, \"p99\": %.9g, \"least\": %.9g}\n", median(times),
              quantile(times, 0.99), quantile(times, 0));
  return 0;
}
