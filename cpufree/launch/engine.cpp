#include "cpufree/launch/engine.hpp"

#include <utility>

#include "cpufree/base/named.hpp"

namespace cpufree {

namespace {

constexpr std::pair<const char*, Engine> kEngines[] = {{"cpu_threads", Engine::cpu_threads},
                                                       {"cuda_p2p", Engine::cuda_p2p},
                                                       {"cpu_processes", Engine::cpu_processes},
                                                       {"nvshmem", Engine::nvshmem},
                                                       {"nccl", Engine::nccl}};
constexpr std::pair<const char*, Study> kStudies[] = {{"none", Study::none},
                                                      {"split", Study::split},
                                                      {"no-compute", Study::no_compute},
                                                      {"no-comm", Study::no_comm},
                                                      {"trace", Study::trace}};

}  // namespace

Engine engine_from_name(const std::string& name) { return value_named("engine", kEngines, name); }

const char* engine_name(Engine engine) { return name_in(kEngines, engine); }

Study study_from_name(const std::string& name) { return value_named("study", kStudies, name); }

const char* study_name(Study study) { return name_in(kStudies, study); }

void check(const Limits& limits) {
  require_not_negative(limits.time_limit, "time_limit");
  require_not_negative(limits.wait_limit, "wait_limit");
  require(limits.wait_limit > 0.0 && limits.wait_limit <= 1e6,
          "wait_limit must lie between 0 (excluded) and 1e6 seconds: every wait is bounded");
}

void check(const PesSpec& spec) {
  require(spec.pes >= 1 && spec.pes <= 1024,
          "pes must lie between 1 and 1024, not " + std::to_string(spec.pes));
  require(spec.blocks >= 0 && spec.blocks <= 1024,
          "blocks must lie between 0 (automatic) and 1024, not " + std::to_string(spec.blocks));
  require(spec.pes * spec.blocks <= 4096, "at most 4096 blocks in all are possible, not " +
                                              std::to_string(spec.pes) + " x " +
                                              std::to_string(spec.blocks));
  const std::string engine = engine_name(spec.engine);
  require(spec.gpus.empty() || on_gpus(spec.engine),
          "GPUs were named, but the engine is " + engine + "; use cuda_p2p");
  const int here = needs_team(spec.engine) ? 1 : spec.pes;
  require(spec.gpus.empty() || spec.gpus.size() == static_cast<std::size_t>(here),
          "one GPU for each PE: " + std::to_string(spec.gpus.size()) + " GPUs were named for " +
              std::to_string(here) + " PEs of this process");
  require(needs_team(spec.engine) == (spec.team != nullptr),
          needs_team(spec.engine)
              ? "the engine " + engine + " needs a team of processes: start it as one rank of many"
              : "the engine " + engine + " runs in one process, and takes no team");
  require(spec.team == nullptr || spec.team->size() == spec.pes,
          "the engine " + engine + " has one process for each PE: pes is " +
              std::to_string(spec.pes) + ", not the number of processes");
}

}  // namespace cpufree
