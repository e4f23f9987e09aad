#include "cpufree/solvers/cpu/system.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/distributed/team_peers.hpp"
#include "cpufree/launch/cpu/run.hpp"
#include "cpufree/launch/cpu/trace.hpp"
#include "cpufree/plugins/cpu/find_kernel.hpp"

namespace cpufree {

namespace {

// Rows of a level of multigrid up to which each PE works on all of them: PEs share the cores, so
// that this costs what it saves in waiting for more.
constexpr std::int32_t kGathered = 1000;
constexpr std::size_t kMostPackets = 0;  // threads share caches: plain stores are quicker

// `nodes`: PEs are in several. `singles`: values are read in single precision.
template <class T>
CpuKernel<T> kernel_for(const SolveSpec& spec, bool nodes, bool singles) {
  if (nodes && spec.study != Study::none && spec.study != Study::trace)
    throw Unsupported("studies are of PEs that reach one another's memory, not of several nodes");
  return find_cpu_kernel<T>(spec, {nodes, singles});
}

}  // namespace

template <class T>
CpuSystem<T>::CpuSystem(std::int64_t rows, const SystemSpec& spec)
    : rows_(static_cast<std::int32_t>(rows)),
      team_(spec.team),
      own_(OwnPes::of(spec.team.get(), spec.pes)),
      nodes_(spec.pes),
      pairs_(spec.pairs),
      single_values_(spec.single_values),
      factor_spec_(spec.factors),
      multigrid_options_(multigrid_options(spec.factors, kGathered)) {
  check(spec);
  if (in_nodes(spec)) nodes_ = NodeTable::of_size(spec.pes, spec.node_size);
  check_single_values<T>(spec, nodes_.count() > 1);
  blocks_ = spec.blocks > 0 ? spec.blocks : std::max(1, available_cores() / spec.pes);
  if (team_) blocks_ = least(*team_, "number of blocks", blocks_);
  pes_ = std::vector<Pe>(at(own_.here));
}

template <class T>
CpuSystem<T>::CpuSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                        std::span<const std::int32_t> order, const SystemSpec& spec)
    : CpuSystem(matrix.n, spec) {
  auto plan = plan_of(matrix, part, order, spec.pes, RowArrays::given);
  timer_.lap("plan");
  if (team_) gathering_.emplace(team_, plan);
  std::optional<multigrid::Hierarchy> hierarchy;
  if (factor_spec_.multigrid()) {
    if (nodes_.count() > 1)
      throw Unsupported("the preconditioner amg is for PEs of one node; choose another");
    hierarchy = hierarchy_of(matrix, plan, multigrid_options_, factor_spec_, row_owner_);
    timer_.lap("multigrid");
  }
  keep_own(plan, own_);
  build(plan, spec, std::move(hierarchy));
}

template <class T>
CpuSystem<T>::CpuSystem(SlabPlan<T> slab, const SystemSpec& spec)
    : CpuSystem(slab.plan.local.at(0).rows(), spec) {
  first_row_ = slab.first;
  refuse_multigrid_of_slabs(factor_spec_);
  build(slab.plan, spec);
}

// `plan` has the PEs of this process. `hierarchy`: of multigrid, if it is asked for.
template <class T>
void CpuSystem<T>::build(HaloPlan<T>& plan, const SystemSpec& spec,
                         std::optional<multigrid::Hierarchy> hierarchy) {
  const auto peers = peers_of(team_.get(), spec.pes);
  const Shares shares = shares_of(plan, *peers);
  Extent extent = extent_of(shares);
  const std::size_t longest = extent.rows_and_ghosts;
  packets_ = use_packets(spec, shares, kMostPackets);
  report_ = report_of(shares, spec, blocks_, packets_);
  report_.nodes = nodes_.count();
  report_.single_values = single_values_;
  // Padded entries of a slice read the column after the one before them, whichever PE owns that:
  // times zero, but it must not be written meanwhile.
  auto plans = make_block_plans(plan, *peers, blocks_, Awaited::everybody, pairs_ ? 2 : 1);
  if (packets_) {
    const BoundaryRanges boundaries = gather_boundaries(plans, *peers);
    for (std::size_t k = 0; k < pes_.size(); ++k)
      pes_[k].ghost_source = ghost_sources(plan.local[k], boundaries);
    count_destinations_from_ghosts(plan, shares);
  }
  if (nodes_.count() > 1) plan_nodes(plan, plans, extent);
  timer_.lap("blocks");
  build_shares(plan, std::move(plans));
  timer_.lap("layout");
  if (hierarchy) {
    lay_out_multigrid(*std::move(hierarchy), plan, longest);
    timer_.lap("levels");
  }
  make_factors([&](std::size_t k) { return own_rows_of(plan.local[k], first_row_); });
  if (factor_spec_.any()) timer_.lap("factors");
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    for (const Share& share : pes_[pe].shares) report_.matrix_bytes += share.bytes();
    pes_[pe].local = std::move(plan.local[pe]);
    const std::vector<std::int32_t>& row = pes_[pe].local.global_row;
    pes_[pe].consecutive =
        std::ranges::adjacent_find(row, [](auto a, auto b) { return b != a + 1; }) == row.end();
    pes_[pe].local.col = {};
    pes_[pe].local.val = {};
    pes_[pe].local.row_ptr = {};
    pes_[pe].local.given_col = nullptr;
    pes_[pe].local.given_val = nullptr;
  }
  if (team_) report_.matrix_bytes = sum(*team_, "bytes of the matrix", report_.matrix_bytes);
  lay_out(extent);
  timer_.lap("memory");
  report_.seconds = timer_.laps();
}

