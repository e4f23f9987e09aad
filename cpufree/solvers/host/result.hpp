// What a user gets. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/laps.hpp"
#include "cpufree/device/study.hpp"
#include "cpufree/launch/waits.hpp"
#include "cpufree/problem/entries.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/method.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

// A level of multigrid.
struct LevelReport {
  std::int64_t rows = 0, nonzeros = 0;
  std::int64_t transfer_nonzeros = 0;  // of the prolongator from the next level
  bool inverted = false;               // solved by a dense inverse
  double bytes = 0.0;  // in the engine's format, all PEs, prolongator and its transpose included
};

// How a system lies on the PEs.
struct PlanReport {
  struct Pe {
    std::int64_t rows = 0, nnz = 0, ghosts = 0, boundary_rows = 0;
    std::int64_t ghost_reads = 0;  // in a product
    std::vector<Neighbour> neighbours;
  };
  std::vector<Pe> pes;
  std::string engine;
  int nodes = 1;  // PEs of one node reach one another by loads and stores
  int blocks = 0;
  int threads = 1;  // per block
  std::int64_t edge_cut = 0;
  std::int64_t halo_values = 0;
  double imbalance = 1.0;
  double matrix_bytes = 0.0;   // of the engine's format, all PEs
  bool single_values = false;  // products read values in single precision
  std::string halo = "none";  // how ghosts travel: "packets", "stores", "none" where there are none
  // How blocks of one PE exchange rows: "packets", or "flags" behind stores.
  std::string block_halo = "flags";
  // What the solve that is expected first (SystemSpec::first) keeps on chip.
  int resident_vectors = 0;
  bool resident_matrix = false;
  int ring_slots = 0;             // 0: the matrix does not come through rings
  int lanes_per_row = 1;          // the most that share one
  std::int64_t shared_bytes = 0;  // per block
  // Of a preconditioner that has factors, all PEs: which one, its entries and bytes, and the rows
  // or blocks that have their diagonal alone, as A is not positive definite there.
  std::string factors = "none";
  std::int64_t factor_entries = 0;
  double factor_bytes = 0.0;
  std::int64_t factors_replaced = 0;
  std::int64_t factors_left_out = 0;  // entries of a factor that is given, between PEs
  std::vector<LevelReport> levels;    // of multigrid; none: it is not set up
  std::string coarsest_why;           // what has kept it from coarser levels; "": nothing
  Laps seconds;                       // of the set-up in this process
  // Largest entry of the diagonal over the smallest, where the engine has looked: on the CPU.
  double diagonal_spread = 1.0;
  // Where SystemSpec::inspect has asked for it: what is in the entries, and how far they are from
  // the diagonal on average.
  std::optional<EntryReport> entries;
  double mean_distance = 0.0;
  // Why the matrix has not been laid out: the system cannot be used, and all else here is missing.
  // "": it has.
  std::string refused;
};

struct SolveResult {
  Outcome outcome;
  std::vector<double> history;       // norms of iterations 0, stride, 2 stride, ...
  double seconds = 0.0;              // from the launch of the kernels to the end of the last one
  std::optional<Split> split;        // mean of all blocks; of a study of the times
  std::optional<TraceReport> trace;  // of all PEs; of a solve that is traced
  Laps laps;                         // of the solve in this process
  int disturbances = 0;              // on CPU threads: how often others had taken a thread's core
};

// Two solves were asked of one system at the same time.
class SystemBusy : public EngineError {
 public:
  SystemBusy()
      : EngineError("this system is solving already; use one system for each concurrent solve") {}
};

}  // namespace cpufree
