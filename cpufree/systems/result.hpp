// What a user gets. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/device/study.hpp"
#include "cpufree/problem/entries.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/method.hpp"
#include "cpufree/systems/distributed/team.hpp"
#include "cpufree/systems/laps.hpp"
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
  double matrix_bytes = 0.0;  // of the engine's format, all PEs
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
  std::vector<LevelReport> levels;  // of multigrid; none: it is not set up
  std::string coarsest_why;         // what has kept it from coarser levels; "": nothing
  Laps seconds;                     // of the set-up in this process
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

// What one block was doing when a solve was given up.
struct BlockReport {
  int pe = 0;
  int block = 0;
  WaitRecord record;
};

// A wait outlasted its bound: all PEs have left their kernels. The message says who waited for
// whom, and whom all waited for in the end.
class WaitTimeout : public EngineError {
 public:
  explicit WaitTimeout(std::vector<BlockReport> blocks);
  const std::vector<BlockReport>& blocks() const { return blocks_; }
  // Of the PEs of this process, where they were traced.
  std::shared_ptr<TraceReport> trace = nullptr;

 private:
  std::vector<BlockReport> blocks_;
};

// The records of all blocks, PE after PE, as reports.
template <class Records>
std::vector<BlockReport> block_reports(const Records& records, int blocks) {
  std::vector<BlockReport> reports;
  for (std::size_t k = 0; k < records.size(); ++k)
    reports.push_back({static_cast<int>(k) / blocks, static_cast<int>(k) % blocks, records[k]});
  return reports;
}

// Throws WaitTimeout where a block has given up, with the records of the blocks of this process or,
// in a team, of all processes, in each of them. Every member calls it once its kernel has ended.
//
// Kernels end together: a member that does not come soon is stopped, or stuck in the driver, and
// the team fails. It has kAnswerSeconds where a wait was given up, which may have been for its PE;
// else `wait_limit` more, as the last wait of a kernel may take as long.
void report_waits(Team* team, const std::vector<WaitRecord>& records, int blocks, bool gave_up,
                  double wait_limit);

inline constexpr double kAnswerSeconds = 8.0;

// Two solves were asked of one system at the same time.
class SystemBusy : public EngineError {
 public:
  SystemBusy()
      : EngineError("this system is solving already; use one system for each concurrent solve") {}
};

// The text of a diagnosis, one line a block that waited.
std::string describe_waits(const std::vector<BlockReport>& blocks);

}  // namespace cpufree