// What the PEs of this process send to other nodes, and the room that it takes in vectors.
template <class T>
void CpuSystem<T>::plan_nodes(HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>>& plans,
                              Extent& extent) {
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    LocalSystem<T>& local = plan.local[k];
    Pe& pe = pes_[k];
    pe.far = make_remote_plan(local, plans[k], own_.first + static_cast<int>(k), nodes_.of_pe());
    for (const auto& runs : pe.far.runs)
      pe.runs.push_back({runs.data(), static_cast<std::int32_t>(runs.size())});
    extent.rows_and_ghosts =
        std::max(extent.rows_and_ghosts, at(local.rows()) + at(local.ghosts) + at(pe.far.staged));
  }
  if (team_) extent.rows_and_ghosts = most(*team_, "length of vectors", extent.rows_and_ghosts);
}

// What all PEs have on their diagonals, from what the blocks of this process have.
template <class T>
void CpuSystem<T>::take_diagonals(const std::vector<DiagonalFacts>& of_blocks) {
  diagonal_ = {};
  for (const DiagonalFacts& some : of_blocks) diagonal_.join(some);
  if (team_) {
    diagonal_.bound = most(*team_, "bound of the spectrum", diagonal_.bound);
    diagonal_.most = most(*team_, "largest entry of the diagonal", diagonal_.most);
    diagonal_.least = -most(*team_, "smallest entry of the diagonal", -diagonal_.least);
  }
  report_.diagonal_spread = diagonal_.spread();
}

// Writes the inverse diagonal of the rows of a slice, the first of which is `row`.
template <class T>
void CpuSystem<T>::invert_diagonal(Pe& pe, const Share& share, std::size_t slice, std::int32_t row,
                                   std::int32_t rows, DiagonalFacts& facts) const {
  T* const inverse = pe.vectors[index_.inverse_diagonal].data() + row;
  const auto sizes = row_sizes(share.slices, slice, row);
  for (std::int32_t l = 0; l < rows; ++l) {
    inverse[l] = static_cast<T>(sizes[at(l)].inverse());
    facts.take(sizes[at(l)]);
  }
}

// Slices, diagonal and row sums of every block, each on a thread of its own.
template <class T>
void CpuSystem<T>::build_shares(HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>> plans) {
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    pes_[pe].shares.resize(at(blocks_));
    pes_[pe].vectors[index_.inverse_diagonal] = Array<T>(at(plan.local[pe].rows()));
  }
  for (std::size_t pe = 0; pe < pes_.size(); ++pe)
    for (std::size_t b = 0; b < at(blocks_); ++b) pes_[pe].shares[b].plan = std::move(plans[pe][b]);
  std::vector<DiagonalFacts> found(pes_.size() * at(blocks_));
  in_parallel(static_cast<int>(found.size()), [&](int k) {
    Pe& pe = pes_[at(k / blocks_)];
    Share& share = pe.shares[at(k % blocks_)];
    DiagonalFacts facts;
    share.slices.pattern->pairs = pairs_;
    share.make(plan.local[at(k / blocks_)], Indices::wide,
               [&](std::size_t slice, std::int32_t row, std::int32_t rows) {
                 invert_diagonal(pe, share, slice, row, rows, facts);
               });
    if (single_values_) share.round_values();
    found[at(k)] = facts;
  });
  take_diagonals(found);
}

