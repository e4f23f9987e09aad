// Probes on the CPU engine: PEs are threads of one process, or of one process each.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cpufree/engines/cpu_processes/memory.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/probes/host/prober.hpp"

namespace cpufree {

namespace cpu_threads {
class Port;
struct Shared;
}  // namespace cpu_threads

// No PE begins an order before all have ended the one before: in one process that is so, several
// must see to it. Orders differ in the places of messages.
//
// Every block has a thread of its own, unlike those of a solve, which may share them: with fewer
// cores than that, what is measured is the operating system.
class CpuProber final : public Prober {
 public:
  // All PEs in this process.
  CpuProber(int pes, int blocks, std::int64_t bytes);
  // PE `pe` in this process; `connect` follows, in all of them.
  CpuProber(int pes, int blocks, std::int64_t bytes, int pe);

  // Where the memory of this process is.
  cpu_processes::SegmentAddress address() const;
  // Takes the addresses of all PEs, in their order. Throws EngineError.
  void connect(const std::vector<cpu_processes::SegmentAddress>& addresses);

  std::vector<double> run(const ProbeOrder& order) override;
  PatternTimes run(const PatternOrder& order) override;
  // How often, in the last run, a thread of this process lost its core to another program: times of
  // such a run are those of the operating system, too.
  long disturbances() const { return disturbances_; }
  // Makes PEs that wait leave. To be called while another thread runs an order; none follows.
  void leave();

 private:
  void share(cpu_threads::Shared& shared, double wait_limit) const;
  void run_blocks(cpu_threads::Shared& shared,
                  const std::function<void(cpu_threads::Port& port, int pe)>& kernel);

  int pes_, blocks_;
  int first_ = 0;  // PEs of this process
  int here_;
  ProbeMemory memory_;
  std::optional<cpu_threads::SymmetricHeaps> own_;
  std::vector<cpu_processes::Segment> segments_;
  std::vector<std::byte*> heaps_;
  Epoch epoch_ = 0;          // of messages
  Epoch pattern_epoch_ = 0;  // their flags are others
  long disturbances_ = 0;
};

}  // namespace cpufree
