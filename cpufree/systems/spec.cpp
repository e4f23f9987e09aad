#include "cpufree/systems/spec.hpp"

#include <cmath>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/formats/slice_limits.hpp"
#include "cpufree/problem/factors/factors.hpp"

namespace cpufree {

namespace {

template <class E, std::size_t N>
E from_name(const char* what, const std::pair<const char*, E> (&table)[N],
            const std::string& name) {
  std::string known;
  for (const auto& [text, value] : table) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw InvalidInput(std::string("unknown ") + what + " '" + name + "'; choose one of: " + known);
}

template <class E, std::size_t N>
const char* name_of(const std::pair<const char*, E> (&table)[N], E wanted) {
  for (const auto& [text, value] : table)
    if (value == wanted) return text;
  return "unknown";
}

constexpr std::pair<const char*, Engine> kEngines[] = {{"cpu_threads", Engine::cpu_threads},
                                                       {"cuda_p2p", Engine::cuda_p2p},
                                                       {"cpu_processes", Engine::cpu_processes},
                                                       {"nvshmem", Engine::nvshmem}};
constexpr std::pair<const char*, Method> kMethods[] = {
    {"cg", Method::cg}, {"prcg", Method::prcg}, {"pipecg", Method::pipecg}};
constexpr std::pair<const char*, Preconditioner> kPreconditioners[] = {
    {"none", Preconditioner::none},           {"jacobi", Preconditioner::jacobi},
    {"chebyshev", Preconditioner::chebyshev}, {"block_jacobi", Preconditioner::block_jacobi},
    {"fsai", Preconditioner::fsai},           {"amg", Preconditioner::amg}};
constexpr std::pair<const char*, Study> kStudies[] = {{"none", Study::none},
                                                      {"split", Study::split},
                                                      {"no-compute", Study::no_compute},
                                                      {"no-comm", Study::no_comm},
                                                      {"trace", Study::trace}};

void require_not_negative(double value, const char* name) {
  require(std::isfinite(value) && value >= 0.0,
          std::string(name) + " must be a finite number >= 0, not " + std::to_string(value));
}

// Which PEs reach which.
void check_reach(const SystemSpec& spec) {
  require(spec.node_size >= 0, "node_size must be a number of PEs, or 0 (automatic), not " +
                                   std::to_string(spec.node_size));
  require(!in_nodes(spec) || spec.engine != Engine::cuda_p2p,
          "the engine cuda_p2p works on GPUs that reach one another's memory: leave out node_size, "
          "or start ranks with the engine nvshmem");
  require(!in_nodes(spec) || spec.halo <= 0,
          "halos between nodes do not travel as packets: leave out halo, or node_size");
}

}  // namespace

Engine engine_from_name(const std::string& name) { return from_name("engine", kEngines, name); }

const char* engine_name(Engine engine) { return name_of(kEngines, engine); }

Method method_from_name(const std::string& name) { return from_name("method", kMethods, name); }

const char* method_name(Method method) { return name_of(kMethods, method); }

Preconditioner preconditioner_from_name(const std::string& name) {
  return from_name("preconditioner", kPreconditioners, name);
}

const char* preconditioner_name(Preconditioner preconditioner) {
  return name_of(kPreconditioners, preconditioner);
}

Study study_from_name(const std::string& name) { return from_name("study", kStudies, name); }

const char* study_name(Study study) { return name_of(kStudies, study); }

const char* reason_name(Reason reason) {
  switch (reason) {
    case Reason::running:
      return "RUNNING";
    case Reason::converged_rtol:
      return "CONVERGED_RTOL";
    case Reason::converged_atol:
      return "CONVERGED_ATOL";
    case Reason::diverged_its:
      return "DIVERGED_ITS";
    case Reason::diverged_dtol:
      return "DIVERGED_DTOL";
    case Reason::diverged_nanorinf:
      return "DIVERGED_NANORINF";
    case Reason::diverged_indefinite_mat:
      return "DIVERGED_INDEFINITE_MAT";
    case Reason::diverged_indefinite_pc:
      return "DIVERGED_INDEFINITE_PC";
    case Reason::diverged_breakdown:
      return "DIVERGED_BREAKDOWN";
    case Reason::stagnated:
      return "STAGNATED";
    case Reason::time_limit:
      return "TIME_LIMIT";
    case Reason::interrupted:
      return "INTERRUPTED";
  }
  return "UNKNOWN";
}

void check(const SystemSpec& spec) {
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
  check_reach(spec);
  check(spec.factors);
  require(spec.threads >= 0 && spec.threads <= 512 && spec.threads % 32 == 0,
          "threads must be a multiple of 32 up to 512, or 0 (automatic), not " +
              std::to_string(spec.threads));
  require(spec.halo >= -1 && spec.halo <= (on_gpus(spec.engine) ? 2 : 1),
          "halo must be 2 (packets among blocks, cuda_p2p only), 1 (packets), 0 (stores) or -1 "
          "(automatic), not " +
              std::to_string(spec.halo));
  require(spec.ring >= -1 && spec.ring <= kMostSlots,
          "ring must be a number of slots, 0 (none) to " + std::to_string(kMostSlots) +
              ", or -1 (automatic), not " + std::to_string(spec.ring));
  require(
      spec.keep >= -1 && spec.keep <= 256,
      "keep must lie between 0 and 256, or be -1 (automatic), not " + std::to_string(spec.keep));
  require(spec.lanes_log2 >= -1 && spec.lanes_log2 <= kMostLanesLog2,
          "lanes_log2 must lie between 0 (a row is one thread's) and " +
              std::to_string(kMostLanesLog2) +
              " (2^lanes_log2 threads share one), or be -1 (automatic), not " +
              std::to_string(spec.lanes_log2));
  require(spec.lanes_log2 <= 0 || (spec.residency != 0 && spec.ring != 0 && spec.ring != 1),
          "threads share rows of matrices that stay on chip or come through rings: leave out "
          "lanes_log2, or ring and residency");
  require(
      spec.layout >= -1 && spec.layout <= 1,
      "layout must be 0 (by the host), 1 (by the GPUs, where they can) or -1 (automatic), not " +
          std::to_string(spec.layout));
  require(spec.residency >= -1 && spec.residency <= 1,
          "residency must be 0 (none), 1 (vectors) or -1 (automatic), not " +
              std::to_string(spec.residency));
}

void check(const FactorSpec& factors) {
  require(factors.kind == Preconditioner::none || set_up_with_matrix(factors.kind),
          std::string("the preconditioner ") + preconditioner_name(factors.kind) +
              " has nothing to set up");
  require(factors.level == 1 || factors.level == 2,
          "pc_level must be 1 (the pattern of A) or 2 (that of A^2, thinned), not " +
              std::to_string(factors.level));
  require(factors.block >= 0 && factors.block <= kMostBlockRows,
          "pc_block must lie between 1 and " + std::to_string(kMostBlockRows) +
              ", or be 0 (automatic), not " + std::to_string(factors.block));
}

void check(const Limits& limits) {
  require_not_negative(limits.time_limit, "time_limit");
  require_not_negative(limits.wait_limit, "wait_limit");
  require(limits.wait_limit > 0.0 && limits.wait_limit <= 1e6,
          "wait_limit must lie between 0 (excluded) and 1e6 seconds: every wait is bounded");
}

void check(const SolveSpec& spec) {
  require_not_negative(spec.rtol, "rtol");
  require_not_negative(spec.atol, "atol");
  check(spec.limits());
  require(spec.maxiter >= 0,
          "maxiter must not be negative, but is " + std::to_string(spec.maxiter));
  require(spec.replace_every >= 0, "replace_every must not be negative (0: never)");
  require(
      spec.chebyshev_degree >= 1 && spec.chebyshev_degree <= 64,
      "chebyshev_degree must lie between 1 and 64, not " + std::to_string(spec.chebyshev_degree));
  require(spec.preconditioner != Preconditioner::amg || spec.method == Method::cg,
          std::string("the preconditioner amg is for the method cg, not ") +
              method_name(spec.method) +
              ": the recurrences of the others carry M r along, and lose it to the rounding errors "
              "of a cycle in single precision");
  require(spec.trace_events >= kTraceShare && spec.trace_events <= kMostTraceEvents,
          "trace_events must lie between " + std::to_string(kTraceShare) + " and " +
              std::to_string(kMostTraceEvents) + ", not " + std::to_string(spec.trace_events));
  require(!spec.leaves_out() || (spec.rtol == 0.0 && spec.atol == 0.0),
          std::string("the study ") + study_name(spec.study) +
              " has no residual that could end it: give maxiter, and rtol and atol 0");
}

}  // namespace cpufree
