#include "cpufree/solvers/host/spec.hpp"

#include <utility>

#include "cpufree/base/named.hpp"
#include "cpufree/formats/slices/slice_limits.hpp"
#include "cpufree/problem/factors/factors.hpp"

namespace cpufree {

namespace {

constexpr std::pair<const char*, Method> kMethods[] = {
    {"cg", Method::cg},         {"prcg", Method::prcg},         {"pipecg", Method::pipecg},
    {"minres", Method::minres}, {"bicgstab", Method::bicgstab}, {"block_cg", Method::block_cg}};
constexpr std::pair<const char*, Preconditioner> kPreconditioners[] = {
    {"none", Preconditioner::none},
    {"jacobi", Preconditioner::jacobi},
    {"chebyshev", Preconditioner::chebyshev},
    {"fsai", Preconditioner::fsai},
    {"amg", Preconditioner::amg}};
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

Method method_from_name(const std::string& name) { return value_named("method", kMethods, name); }

const char* method_name(Method method) { return name_in(kMethods, method); }

Preconditioner preconditioner_from_name(const std::string& name) {
  return value_named("preconditioner", kPreconditioners, name);
}

const char* preconditioner_name(Preconditioner preconditioner) {
  return name_in(kPreconditioners, preconditioner);
}

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

namespace {
// In each solve: no text is made in vain.
template <class F>
void require_text(bool holds, F&& text) {
  if (!holds) throw InvalidInput(text());
}

void check_suited(Method method, Preconditioner pc) {
  require_text(pc != Preconditioner::amg || method == Method::cg, [&] {
    return std::string("the preconditioner amg is for the method cg, not ") + method_name(method) +
           ": the recurrences of the others carry M r along, and lose it to the rounding errors "
           "of a cycle in single precision";
  });
  const bool plain = pc == Preconditioner::none || pc == Preconditioner::jacobi;
  require_text(plain || method != Method::bicgstab, [&] {
    return std::string("the preconditioner ") + preconditioner_name(pc) +
           " is for symmetric matrices, and the method bicgstab for others: it takes jacobi or "
           "none";
  });
  require_text(plain || pc == Preconditioner::fsai || method != Method::minres, [&] {
    return std::string("the preconditioner ") + preconditioner_name(pc) +
           " need not be positive definite where A is not, as the method minres wants it: it "
           "takes jacobi, fsai or none";
  });
}
}  // namespace

void check(const SystemSpec& spec) {
  check(PesSpec{spec.engine, spec.pes, spec.blocks, spec.gpus, spec.team});
  check_reach(spec);
  check(spec.factors);
  check_suited(spec.first.method, spec.first.preconditioner);
  require(
      !spec.pairs || (spec.factors.kind == Preconditioner::none && !spec.single_values &&
                      !on_gpus(spec.engine)),
      "entries of complex matrices are stored once on CPUs, where neither factors and levels are "
      "made of them, nor single values");
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
}

void check(const SolveSpec& spec) {
  require_not_negative(spec.rtol, "rtol");
  require_not_negative(spec.atol, "atol");
  check(spec.limits());
  require_text(spec.maxiter >= 0, [&] {
    return "maxiter must not be negative, but is " + std::to_string(spec.maxiter);
  });
  require_text(spec.replace_every >= 0,
               [] { return "replace_every must not be negative (0: never)"; });
  require_text(spec.chebyshev_degree >= 1 && spec.chebyshev_degree <= 64, [&] {
    return "chebyshev_degree must lie between 1 and 64, not " +
           std::to_string(spec.chebyshev_degree);
  });
  check_suited(spec.method, spec.preconditioner);
  check(spec.trace);
  require_text(!spec.leaves_out() || (spec.rtol == 0.0 && spec.atol == 0.0), [&] {
    return std::string("the study ") + study_name(spec.study) +
           " has no residual that could end it: give maxiter, and rtol and atol 0";
  });
}

}  // namespace cpufree
