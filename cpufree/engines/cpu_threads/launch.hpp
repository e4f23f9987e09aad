// Launches a kernel: all blocks of every PE, on as many threads as there are usable cores.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/engines/cpu_threads/workers.hpp"

namespace cpufree::cpu_threads {

// How often the host looks after a running kernel.
inline constexpr std::chrono::milliseconds kLook{50};

struct LaunchConfig {
  int pes = 1;
  int blocks = 1;
  // The PEs that run in this process; fewer than `pes` where other processes run the others.
  int first = 0;
  int here = 0;  // 0: all
  std::byte* const* heaps = nullptr;
  const Remote* remote = nullptr;  // see Shared
  Flag* leave_flag = nullptr;      // see Shared
  // Threads of this process that blocks wait for, and that need cores besides: NICs.
  int beside = 0;
  std::chrono::nanoseconds wait_limit = std::chrono::seconds(60);
};

// A running kernel. The destructor makes all blocks leave, and waits for them.
class Launch {
 public:
  // Starts `kernel(port)` on all blocks. Throws EngineError where threads cannot be started.
  Launch(const LaunchConfig& config, std::function<void(Port&)> kernel);
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // True once all blocks have left their kernels.
  bool wait_for(std::chrono::milliseconds patience);
  // Passes a note (see Note) to the PEs, with their next all-reduce.
  void note(unsigned bits) { shared_.notes.fetch_or(bits); }

  std::int64_t iteration() const { return shared_.iteration.load(std::memory_order_relaxed); }
  double residual() const { return shared_.residual.load(std::memory_order_relaxed); }
  // After the end: did a wait outlast its bound, and what every block was doing then.
  bool gave_up() const { return shared_.leaves(); }
  const std::vector<WaitRecord>& records() const { return shared_.records; }
  // How often a block's thread was found without a core, as other programs ran there.
  int disturbances() const { return workers_->disturbances(); }

 private:
  void run_block(int number, Seat& seat);

  Shared shared_;
  std::function<void(Port&)> kernel_;
  std::unique_ptr<Workers> workers_;
};

// Runs a kernel of a single block on the calling thread: no thread to start, none to wait for. The
// kernel asks `host` for notes once an all-reduce, with the iteration and residual reached; what it
// throws ends the kernel and passes.
void run_here(std::byte* const* heaps, const std::function<void(Port&)>& kernel,
              const std::function<unsigned(std::int64_t, double)>& host);

}  // namespace cpufree::cpu_threads