// Symmetric memory, and the blocks' views of their shares.
template <class T>
void CpuSystem<T>::lay_out(const Extent& extent) {
  extent_ = extent;
  heap_ = Heap<T>(own_.all, blocks_, extent, packets_ ? extent.ghosts : 0, nodes_.count(),
                  factor_spec_.any(), 1, multigrid_ ? multigrid_->extent() : LevelsExtent());
  heaps_ = team_ ? std::make_unique<CpuHeaps>(*team_, heap_.bytes)
                 : std::make_unique<CpuHeaps>(own_.all, heap_.bytes);
  for (int k = 0; k < own_.here; ++k) {
    remote_.push_back(
        {nodes_.view(), heap_.node_board(heaps_->base(own_.first + k)), pes_[at(k)].runs.data()});
    for (const Share& share : pes_[at(k)].shares)
      pes_[at(k)].views.push_back(
          share.view(heap_.flags.at(heaps_->base(own_.first + k)), pes_[at(k)].local.interior));
  }
  show_factors();
  if (multigrid_) multigrid_->show(heap_, *heaps_, own_);
}

template <class T>
void CpuSystem<T>::reserve_vectors(const SolveSpec& spec) {
  const auto needed = needed_vectors(spec);
  for (Pe& pe : pes_) {
    for (std::size_t k = 0; k < kPrivateVectors; ++k)
      if (needed[k] && pe.vectors[k].data() == nullptr)
        pe.vectors[k] = Array<T>(at(pe.local.rows()));
    if (makes_noise(spec) && first_row_ > 0 && pe.names.empty())
      pe.names = row_names(pe.local.global_row, first_row_);
  }
}

namespace {
// Calls f with a function that tells the row of the matrix from that of a PE.
template <class Pe, class F>
void with_rows(const Pe& pe, F&& f) {
  const std::int32_t* const rows = pe.local.global_row.data();
  if (pe.consecutive && !pe.local.global_row.empty())
    f([first = at(*rows)](std::size_t i) { return first + i; });  // which compilers vectorise
  else
    f([rows](std::size_t i) { return at(rows[i]); });
}
}  // namespace

template <class T>
void CpuSystem<T>::load(std::span<const T> b, std::span<const T> x0, double scale) {
  for (Pe& pe : pes_)
    with_rows(pe, [&](auto row) {
      const std::size_t rows = pe.local.global_row.size();
      const auto take = [&](T* to, const T* from) {
        for (std::size_t i = 0; i < rows; ++i)
          to[i] = static_cast<T>(scale * static_cast<double>(from[row(i)]));
      };
      take(pe.vectors[index_.b].data(), b.data());
      if (!x0.empty()) take(pe.vectors[index_.x].data(), x0.data());
    });
}

// out = x / scale. Returns whether all entries are finite.
template <class T>
bool CpuSystem<T>::store(std::span<T> out, double scale) const {
  const double inverse = 1.0 / scale;  // exact: a power of two
  std::int64_t lost = 0;
  for (const Pe& pe : pes_)
    with_rows(pe, [&, to = out.data(), x = pe.vectors[index_.x].data()](auto row) {
      const std::size_t rows = pe.local.global_row.size();
      for (std::size_t i = 0; i < rows; ++i) {
        const T value = static_cast<T>(inverse * static_cast<double>(x[i]));
        to[row(i)] = value;
        lost += std::abs(value) <= std::numeric_limits<T>::max() ? 0 : 1;
      }
    });
  return lost == 0;
}

template <class T>
auto CpuSystem<T>::arguments(const SolveSpec& spec, const SolveParams& params, double scale,
                             SolveResult& result) -> std::vector<SolveArgs<Matrix>> {
  std::vector<SolveArgs<Matrix>> args(pes_.size());
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    const Pe& pe = pes_[k];
    std::byte* const heap = heaps_->base(own_.first + static_cast<int>(k));
    SolveArgs<Matrix>& a = args[k];
    a.params = params;
    a.atol[0] = spec.atol * scale;
    place_private(a.vectors, spec, [&](std::size_t v) { return pe.vectors[v].data(); });
    heap_.place(a, heap);
    a.shares = pe.views.data();
    a.factors = pe.factor_views.data();
    if (multigrid_) a.cycle = multigrid_->args(k);
    a.rows = pe.local.rows();
    a.send_ptr = pe.local.send_ptr.data();
    a.destinations = pe.local.destinations.data();
    a.source = pe.ghost_source.data();
    a.inverse_diagonal = pe.vectors[index_.inverse_diagonal].data();
    a.global_row = pe.names.empty() ? pe.local.global_row.data() : pe.names.data();
  }
  if (own_.speaker()) {
    args[0].outcome = &result.outcome;
    args[0].history = history_.data();
  }
  return args;
}

