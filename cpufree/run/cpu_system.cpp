#include "cpufree/run/cpu_system.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_threads/bootstrap.hpp"
#include "cpufree/problem/partition.hpp"
#include "cpufree/solvers/kernel.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kHistoryCapacity = std::int64_t{1} << 20;
constexpr std::chrono::milliseconds kPatience{50};  // between two looks of the host

// A power of two that brings the largest entry of b near 1 where it is far from it, so that squares
// neither underflow nor overflow; it changes no mantissa, hence no iterate but for its scale.
template <class T>
double scale_for(std::span<const T> b) {
  double largest = 0.0;
  for (const T value : b) largest = std::max(largest, std::abs(static_cast<double>(value)));
  if (!(largest > 0.0) || !std::isfinite(largest)) return 1.0;
  const int exponent = std::clamp(std::ilogb(largest), -1000, 1000);  // 2^1000 is finite
  return std::abs(exponent) > 32 ? std::ldexp(1.0, -exponent) : 1.0;
}

template <class T>
using Kernel = void (*)(cpu_threads::Port&, const SolveArgs<Sliced<T, cpu_threads::Port::width>>&);

template <class T, template <class, class> class Algorithm>
Kernel<T> kernel_with(Preconditioner preconditioner) {
  using P = cpu_threads::Port;
  using M = Sliced<T, P::width>;
  switch (preconditioner) {
    case Preconditioner::none:
      return solve_kernel<Algorithm, Identity<T>, P, M>;
    case Preconditioner::jacobi:
      return solve_kernel<Algorithm, Jacobi<T>, P, M>;
    case Preconditioner::chebyshev:
      return solve_kernel<Algorithm, Chebyshev<T>, P, M>;
  }
  throw InvalidInput("unknown preconditioner");
}

template <class T>
Kernel<T> kernel_for(const SolveSpec& spec) {
  switch (spec.method) {
    case Method::cg:
      return kernel_with<T, ConjugateGradient>(spec.preconditioner);
    case Method::prcg:
      return kernel_with<T, PredictRecompute>(spec.preconditioner);
    case Method::pipecg:
      return kernel_with<T, PipelinedCg>(spec.preconditioner);
  }
  throw InvalidInput("unknown method");
}

}  // namespace

template <class T>
CpuSystem<T>::CpuSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                        std::span<const std::int32_t> order, const SystemSpec& spec)
    : rows_(matrix.n) {
  check(spec);
  const int cores = available_cores();
  blocks_ = spec.blocks > 0 ? spec.blocks : std::max(1, cores / spec.pes);
  std::vector<std::int32_t> contiguous;
  if (part.empty()) {
    contiguous = contiguous_partition(matrix.row_ptr, spec.pes);
    part = contiguous;
  }
  auto plan = make_halo_plan(matrix, part, order, spec.pes);
  build_shares(plan);
  fill_report(plan);
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    pes_[pe].local = std::move(plan.local[pe]);
    pes_[pe].local.col = {};
    pes_[pe].local.val = {};
    pes_[pe].local.row_ptr = {};
  }
  lay_out();
}

