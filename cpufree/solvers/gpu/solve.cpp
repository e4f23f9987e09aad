#include "cpufree/solvers/gpu/solve.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/machine.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"
#include "cpufree/solvers/host/gather.hpp"

namespace cpufree {

using gpu::OnDevice;

template <class T>
KernelsWanted kernels_wanted(const GpuPlace& place, const LayoutFacts& facts,
                             const SolveSpec& spec) {
  return {.kinds = kinds_of(facts),
          .on_chip = facts.on_chip,
          .devices = place.devices,
          .streams = on_chip_request<T>(place, facts, spec).slots != 0};
}

template <class T>
GpuSolve<T>::GpuSolve(const GpuPlace& place, const LayoutFacts& facts, PeMemories<T> pes,
                      double bound)
    : place_(place),
      facts_(facts),
      lambda_bound_(bound),
      pes_(std::move(pes)),
      runner_(place.devices, facts.blocks),
      args_(place.devices.size()) {}

// Whether there are rings depends on the matrix, not on the solve.
template <class T>
void GpuSolve<T>::link(const SystemLayout<T>& layout) {
  const bool rings = kernels_wanted<T>(place_, facts_, place_.spec.first).streams;
  link_pes(place_, layout, rings, heap_, *heaps_, pes_);
  show_multigrid();
}

template <class T>
void GpuSolve<T>::choose_first(PlanReport& report) {
  SolveSpec first = place_.spec.first;
  if (multigrid_) first.method = Method::cg, first.preconditioner = Preconditioner::amg;
  const Choice& choice = choice_for(first);
  report.resident_vectors = choice.residency.vectors;
  report.resident_matrix = choice.residency.matrix;
  report.ring_slots = choice.residency.ring.slots;
  report.shared_bytes = static_cast<std::int64_t>(choice.kernel.dynamic_bytes);
}

template <class T>
void GpuSolve<T>::make_heaps(std::size_t entries) {
  const std::vector<int>& devices = place_.devices;
  heap_ =
      Heap<T>(place_.own.all, facts_.blocks, facts_.extent, facts_.packets, place_.nodes.count(),
              place_.spec.factors.any(), 1, multigrid_ ? multigrid_->extent() : LevelsExtent());
  const remote::Choice library{engine_name(place_.spec.engine), place_.spec.remote_library};
  heaps_ = place_.team() == nullptr
               ? std::make_unique<GpuHeaps>(devices, heap_.bytes)
               : std::make_unique<GpuHeaps>(*place_.team(), library, devices[0], heap_.bytes,
                                            place_.nodes);
  outcome_ = Array<Outcome>(devices[0], std::size_t{1});
  std::vector<gpuStream_t> streams;
  for (std::size_t k = 0; k < devices.size(); ++k) streams.push_back(runner_.stream(k));
  transfer_ = std::make_unique<GpuTransfer<T>>(devices, streams, entries);
}

template <class T>
auto GpuSolve<T>::choice_for(const SolveSpec& spec) -> const Choice& {
  const std::tuple key(spec.method, spec.preconditioner, spec.study);
  if (const auto found = choices_.find(key); found != choices_.end()) return found->second;
  Choice choice;
  choice.kernel.blocks = facts_.blocks;
  choice.kernel.threads = facts_.threads;
  const KernelsWanted here = kernels_wanted<T>(place_, facts_, spec);
  const GpuKernels all =
      place_.several_nodes() ? remote_kernels<T>(place_.spec, spec) : kernels_for<T>(spec, here);
  const GpuKernelPair& kernels = has_kind(here.kinds, kRuns | kSimpleRuns) ? all.runs : all.singles;
  const bool simple = facts_.on_chip && all.on_chip != nullptr;
  std::size_t limit = std::min(fast_memory_limit(kernels.plain, place_.devices, facts_.blocks),
                               fast_memory_limit(kernels.streaming, place_.devices, facts_.blocks));
  if (simple)
    limit = std::min(limit, fast_memory_limit(all.on_chip, place_.devices, facts_.blocks));
  limit = place_.least("memory on chip", limit);
  // Levels of multigrid come first: every step of a cycle begins by reading one of them.
  std::size_t levels = 0;
  if (spec.preconditioner == Preconditioner::amg) levels = multigrid_->fast_bytes();
  if (levels > limit / 2) levels = 0;
  limit -= levels;
  const OnChipRequest all_wanted = on_chip_request<T>(place_, facts_, spec);
  FastMemory fast = choose_residency(facts_.sizes, all_wanted, limit, place_.spec.residency);
  const bool on_chip = simple && keeps_operands(fast.residency, all_wanted);
  if (facts_.lanes_share_rows && !on_chip)
    fast = choose_residency(facts_.sizes, all_wanted, limit, 1);
  const bool streams = fast.residency.ring.slots > 0;
  require(streams || !facts_.lanes_share_rows || on_chip,
          "this GPU has too little shared memory for rows that threads share: "
          "set lanes_log2 to 0, or use fewer threads");
  choice.kernel.function = streams ? kernels.streaming : on_chip ? all.on_chip : kernels.plain;
  choice.residency = fast.residency;
  choice.kernel.dynamic_bytes = fast.bytes;
  if (levels > 0) {
    const std::size_t place = round_up16(fast.bytes);
    choice.residency.levels = static_cast<std::int32_t>(place);
    choice.kernel.dynamic_bytes = place + levels;
  }
  runner_.load(choice.kernel);  // occupancy depends on the shared memory allowed there
  require_residency(choice.kernel, place_.devices);
  return choices_.emplace(key, choice).first->second;
}

// Memory that this kind of solve needs for the first time.
template <class T>
void GpuSolve<T>::reserve(const SolveSpec& spec, const SolveParams& params) {
  const auto needed = needed_vectors(spec);
  for (std::size_t k = 0; k < place_.devices.size(); ++k) {
    PeMemory<T>& pe = pes_[k];
    for (std::size_t v = 0; v < kPrivateVectors; ++v)
      if (needed[v] && pe.vectors[v].data() == nullptr) {
        // Rows that pad a slice are never filled, and copied with the others (put_column).
        const bool copied = v == index_.b || v == index_.x;
        pe.vectors[v] = copied ? Array<T>(place_.devices[k], at(pe.private_rows))
                               : Array<T>::uninitialised(place_.devices[k], at(pe.private_rows));
      }
    if (makes_noise(spec) && facts_.first_row > 0 && pe.names.data() == nullptr)
      pe.names = {place_.devices[k], row_names(pe.global_row.download(), facts_.first_row)};
    if (spec.study == Study::split && pe.splits.data() == nullptr)
      pe.splits = Array<Split>(place_.devices[k], at(facts_.blocks));
  }
  trace_.reset();
  if (spec.study == Study::trace) {
    std::vector<std::byte*> heaps;
    for (std::size_t k = 0; k < pes_.size(); ++k) heaps.push_back(heap_of(k));
    trace_.emplace(spec.trace,
                   TraceShape::of(place_.own.all, facts_.blocks, facts_.threads, gpu_p2p::kWarp,
                                  spec.trace.events, spec.trace.kinds, spec.trace.every),
                   place_.devices, heaps, place_.own.first);
  }
  if (place_.own.speaker() && history_.size() < at(params.history_capacity)) {
    history_ = {};
    history_ = Array<double>::uninitialised(place_.devices[0], at(params.history_capacity));
  }
}

template <class T>
std::vector<PrivateVector<T>> GpuSolve<T>::private_vector(std::size_t index) const {
  std::vector<PrivateVector<T>> parts;
  for (const PeMemory<T>& pe : pes_)
    parts.push_back({pe.vectors[index].data(), pe.global_row.data(), pe.private_rows});
  return parts;
}

// Brings b and the guess to the GPUs, scaled. Returns the scale, and whether there is a guess.
template <class T>
double GpuSolve<T>::load(VectorView<const T> b, VectorView<const T> x0, bool& has_guess) {
  GpuTransfer<T>& transfer = *transfer_;
  Given given{transfer.load(b, private_vector(index_.b)), x0.size != 0};
  if (place_.team() != nullptr) given = given_in_all(*place_.team(), given);
  has_guess = given.guess;
  const double scale = scale_from(given.largest);
  if (x0.size != 0) transfer.load(x0, private_vector(index_.x));
  if (scale != 1.0) {
    transfer.scale(private_vector(index_.b), scale);
    if (x0.size != 0) transfer.scale(private_vector(index_.x), scale);
  }
  return scale;
}

// Writes every GPU's arguments, and sets its channels to epoch 0. No kernel may start before all
// GPUs have done this: a neighbour's packet must not be wiped out. None runs now, in any process:
// each has told the others of the end of its last one (report_waits), or the team has failed.
template <class T>
void GpuSolve<T>::set_arguments(const SolveSpec& spec, const SolveParams& params, double scale,
                                const Residency& residency) {
  for (std::size_t k = 0; k < place_.devices.size(); ++k) {
    const PeMemory<T>& pe = pes_[k];
    std::byte* const heap = heap_of(k);
    SolveArgs<Matrix> a;
    a.params = params;
    a.atol[0] = spec.atol * scale;
    place_private(a.vectors, spec, [&](std::size_t v) { return pe.vectors[v].data(); });
    heap_.place(a, heap);
    a.residency = residency;
    a.shares = pe.shares.data();
    a.factors = pe.factors.shares.data();
    if (multigrid_) a.cycle = multigrid_->args(k);
    a.rows = pe.rows;
    a.block_halos = facts_.block_halos;
    a.send_ptr = pe.send_ptr.data();
    a.destinations = pe.destinations.data();
    a.source = pe.source.data();
    a.inverse_diagonal = pe.vectors[index_.inverse_diagonal].data();
    a.global_row = pe.names.data() == nullptr ? pe.global_row.data() : pe.names.data();
    const bool speaks = place_.own.speaker() && k == 0;
    a.outcome = speaks ? outcome_.data() : nullptr;
    a.history = speaks ? history_.data() : nullptr;
    a.splits = pe.splits.data();
    a.traces = trace_ ? trace_->rings(k) : nullptr;
    args_[k] = {a, {}};
    if (place_.several_nodes())
      args_[k].seat = {pe.remote.view(heap_.node_board(heap)),
                       place_.own.first + static_cast<int>(k), place_.own.all};
    const OnDevice here(place_.devices[k]);
    gpu::clear(heap, heap_.channel_bytes, runner_.stream(k));
  }
  runner_.synchronize();
  if (place_.team() != nullptr) barrier(*place_.team(), "channels are clear");
}

template <class T>
std::vector<gpu_p2p::Shared> GpuSolve<T>::shared() const {
  std::vector<gpu_p2p::Shared> all(place_.devices.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    // By place: PEs are numbered within their node.
    const Nodes nodes = place_.nodes.view();
    const int pe = place_.own.first + static_cast<int>(k);
    const int node = nodes.of_pe[pe];
    all[k].pe = nodes.place[pe];
    all[k].pes = nodes.size(node);
    for (int at = 0; at < nodes.size(node); ++at)
      all[k].heaps[at] = heaps_->base(nodes.pe(node, at));
    all[k].leave = heap_.leave.at(heap_of(k));
  }
  return all;
}

template <class T>
void GpuSolve<T>::fetch(const SolveSpec& spec, SolveResult& result) const {
  if (place_.own.speaker()) {
    const OnDevice here(place_.devices[0]);
    result.outcome = outcome_.download()[0];
    result.history = history_.download(at(result.outcome.history_count));
  }
  if (trace_) result.trace = trace_->report(place_.team());
  if (spec.study != Study::split) return;
  std::vector<Split> splits;
  for (std::size_t k = 0; k < place_.devices.size(); ++k) {
    const OnDevice there(place_.devices[k]);
    const auto of_pe = pes_[k].splits.download();
    splits.insert(splits.end(), of_pe.begin(), of_pe.end());
  }
  result.split = mean_of(place_.join("splits", splits));
}

template <class T>
SolveResult GpuSolve<T>::solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                               const SolveSpec& spec, const Progress& progress, LapTimer& timer) {
  const Choice& choice = choice_for(spec);
  runner_.load(choice.kernel);  // another System may have allowed it less shared memory
  timer.lap("choice");
  SolveParams params = params_of<T>(spec, lambda_bound_, x0.size != 0);
  reserve(spec, params);
  timer.lap("memory");
  const double scale = load(b, x0, params.has_guess);
  set_arguments(spec, params, scale, choice.residency);
  timer.lap("upload");
  std::vector<const void*> args;
  for (const auto& of_pe : args_) args.push_back(&of_pe);
  SolveResult result;
  const Progress tell = unscaled(progress, scale);
  result.seconds = launch_traced(trace_, [&] {
    return runner_.run(choice.kernel, shared(), args, spec.limits(),
                       watched(tell, trace_ ? trace_->watch() : nullptr), place_.team());
  });
  timer.lap("launch", "kernel", result.seconds);
  fetch(spec, result);
  bool finite = transfer_->store(private_vector(index_.x), scale, out);
  if (place_.team() != nullptr) share_end(*place_.team(), result, finite);  // at all members
  unscale(result, scale, scale != 1.0 && !finite && !spec.leaves_out());
  return result;
}

template KernelsWanted kernels_wanted<float>(const GpuPlace&, const LayoutFacts&, const SolveSpec&);
template KernelsWanted kernels_wanted<double>(const GpuPlace&, const LayoutFacts&,
                                              const SolveSpec&);
template class GpuSolve<float>;
template class GpuSolve<double>;

}  // namespace cpufree
