// What a user gets. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/device/types.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

// How a system lies on the PEs.
struct PlanReport {
  struct Pe {
    std::int64_t rows = 0, nnz = 0, ghosts = 0, boundary_rows = 0;
    std::vector<Neighbour> neighbours;
  };
  std::vector<Pe> pes;
  int blocks = 0;
  std::int64_t edge_cut = 0;
  std::int64_t halo_values = 0;
  double imbalance = 1.0;
  double matrix_bytes = 0.0;  // of the engine's format, all PEs
};

template <class T>
struct SolveResult {
  std::vector<T> x;
  Outcome outcome;
  std::vector<double> history;  // norms of iterations 0, stride, 2 stride, ...
  double seconds = 0.0;         // from the launch of the kernels to the end of the last one
};

// What one block was doing when a solve was given up.
struct BlockReport {
  int pe = 0;
  int block = 0;
  WaitRecord record;
};

// A wait outlasted its bound: all PEs have left their kernels. The message says who waited for
// whom, and whom everybody waited for in the end.
class WaitTimeout : public EngineError {
 public:
  explicit WaitTimeout(std::vector<BlockReport> blocks);
  const std::vector<BlockReport>& blocks() const { return blocks_; }

 private:
  std::vector<BlockReport> blocks_;
};

// The text of a diagnosis, one line a block that waited.
std::string describe_waits(const std::vector<BlockReport>& blocks);

}  // namespace cpufree
