// Waits that lasted too long: who waited for whom, as an error of all processes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/device/types.hpp"
#include "cpufree/distributed/team.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

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

// The text of a diagnosis, one line a block that waited.
std::string describe_waits(const std::vector<BlockReport>& blocks);

}  // namespace cpufree