// Slices, diagonal and row sums of every block, each on a thread of its own.
template <class T>
void CpuSystem<T>::build_shares(HaloPlan<T>& plan) {
  auto plans = make_block_plans(plan, blocks_);
  pes_ = std::vector<Pe>(plan.local.size());
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    pes_[pe].shares.resize(at(blocks_));
    pes_[pe].inverse_diagonal = Array<T>(at(plan.local[pe].rows()));
    for (std::size_t b = 0; b < at(blocks_); ++b) pes_[pe].shares[b].plan = std::move(plans[pe][b]);
  }
  std::vector<double> bounds(pes_.size() * at(blocks_), 0.0);
  in_parallel(static_cast<int>(bounds.size()), [&](int k) {
    const LocalSystem<T>& local = plan.local[at(k / blocks_)];
    Pe& pe = pes_[at(k / blocks_)];
    Share& share = pe.shares[at(k % blocks_)];
    append_slices(local, share.plan.interior, share.slices);
    share.boundary_slice = static_cast<std::int64_t>(share.slices.slice_ptr.size()) - 1;
    append_slices(local, share.plan.boundary, share.slices);
    for (const RowRange range : {share.plan.interior, share.plan.boundary})
      for (std::int32_t i = range.begin; i < range.end; ++i) {
        double sum = 0.0;
        double diagonal = 0.0;
        for (std::int64_t e = local.row_ptr[at(i)]; e < local.row_ptr[at(i) + 1]; ++e) {
          sum += std::abs(static_cast<double>(local.val[at(e)]));
          if (local.col[at(e)] == i) diagonal = std::abs(static_cast<double>(local.val[at(e)]));
        }
        // |a_ii|, so that an indefinite matrix is not taken for an indefinite preconditioner.
        pe.inverse_diagonal.data()[i] = static_cast<T>(diagonal > 0.0 ? 1.0 / diagonal : 1.0);
        bounds[at(k)] = std::max(bounds[at(k)], diagonal > 0.0 ? sum / diagonal : sum);
      }
  });
  lambda_bound_ = *std::ranges::max_element(bounds);
}

template <class T>
void CpuSystem<T>::fill_report(const HaloPlan<T>& plan) {
  report_.blocks = blocks_;
  report_.edge_cut = plan.edge_cut;
  report_.halo_values = plan.halo_values;
  report_.imbalance = plan.imbalance;
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    const LocalSystem<T>& local = plan.local[pe];
    report_.pes.push_back(
        {local.rows(), local.row_ptr.back(), local.ghosts, local.boundary(), local.neighbours});
    for (const Share& share : pes_[pe].shares)
      report_.matrix_bytes += static_cast<double>(
          share.slices.val.size() * sizeof(T) +
          (share.slices.base.size() + share.slices.gather.size()) * sizeof(std::int32_t) +
          share.slices.slice_ptr.size() * sizeof(std::int64_t));
  }
}

// Symmetric memory, and the blocks' views of their shares.
template <class T>
void CpuSystem<T>::lay_out() {
  const int pes = static_cast<int>(pes_.size());
  std::size_t longest = 0;
  for (const Pe& pe : pes_) longest = std::max(longest, at(pe.local.rows()) + at(pe.local.ghosts));
  flags_ = layout_.reserve<Flag>(at(pes * blocks_));
  slots_ = layout_.reserve<Packet>(at(reduce_slot_count(pes, blocks_)));
  p_ = layout_.reserve<T>(longest);
  for (auto& scratch : scratch_) scratch = layout_.reserve<T>(longest);
  heaps_ = std::make_unique<cpu_threads::SymmetricHeaps>(pes, layout_.bytes());
  for (int k = 0; k < pes; ++k) {
    Pe& pe = pes_[at(k)];
    for (Array<T>* vector : {&pe.b, &pe.x, &pe.r, &pe.s}) *vector = Array<T>(at(pe.local.rows()));
    for (const Share& share : pe.shares) {
      const Matrix matrix{share.slices.slice_ptr.data(), share.slices.base.data(),
                          share.slices.gather.data(), share.slices.val.data()};
      const BlockPlan& plan = share.plan;
      pe.views.push_back({matrix,
                          {plan.interior.begin, plan.interior.end, 0},
                          {plan.boundary.begin, plan.boundary.end, share.boundary_slice},
                          {flags_.at(heaps_->base(k)), plan.notify.data(), plan.await.data(),
                           static_cast<std::int32_t>(plan.notify.size()),
                           static_cast<std::int32_t>(plan.await.size())}});
    }
  }
}

template <class T>
void CpuSystem<T>::reserve_vectors(const SolveSpec& spec) {
  const bool pipelined = spec.method == Method::pipecg;
  const bool kept = spec.preconditioner == Preconditioner::chebyshev;
  for (Pe& pe : pes_) {
    const auto need = [&](Array<T>& vector, bool needed) {
      if (needed && vector.data() == nullptr) vector = Array<T>(at(pe.local.rows()));
    };
    for (Array<T>* vector : {&pe.z, &pe.w, &pe.n}) need(*vector, pipelined);
    for (Array<T>* vector : {&pe.out, &pe.rest}) need(*vector, kept);
    need(pe.u, kept && spec.method != Method::cg);
    need(pe.q, kept && pipelined);
  }
}

