// Times the kernel of jacobi.cuh. bench/ablations/jacobi.py compiles and runs it:
//
//   jacobi ROWS COLUMNS SLABS KEPT CLUSTER KERNELS ITERATIONS REPEATS
//
// SLABS 0: as many as run at once, -N: as many as run in clusters of N; KERNELS 2: the second one
// has all slabs but four. One line of JSON: median and least seconds of an iteration, slabs, rows
// kept. Answers have the bits of the host's, or the program ends with an error.
#include "words.cuh"

#include "jacobi.cuh"
#include "timing.cuh"

#include <cmath>

namespace ablations {

constexpr int kThreads = 512, kSecond = 4;

__global__ void __launch_bounds__(kThreads, 1) jacobi_kernel(const __grid_constant__ JacobiArgs a) {
  Jacobi(a).run();
}

struct Form {
  int rows, columns, slabs, kept, cluster, kernels;
  std::size_t room() const {
    return sizeof(float) * static_cast<std::size_t>(kept + (cluster > 1 ? 4 : 0)) * columns;
  }
};

cudaLaunchConfig_t config(const Form& form, int blocks, cudaStream_t stream,
                          cudaLaunchAttribute* attribute) {
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim = {static_cast<unsigned>(form.cluster), 1, 1};
  cudaLaunchConfig_t how = {};
  how.gridDim = dim3(blocks), how.blockDim = dim3(kThreads), how.stream = stream;
  how.dynamicSmemBytes = form.room();
  how.attrs = attribute, how.numAttrs = form.cluster > 1 ? 1 : 0;
  return how;
}

// All blocks wait for one another, so all must run at once.
int most_slabs(const Form& form) {
  if (form.cluster == 1) return multiprocessors(0);
  cudaLaunchAttribute attribute = {};
  const cudaLaunchConfig_t how = config(form, form.cluster, nullptr, &attribute);
  int clusters = 0;
  EXPECT(cudaOccupancyMaxActiveClusters(&clusters, jacobi_kernel, &how));
  return clusters * form.cluster;
}

struct Grid {
  Form form;
  JacobiArgs args = {};
  cudaStream_t streams[2];
  cudaEvent_t begin, ready, end[2];
  std::vector<float> start;

  explicit Grid(const Form& given) : form(given) {
    const std::size_t points = static_cast<std::size_t>(form.rows) * form.columns;
    start.resize(points);
    for (std::size_t i = 0; i < points; ++i) start[i] = static_cast<float>((i * 7919) % 101) / 7.0F;
    const std::size_t edges = std::size_t{4} * form.slabs * form.columns;
    float* first = nullptr;
    EXPECT(cudaMalloc(&first, points * sizeof(float)));
    EXPECT(cudaMemcpy(first, start.data(), points * sizeof(float), cudaMemcpyHostToDevice));
    for (float*& copy : args.values) EXPECT(cudaMalloc(&copy, points * sizeof(float)));
    EXPECT(cudaMalloc(&args.edges, edges * sizeof(float)));
    EXPECT(cudaMalloc(&args.done, words()));
    args.nx = form.rows, args.ny = form.columns, args.slabs = form.slabs, args.kept = form.kept;
    args.cluster = form.cluster, args.start = first;
    for (int k = 0; k < 2; ++k) {
      EXPECT(cudaStreamCreate(&streams[k]));
      EXPECT(cudaEventCreate(&end[k]));
    }
    EXPECT(cudaEventCreate(&begin));
    EXPECT(cudaEventCreate(&ready));
  }
  std::size_t words() const { return sizeof(Epoch) * kFlagStep * form.slabs; }

  void launch(int first, int blocks, int which) {
    JacobiArgs mine = args;
    mine.first = first;
    cudaLaunchAttribute attribute = {};
    const cudaLaunchConfig_t how = config(form, blocks, streams[which], &attribute);
    EXPECT(cudaLaunchKernelEx(&how, jacobi_kernel, mine));
  }
  double run(int iterations) {
    args.iterations = iterations;
    EXPECT(cudaMemsetAsync(args.done, 0, words(), streams[0]));
    EXPECT(cudaEventRecord(begin, streams[0]));
    EXPECT(cudaStreamWaitEvent(streams[1], begin, 0));
    launch(0, form.kernels == 2 ? kSecond : form.slabs, 0);
    if (form.kernels == 2) launch(kSecond, form.slabs - kSecond, 1);
    EXPECT(cudaEventRecord(end[1], streams[1]));
    EXPECT(cudaStreamWaitEvent(streams[0], end[1], 0));
    EXPECT(cudaEventRecord(end[0], streams[0]));
    EXPECT(cudaEventSynchronize(end[0]));
    float ms = 0;
    EXPECT(cudaEventElapsedTime(&ms, begin, end[0]));
    return 1e-3 * ms;
  }

  bool right(int iterations) {
    run(iterations);
    std::vector<float> now = start, next = start, found(start.size());
    const std::size_t ny = form.columns;
    for (int t = 0; t < iterations; ++t, std::swap(now, next))
      for (std::size_t i = 1; i + 1 < static_cast<std::size_t>(form.rows); ++i)
        for (std::size_t at = i * ny + 1; at + 1 < (i + 1) * ny; ++at)
          next[at] = 0.25F * ((now[at - ny] + now[at + ny]) + (now[at - 1] + now[at + 1]));
    EXPECT(cudaMemcpy(found.data(), args.values[iterations % 2], found.size() * sizeof(float),
                      cudaMemcpyDeviceToHost));
    return found == now;
  }
};

}  // namespace ablations

int main(int count, char** words) {
  using namespace ablations;
  if (count != 9) {
    std::fprintf(stderr,
                 "usage: jacobi ROWS COLUMNS SLABS KEPT CLUSTER KERNELS ITERATIONS REPEATS\n");
    return 2;
  }
  int n[9] = {};
  for (int k = 1; k < 9; ++k) n[k] = std::atoi(words[k]);
  Form form = {n[1], n[2], n[3], n[4], n[5], n[6]};
  int room = 0;
  EXPECT(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT(cudaFuncSetAttribute(jacobi_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
  EXPECT(cudaFuncSetAttribute(jacobi_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  const int most = most_slabs(form);
  if (form.slabs == 0) form.slabs = most;
  if (form.slabs < 0) {
    Form clusters = form;
    clusters.cluster = -form.slabs;
    form.slabs = most_slabs(clusters);
  }
  if (form.slabs > most || form.slabs % form.cluster != 0 || form.rows < 2 * form.slabs ||
      form.columns > kThreads * kMostColumns) {
    std::fprintf(stderr, "jacobi: %d slabs of a grid of %d x %d: at most %d run at once\n",
                 form.slabs, form.rows, form.columns, most);
    return 2;
  }
  Grid grid(form);
  if (!grid.right(1) || !grid.right(4)) {
    std::fprintf(stderr, "jacobi: values differ from the host's\n");
    return 4;
  }
  std::vector<double> times;
  for (int k = 0; k < n[8]; ++k) {
    const double one = grid.run(n[7]), two = grid.run(2 * n[7]);
    times.push_back((two - one) / n[7]);
  }
  std::printf("{\"seconds\": %.9g, \"least\": %.9g, \"slabs\": %d, \"kept\": %d}\n", median(times),
              quantile(times, 0), form.slabs, form.kept);
  return 0;
}