template <class T>
cpu_threads::LaunchConfig CpuSystem<T>::launch_config() const {
  cpu_threads::LaunchConfig config;
  config.pes = own_.all;
  config.blocks = blocks_;
  config.first = own_.first;
  config.here = own_.here;
  config.heaps = heaps_->bases();
  config.remote = remote_.data();
  if (team_) config.leave_flag = heap_.leave.at(heaps_->base(own_.first));
  return config;
}

// Runs the kernels to their end, listening to the host meanwhile.
template <class T>
ThreadsRun CpuSystem<T>::run(const SolveSpec& spec, const std::vector<SolveArgs<Matrix>>& args,
                             const Progress& progress) {
  const auto kernel = kernel_for<T>(spec, nodes_.count() > 1, single_values_);
  // Channels start at epoch 0 in every launch. No kernel runs now, in any process: each has told
  // the others of the end of its last one (report_waits), or the team has failed.
  for (int k = 0; k < own_.here; ++k)
    std::memset(static_cast<void*>(heaps_->base(own_.first + k)), 0, heap_.channel_bytes);
  // A kernel must not send to a PE whose process has not cleared its channels.
  if (team_) barrier(*team_, "channels are clear");
  return run_on_threads(
      launch_config(), spec.limits(),
      [&](cpu_threads::Port& port) { kernel(port, args[at(port.pe() - own_.first)]); }, progress,
      team_.get());
}

template <class T>
SolveResult CpuSystem<T>::solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                                const SolveSpec& spec, const Progress& progress) {
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone) throw SystemBusy();
  require_usable(usable_);
  LapTimer timer;
  check_solve(spec, b, x0, out, rows_);
  require_factors(spec, factor_spec_);
  if (!b.on_host() || !x0.on_host() || !out.on_host())
    throw Unsupported(
        "the engine cpu_threads takes vectors in host memory only; copy b to a NumPy array, or use "
        "the engine cuda_p2p");
  Given given{largest_size(b.span()), x0.size != 0};
  if (team_) given = given_in_all(*team_, given);
  const double scale = scale_from(given.largest);
  const SolveParams params = params_of<T>(spec, diagonal_.bound, given.guess);
  reserve_vectors(spec);
  timer.lap("memory");
  load(b.span(), x0.span(), scale);
  timer.lap("upload");
  SolveResult result = run_all(spec, params, scale, unscaled(progress, scale));
  timer.lap("launch", "kernel", result.seconds);
  bool finite = store(out.span(), scale);
  if (team_) {
    share_end(*team_, result, finite);
    if (gathering_) gathering_->gather(out.span(), spec.gather);
  }
  unscale(result, scale, scale != 1.0 && !finite && !spec.leaves_out());
  timer.lap("download");
  result.laps = timer.laps();
  return result;
}

template <class T>
SolveResult CpuSystem<T>::run_all(const SolveSpec& spec, const SolveParams& params, double scale,
                                  const Progress& progress) {
  SolveResult result;
  if (history_.size() < at(params.history_capacity))
    history_ = Array<double>(at(params.history_capacity));
  auto args = arguments(spec, params, scale, result);
  std::vector<Split> splits(spec.study == Study::split ? pes_.size() * at(blocks_) : 0);
  for (std::size_t k = 0; k < args.size(); ++k)
    if (!splits.empty()) args[k].splits = splits.data() + k * at(blocks_);
  std::optional<CpuTrace> trace;
  if (spec.study == Study::trace) {
    trace.emplace(spec.trace, launch_config(), team_.get());
    for (std::size_t k = 0; k < args.size(); ++k)
      args[k].traces = trace->rings(static_cast<int>(k));
  }
  const Progress tell = trace ? trace->watched(progress) : progress;
  const ThreadsRun ran = launch_traced(trace, [&] { return run(spec, args, tell); });
  result.seconds = ran.seconds;
  result.disturbances = ran.disturbances;
  if (trace) result.trace = trace->report(team_.get());
  if (spec.study == Study::split)
    result.split = mean_of(team_ ? join(*team_, "splits", splits) : splits);
  if (own_.speaker())
    result.history.assign(history_.data(), history_.data() + result.outcome.history_count);
  return result;
}

template class CpuSystem<float>;
template class CpuSystem<double>;

}  // namespace cpufree