template <class T>
void CpuSystem<T>::load(std::span<const T> b, std::span<const T> x0, double scale) {
  for (Pe& pe : pes_) {
    for (std::size_t i = 0; i < pe.local.global_row.size(); ++i) {
      const std::size_t row = at(pe.local.global_row[i]);
      pe.b.data()[i] = static_cast<T>(scale * static_cast<double>(b[row]));
      if (!x0.empty()) pe.x.data()[i] = static_cast<T>(scale * static_cast<double>(x0[row]));
    }
  }
}

template <class T>
SolveParams CpuSystem<T>::params(const SolveSpec& spec, bool has_guess) const {
  SolveParams params;
  params.rtol = spec.rtol;
  params.atol = spec.atol;
  params.maxiter = spec.maxiter;
  params.replace_every = spec.replace_every;
  params.chebyshev_degree = spec.chebyshev_degree;
  params.lambda_bound = lambda_bound_;
  params.roundoff = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2.0;
  params.has_guess = has_guess;
  params.history_capacity = std::clamp<std::int64_t>(spec.maxiter + 1, 2, kHistoryCapacity);
  return params;
}

template <class T>
auto CpuSystem<T>::arguments(const SolveParams& params, Outcome& outcome,
                             std::vector<double>& history) -> std::vector<SolveArgs<Matrix>> {
  std::vector<SolveArgs<Matrix>> args(pes_.size());
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    const Pe& pe = pes_[k];
    std::byte* const heap = heaps_->base(static_cast<int>(k));
    SolveArgs<Matrix>& a = args[k];
    a.params = params;
    a.vectors = {.b = pe.b.data(),
                 .x = pe.x.data(),
                 .r = pe.r.data(),
                 .s = pe.s.data(),
                 .p = p_.at(heap),
                 .scratch = {scratch_[0].at(heap), scratch_[1].at(heap)},
                 .inverse_diagonal = pe.inverse_diagonal.data(),
                 .z = pe.z.data(),
                 .w = pe.w.data(),
                 .n = pe.n.data(),
                 .u = pe.u.data(),
                 .q = pe.q.data(),
                 .out = pe.out.data(),
                 .rest = pe.rest.data()};
    a.shares = pe.views.data();
    a.interior = pe.local.interior;
    a.send_ptr = pe.local.send_ptr.data();
    a.destinations = pe.local.destinations.data();
    a.global_row = pe.local.global_row.data();
    a.slots = slots_.at(heap);
  }
  args[0].outcome = &outcome;
  args[0].history = history.data();
  return args;
}

