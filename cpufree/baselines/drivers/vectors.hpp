// All-reduces of a vector by the collective library, driven by the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpufree::baselines {

struct VectorSumRun {
  std::vector<int> devices{0, 1};
  std::string library;     // a path; empty: where the system looks
  bool graph = false;      // recorded once, and launched as a graph
  bool single = true;      // float, else double
  std::int64_t count = 1;  // values
  int repeats = 100;
};

// Seconds of one all-reduce, in place, of `repeats` in a row: streams do not wait for the host in
// between. One is checked before. Throws Unsupported without the library, EngineError.
double sum_vectors(const VectorSumRun& run);

}  // namespace cpufree::baselines
