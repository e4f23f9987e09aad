#include "cpufree/library/translate.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/plugins/cpu/levels.hpp"

namespace cpufree {

namespace {

// Numbers of the C interface do not change with the order of enumerators here.
template <class E>
struct Numbered {
  std::int32_t number;
  E value;
};
constexpr Numbered<Engine> kEngines[] = {{CPUFREE_CPU_THREADS, Engine::cpu_threads},
                                         {CPUFREE_CUDA_P2P, Engine::cuda_p2p}};
constexpr Numbered<Method> kMethods[] = {
    {CPUFREE_CG, Method::cg}, {CPUFREE_PRCG, Method::prcg}, {CPUFREE_PIPECG, Method::pipecg}};
constexpr Numbered<Preconditioner> kPreconditioners[] = {
    {CPUFREE_NONE, Preconditioner::none},
    {CPUFREE_JACOBI, Preconditioner::jacobi},
    {CPUFREE_CHEBYSHEV, Preconditioner::chebyshev},
    {CPUFREE_FSAI, Preconditioner::fsai},
    {CPUFREE_AMG, Preconditioner::amg}};
constexpr Numbered<Reason> kReasons[] = {
    {CPUFREE_CONVERGED_RTOL, Reason::converged_rtol},
    {CPUFREE_CONVERGED_ATOL, Reason::converged_atol},
    {CPUFREE_DIVERGED_ITS, Reason::diverged_its},
    {CPUFREE_DIVERGED_DTOL, Reason::diverged_dtol},
    {CPUFREE_DIVERGED_NANORINF, Reason::diverged_nanorinf},
    {CPUFREE_DIVERGED_INDEFINITE_MAT, Reason::diverged_indefinite_mat},
    {CPUFREE_DIVERGED_INDEFINITE_PC, Reason::diverged_indefinite_pc},
    {CPUFREE_DIVERGED_BREAKDOWN, Reason::diverged_breakdown},
    {CPUFREE_STAGNATED, Reason::stagnated},
    {CPUFREE_TIME_LIMIT, Reason::time_limit},
    {CPUFREE_INTERRUPTED, Reason::interrupted}};

template <class E, std::size_t N>
E value_of(const char* what, const Numbered<E> (&all)[N], std::int32_t number) {
  for (const auto& one : all)
    if (one.number == number) return one.value;
  throw InvalidInput(std::string(what) + " is " + std::to_string(number) +
                     ", which is none of the numbers in cpufree.h");
}

template <class T>
std::span<const T> array_of(const char* name, const T* data, std::int64_t size) {
  require(size == 0 || data != nullptr, std::string(name) + " is missing: it is a null pointer");
  return {data, at(size)};
}

Machine machine_of(const cpufree_setup& given) {
  Machine machine;
  require(given.numbers == 0 || (given.name != nullptr && given.value != nullptr),
          "numbers of a machine have a name and a value each");
  for (std::int32_t k = 0; k < given.numbers; ++k) {
    bool known = false;
    each_number(machine, [&](const char* name, double& number) {
      if (std::string(name) != given.name[k]) return;
      number = given.value[k];
      known = true;
    });
    require(known, std::string("planners go by no number '") + given.name[k] + "' of a machine");
    require(given.value[k] > 0.0,
            std::string("the number '") + given.name[k] + "' of a machine must be above 0");
  }
  return machine;
}

void add(std::string& text, const char* format, auto... values) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), format, values...);
  text += line.data();
}

}  // namespace

template <class T>
CsrView<T> matrix_of(const cpufree_matrix& given) {
  require(given.rows >= 1, "a matrix has a row at least, not " + std::to_string(given.rows));
  require(given.nonzeros >= 0, "nonzeros must not be negative");
  const auto row_ptr = array_of("row_ptr", given.row_ptr, std::int64_t{given.rows} + 1);
  require(
      row_ptr.front() == 0 && row_ptr.back() == given.nonzeros && std::ranges::is_sorted(row_ptr),
      "row_ptr must rise from 0 to the number of nonzeros, " + std::to_string(given.nonzeros));
  return {given.rows, row_ptr, array_of("col", given.col, given.nonzeros),
          array_of("val", static_cast<const T*>(given.val), given.nonzeros)};
}

