// What the programs of this folder share: errors, devices, medians, clocks that are up.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace ablations {

#define EXPECT(call)                                                       \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(3);                                                        \
    }                                                                      \
  } while (false)

inline double quantile(std::vector<double> times, double share) {
  std::sort(times.begin(), times.end());
  const double place = share * static_cast<double>(times.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, times.size() - 1);
  return times[low] + (place - static_cast<double>(low)) * (times[high] - times[low]);
}
inline double median(const std::vector<double>& times) { return quantile(times, 0.5); }

// Launches for so long that clocks are up: a GPU that was idle raises them within tenths of a
// second. `launch` returns the seconds that it took.
template <class Launch>
void warm_up(const Launch& launch) {
  for (double spent = 0; spent < 0.4;) spent += launch();
}

inline int multiprocessors(int device) {
  int count = 0;
  EXPECT(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

}  // namespace ablations
