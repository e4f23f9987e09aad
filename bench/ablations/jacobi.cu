// Times the kernel of jacobi.cuh. bench/ablations/jacobi.py compiles and runs it:
//
//   jacobi ROWS COLUMNS SLABS KEPT CLUSTER KERNELS ITERATIONS REPEATS
//
// SLABS 0: as many as run at once, -N: as many as run in clusters of N; KERNELS 2: the second one
// has all slabs but four. One line of JSON: median and least seconds of an iteration, bytes a
// second of values that are not kept, slabs, rows kept. Answers have the bits of a plain kernel,
// which has those of the host, or the program ends with an error.
#include "words.cuh"

#include "jacobi.cuh"
#include "timing.cuh"

#include <cmath>

namespace ablations {

constexpr int kThreads = 1024, kMostColumns = 8, kSecond = 4;

template <int kColumns>
__global__ void __launch_bounds__(kThreads, 1) jacobi_kernel(const __grid_constant__ JacobiArgs a) {
  Jacobi<kColumns>(a).run();
}

// One iteration, to compare with.
__global__ void plain_kernel(int nx, int ny, const float* from, float* to) {
  const int i = static_cast<int>(blockIdx.y),
            j = static_cast<int>(blockIdx.x * blockDim.x + lane());
  if (j >= ny) return;
  const float* const at = from + static_cast<long long>(i) * ny + j;
  const bool fixed = i == 0 || i == nx - 1 || j == 0 || j == ny - 1;
  to[static_cast<long long>(i) * ny + j] =
      fixed ? *at : 0.25F * ((at[-ny] + at[ny]) + (at[-1] + at[1]));
}

struct Form {
  int rows, columns, slabs, kept, cluster, kernels;
  // What goes through memory in an iteration.
  double bytes() const {
    long long left = 0;
    for (long long k = 0; k < slabs; ++k)
      left += std::max(0LL, rows * (k + 1) / slabs - rows * k / slabs - kept);
    return 2.0 * sizeof(float) * static_cast<double>(left) * columns;
  }
  using Kernel = void (*)(JacobiArgs);
  Kernel kernel() const {
    if (columns <= kThreads) return jacobi_kernel<1>;
    return columns <= 2 * kThreads ? jacobi_kernel<2> : jacobi_kernel<kMostColumns>;
  }
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
  EXPECT(cudaOccupancyMaxActiveClusters(&clusters, form.kernel(), &how));
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
    EXPECT(cudaLaunchKernelEx(&how, form.kernel(), mine));
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

  std::vector<float> read(const float* from) const {
    std::vector<float> found(start.size());
    EXPECT(cudaMemcpy(found.data(), from, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return found;
  }
  std::vector<float> by_plain(int iterations) const {
    float* copies[2];
    const std::size_t bytes = start.size() * sizeof(float);
    for (float*& copy : copies) {
      EXPECT(cudaMalloc(&copy, bytes));
      EXPECT(cudaMemcpy(copy, args.start, bytes, cudaMemcpyDeviceToDevice));
    }
    const dim3 blocks((form.columns + 255) / 256, form.rows);
    for (int t = 0; t < iterations; ++t)
      plain_kernel<<<blocks, 256>>>(form.rows, form.columns, copies[t % 2], copies[(t + 1) % 2]);
    EXPECT(cudaGetLastError());
    const std::vector<float> found = read(copies[iterations % 2]);
    for (float* copy : copies) EXPECT(cudaFree(copy));
    return found;
  }
  std::vector<float> by_host(int iterations) const {
    std::vector<float> now = start, next = start;
    const std::size_t ny = form.columns;
    for (int t = 0; t < iterations; ++t, std::swap(now, next))
      for (std::size_t i = 1; i + 1 < static_cast<std::size_t>(form.rows); ++i)
        for (std::size_t at = i * ny + 1; at + 1 < (i + 1) * ny; ++at)
          next[at] = 0.25F * ((now[at - ny] + now[at + ny]) + (now[at - 1] + now[at + 1]));
    return now;
  }
  bool right(int iterations) {
    run(iterations);
    return read(args.values[iterations % 2]) == by_plain(iterations);
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
  EXPECT(cudaFuncSetAttribute(form.kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize, room));
  EXPECT(cudaFuncSetAttribute(form.kernel(), cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
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
  if (grid.by_plain(4) != grid.by_host(4) || !grid.right(1) || !grid.right(2 * n[7])) {
    std::fprintf(stderr, "jacobi: values differ from the host's or the plain kernel's\n");
    return 4;
  }
  warm_up([&] { return grid.run(2 * n[7]); });
  std::vector<double> times;
  for (int k = 0; k < n[8]; ++k) {
    const double one = grid.run(n[7]), two = grid.run(2 * n[7]);
    times.push_back((two - one) / n[7]);
  }
  std::printf(
      "{\"seconds\": %.9g, \"least\": %.9g, \"bytes_per_second\": %.4g, \"slabs\": %d, \"kept\": "
      "%d}\n",
      median(times), quantile(times, 0), form.bytes() / median(times), form.slabs, form.kept);
  return 0;
}
