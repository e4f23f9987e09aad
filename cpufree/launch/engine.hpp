// Which engine runs kernels, what bounds a run, and who listens to it. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/device/study.hpp"
#include "cpufree/distributed/team.hpp"

namespace cpufree {

// The last three run one process for each PE (see Team).
enum class Engine { cpu_threads, cuda_p2p, cpu_processes, nvshmem, nccl };

// What bounds a run besides its own rule for stopping.
struct Limits {
  double time_limit = 0.0;   // seconds, 0: none
  double wait_limit = 60.0;  // seconds that a block may wait for another one
};

// Called on the host thread while kernels run, with the iteration reached and its residual norm.
// Returns false to ask for a stop.
using Progress = std::function<bool(std::int64_t iteration, double residual)>;

// As users write it. Throws InvalidInput that lists the valid names.
Engine engine_from_name(const std::string& name);
Study study_from_name(const std::string& name);
const char* engine_name(Engine engine);
const char* study_name(Study study);
inline bool on_gpus(Engine engine) {
  return engine == Engine::cuda_p2p || engine == Engine::nvshmem || engine == Engine::nccl;
}
inline bool needs_team(Engine engine) { return engine >= Engine::cpu_processes; }

// The PEs that a run is spread over.
struct PesSpec {
  Engine engine = Engine::cpu_threads;
  int pes = 1;
  int blocks = 0;              // per PE; 0: as many as the engine likes
  std::vector<int> gpus = {};  // of the PEs of this process; empty: 0, 1, ...
  std::shared_ptr<Team> team = nullptr;
};

// Throws InvalidInput where a number is out of its range.
void check(const Limits& limits);
void check(const PesSpec& spec);

}  // namespace cpufree