SystemSpec system_spec_of(const cpufree_setup& given, std::int32_t rows) {
  SystemSpec spec;
  spec.engine = value_of("engine", kEngines, given.engine);
  spec.pes = given.pes;
  spec.blocks = given.blocks;
  const auto gpus = array_of("gpu", given.gpu, given.gpus);
  spec.gpus.assign(gpus.begin(), gpus.end());
  spec.machine = machine_of(given);
  spec.first.method = value_of("method", kMethods, given.method);
  spec.first.preconditioner = value_of("preconditioner", kPreconditioners, given.preconditioner);
  check(spec.first);
  if (set_up_with_matrix(spec.first.preconditioner)) {
    spec.factors.kind = spec.first.preconditioner;
    spec.factors.level = given.pc_level;
  }
  require(given.modes == 0 || spec.factors.multigrid(),
          "near_nullspace is for the preconditioner CPUFREE_AMG: leave modes 0");
  require(given.modes >= 0, "modes must not be negative");
  require(given.node == nullptr || given.modes > 0,
          "node needs near_nullspace: what the unknowns of a node have in common");
  if (given.modes > 0)
    spec.factors.near = std::make_shared<multigrid::NearNullSpace>(multigrid::NearNullSpace::of(
        array_of("near_nullspace", given.near_nullspace, std::int64_t{rows} * given.modes),
        given.modes, {given.node, given.node == nullptr ? 0 : at(rows)}));
  check(spec);
  return spec;
}

SolveSpec solve_spec_of(const cpufree_options& given, const SolveSpec& like, std::int32_t rows) {
  SolveSpec spec = like;
  if (given.method != CPUFREE_AS_SET_UP) spec.method = value_of("method", kMethods, given.method);
  if (given.preconditioner != CPUFREE_AS_SET_UP)
    spec.preconditioner = value_of("preconditioner", kPreconditioners, given.preconditioner);
  spec.rtol = given.rtol;
  spec.atol = given.atol;
  spec.maxiter = given.maxiter == -1 ? iterations_without_limit(rows) : given.maxiter;
  spec.time_limit = given.time_limit;
  spec.wait_limit = given.wait_limit;
  spec.replace_every = given.replace_every;
  spec.chebyshev_degree = given.chebyshev_degree;
  check(spec);
  return spec;
}

std::int32_t number_of(Reason reason) {
  for (const auto& one : kReasons)
    if (one.value == reason) return one.number;
  return 0;
}

const char* name_of_reason(std::int32_t number) {
  for (const auto& one : kReasons)
    if (one.number == number) return reason_name(one.value);
  return "UNKNOWN";
}

cpufree_result result_of(const SolveResult& solved, const SolveSpec& spec) {
  const Outcome& o = solved.outcome;
  cpufree_result result{};
  result.converged = o.reason == Reason::converged_rtol || o.reason == Reason::converged_atol;
  result.reason = number_of(o.reason);
  result.iterations = o.iterations;
  result.residual = o.residual;
  result.true_residual = o.true_residual;
  result.bnorm = o.bnorm;
  result.tolerance = std::max(spec.rtol * o.bnorm, spec.atol);
  result.seconds = solved.seconds;
  result.lambda_max = o.lambda_max;
  result.reductions = o.reductions;
  result.exchanges = o.exchanges;
  result.replacements = o.replacements;
  return result;
}

cpufree_layout layout_of(const PlanReport& plan, const SystemSpec& spec) {
  cpufree_layout layout{};
  for (const PlanReport::Pe& pe : plan.pes) {
    layout.rows += pe.rows;
    layout.nonzeros += pe.nnz;
  }
  for (const auto& one : kEngines)
    if (one.value == spec.engine) layout.engine = one.number;
  layout.pes = static_cast<std::int32_t>(plan.pes.size());
  layout.blocks = plan.blocks;
  layout.threads = plan.threads;
  layout.levels = static_cast<std::int32_t>(plan.levels.size());
  layout.halo_values = plan.halo_values;
  layout.imbalance = plan.imbalance;
  layout.matrix_bytes = plan.matrix_bytes;
  return layout;
}

std::string text_of(const PlanReport& plan, const SystemSpec& spec, double setup_seconds,
                    const SolveResult* last) {
  const cpufree_layout layout = layout_of(plan, spec);
  std::string text;
  add(text, "matrix: %lld rows, %lld nonzeros, %.3g MB\n", static_cast<long long>(layout.rows),
      static_cast<long long>(layout.nonzeros), layout.matrix_bytes / 1e6);
  const std::string level = on_gpus(spec.engine) ? "" : ", kernels for " + cpu_level();
  add(text, "engine: %s, %d PEs of %d blocks%s\n", plan.engine.c_str(), layout.pes, layout.blocks,
      level.c_str());
  add(text, "preconditioner: %s", preconditioner_name(spec.first.preconditioner));
  if (layout.levels > 0) add(text, ", %d levels", layout.levels);
  add(text, "\nset-up: %.3g s\n", setup_seconds);
  if (last == nullptr) return text;
  const Outcome& o = last->outcome;
  add(text, "last solve: %s after %lld iterations in %.3g s, ||b - A x|| = %.3g, ||b|| = %.3g\n",
      reason_name(o.reason), static_cast<long long>(o.iterations), last->seconds, o.true_residual,
      o.bnorm);
  return text;
}

template CsrView<float> matrix_of(const cpufree_matrix&);
template CsrView<double> matrix_of(const cpufree_matrix&);

}  // namespace cpufree