// Runs the kernels to their end, listening to the host meanwhile. Returns the seconds it took.
template <class T>
double CpuSystem<T>::run(const SolveSpec& spec, const std::vector<SolveArgs<Matrix>>& args,
                         const Progress& progress) {
  using Seconds = std::chrono::duration<double>;
  const auto kernel = kernel_for<T>(spec);
  cpu_threads::LaunchConfig config;
  config.pes = static_cast<int>(pes_.size());
  config.blocks = blocks_;
  config.heaps = heaps_->bases();
  config.wait_limit =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(spec.wait_limit));
  // Channels start at epoch 0 in every launch; no kernel runs now.
  for (int pe = 0; pe < config.pes; ++pe) {
    std::memset(static_cast<void*>(flags_.at(heaps_->base(pe))), 0,
                at(config.pes * blocks_) * sizeof(Flag));
    std::memset(static_cast<void*>(slots_.at(heaps_->base(pe))), 0,
                at(reduce_slot_count(config.pes, blocks_)) * sizeof(Packet));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return Seconds(std::chrono::steady_clock::now() - start).count(); };
  const auto body = [&](cpu_threads::Port& port) { kernel(port, args[at(port.pe())]); };
  auto patience = kPatience;
  if (spec.time_limit > 0.0)
    patience =
        std::chrono::milliseconds(1 + static_cast<int>(std::min(49.0, 100.0 * spec.time_limit)));
  const auto listen = [&](std::int64_t iteration, double residual) {
    unsigned notes = kNoteNone;
    if (progress && !progress(iteration, residual)) notes |= kNoteInterrupt;
    if (spec.time_limit > 0.0 && elapsed() > spec.time_limit) notes |= kNoteTimeLimit;
    return notes;
  };
  if (config.pes * config.blocks == 1) {
    auto next = start + patience;
    cpu_threads::run_here(config.heaps, body, [&](std::int64_t iteration, double residual) {
      const auto now = std::chrono::steady_clock::now();
      if (now < next) return static_cast<unsigned>(kNoteNone);
      next = now + patience;
      return listen(iteration, residual);
    });
    return elapsed();
  }
  cpu_threads::Launch launch(config, body);
  while (!launch.wait_for(patience)) launch.note(listen(launch.iteration(), launch.residual()));
  const double seconds = elapsed();
  if (!launch.gave_up()) return seconds;
  std::vector<BlockReport> blocks;
  for (std::size_t k = 0; k < launch.records().size(); ++k)
    blocks.push_back(
        {static_cast<int>(k) / blocks_, static_cast<int>(k) % blocks_, launch.records()[k]});
  throw WaitTimeout(std::move(blocks));
}

template <class T>
SolveResult<T> CpuSystem<T>::solve(std::span<const T> b, std::span<const T> x0,
                                   const SolveSpec& spec, const Progress& progress) {
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone)
    throw EngineError("this system is solving already; use one system for each concurrent solve");
  check(spec);
  require(b.size() == at(rows_), "the right-hand side has " + std::to_string(b.size()) +
                                     " entries, the matrix " + std::to_string(rows_) + " rows");
  require(x0.empty() || x0.size() == at(rows_), "x0 has " + std::to_string(x0.size()) +
                                                    " entries, the matrix " +
                                                    std::to_string(rows_) + " rows");
  SolveResult<T> result;
  const double scale = scale_for(b);
  SolveParams given = params(spec, !x0.empty());
  given.atol *= scale;
  reserve_vectors(spec);
  load(b, x0, scale);
  result.history.resize(at(given.history_capacity));
  const auto args = arguments(given, result.outcome, result.history);
  Progress tell;
  if (progress) tell = [&](std::int64_t i, double r) { return progress(i, r / scale); };
  result.seconds = run(spec, args, tell);
  result.history.resize(at(result.outcome.history_count));
  result.x.resize(at(rows_));
  for (const Pe& pe : pes_)
    for (std::size_t i = 0; i < pe.local.global_row.size(); ++i)
      result.x[at(pe.local.global_row[i])] =
          static_cast<T>(static_cast<double>(pe.x.data()[i]) / scale);
  const bool lost =
      scale != 1.0 && !std::ranges::all_of(result.x, [](T v) { return std::isfinite(v); });
  if (lost) result.outcome.reason = Reason::diverged_nanorinf;  // x is out of its type's range
  for (double* norm :
       {&result.outcome.residual, &result.outcome.true_residual, &result.outcome.bnorm})
    *norm /= scale;
  for (double& norm : result.history) norm /= scale;
  return result;
}

template <class T>
std::unique_ptr<System<T>> make_system(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                                       std::span<const std::int32_t> order,
                                       const SystemSpec& spec) {
  return std::make_unique<CpuSystem<T>>(matrix, part, order, spec);
}

template class CpuSystem<float>;
template class CpuSystem<double>;
template std::unique_ptr<System<float>> make_system(const CsrView<float>&,
                                                    std::span<const std::int32_t>,
                                                    std::span<const std::int32_t>,
                                                    const SystemSpec&);
template std::unique_ptr<System<double>> make_system(const CsrView<double>&,
                                                     std::span<const std::int32_t>,
                                                     std::span<const std::int32_t>,
                                                     const SystemSpec&);

}  // namespace cpufree
