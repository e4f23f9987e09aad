// The solves of a GpuSystem; system_setup.cpp makes one.
#include "cpufree/systems/gpu/system.hpp"

#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/systems/gpu/devices.hpp"
#include "cpufree/systems/gpu/kernels/table.hpp"
#include "cpufree/systems/machine.hpp"

namespace cpufree {

using gpu::OnDevice;

template <class T>
GpuSystem<T>::~GpuSystem() {
  const gpu_p2p::DeviceLocks locks(devices_);
  device_.reset();
}

// A matrix that stays in a GPU's L2 cache, most of it, needs no rings: hood (35 MB) takes 22 us
// without and 32 with them, tmt_sym (55 MB) 42 and 46, G3_circuit (88 MB) 80 and 79, crankseg_1
// (122 MB) 55 and 45 (one H200, cg). Neither does one of coded values with eight entries a row or
// fewer: poisson3d of 200^3 rows (199 MB) takes 404 us without and 434 with rings. What comes
// through rings had better not drive the vectors out.
template <class T>
Wanted GpuSystem<T>::wanted(const SolveSpec& spec) const {
  Wanted wanted = wanted_by(spec, sizeof(T));
  wanted.warps = threads_ / gpu_p2p::kWarp;
  wanted.matrix_bytes = bytes_of_pe_;
  const bool far = bytes_of_pe_ > machine::kSolverCachedBytes;
  wanted.passing = far || keep_ >= 0;
  if (keep_ >= 0)
    wanted.kept = keep_;
  else if (far || (lanes_share_rows_ && bytes_of_pe_ > machine::kSolverLeastKeptOf))
    wanted.kept = static_cast<std::int32_t>(256.0 * machine::kSolverKeptBytes / bytes_of_pe_);
  const auto [rows, entries] = matrix_size();
  wanted.vector_bytes = static_cast<double>(rows) / own_.all * sizeof(T);
  const bool coded =
      std::ranges::any_of(sizes_, [](const ShareSize& share) { return share.matrix.values > 0; });
  const bool light = coded && entries <= kChunkWidth * rows;
  const bool pays = lanes_share_rows_ || keep_ >= 0 || (far && !light);
  wanted.slots = ring_slots_ < 0 && !pays ? 0 : ring_slots_;
  return wanted;
}

template <class T>
GpuKernels GpuSystem<T>::kernels_of(const SolveSpec& spec, bool runs) const {
  if (nodes_.count() > 1) return remote_kernels<T>(nvshmem_kernels_, spec);
  return kernels_for<T>(spec, {runs, on_chip_, devices_});
}

template <class T>
auto GpuSystem<T>::choice_for(const SolveSpec& spec) -> const Choice& {
  const std::tuple key(spec.method, spec.preconditioner, spec.study);
  if (const auto found = choices_.find(key); found != choices_.end()) return found->second;
  Choice choice;
  choice.kernel.blocks = blocks_;
  choice.kernel.threads = threads_;
  const bool runs =
      std::ranges::any_of(sizes_, [](const ShareSize& share) { return share.matrix.runs; });
  const GpuKernels all = kernels_of(spec, runs);
  const GpuKernelPair& kernels = runs ? all.runs : all.singles;
  const bool simple = on_chip_ && all.on_chip != nullptr;
  std::size_t limit = std::min(fast_memory_limit(kernels.plain, devices_, blocks_),
                               fast_memory_limit(kernels.streaming, devices_, blocks_));
  if (simple) limit = std::min(limit, fast_memory_limit(all.on_chip, devices_, blocks_));
  if (team_) limit = least(*team_, "memory on chip", limit);
  const Wanted all_wanted = wanted(spec);
  FastMemory fast = choose_residency(sizes_, all_wanted, limit, residency_mode_);
  const bool on_chip = simple && keeps_operands(fast.residency, all_wanted);
  if (lanes_share_rows_ && !on_chip) fast = choose_residency(sizes_, all_wanted, limit, 1);
  const bool streams = fast.residency.ring.slots > 0;
  require(streams || !lanes_share_rows_ || on_chip,
          "this GPU has too little shared memory for rows that threads share: "
          "set lanes_log2 to 0, or use fewer threads");
  choice.kernel.function = streams ? kernels.streaming : on_chip ? all.on_chip : kernels.plain;
  choice.residency = fast.residency;
  choice.kernel.dynamic_bytes = fast.bytes;
  device_->runner.load(choice.kernel);  // occupancy depends on the shared memory allowed there
  require_residency(choice.kernel, devices_);
  return choices_.emplace(key, choice).first->second;
}

// Memory that this kind of solve needs for the first time.
template <class T>
void GpuSystem<T>::reserve(const SolveSpec& spec, const SolveParams& params) {
  const auto needed = needed_vectors(spec);
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    Pe& pe = device_->pes[k];
    for (std::size_t v = 0; v < kPrivateVectors; ++v)
      if (needed[v] && pe.vectors[v].data() == nullptr) {
        // Rows that pad a slice are never filled, and copied with the others (put_column).
        const bool copied = v == index_.b || v == index_.x;
        pe.vectors[v] = copied ? Array<T>(devices_[k], at(pe.private_rows))
                               : Array<T>::uninitialised(devices_[k], at(pe.private_rows));
      }
    if (makes_noise(spec) && first_row_ > 0 && pe.names.data() == nullptr)
      pe.names = {devices_[k], row_names(pe.global_row.download(), first_row_)};
    if (spec.study == Study::split && pe.splits.data() == nullptr)
      pe.splits = Array<Split>(devices_[k], at(blocks_));
  }
  if (own_.speaker() && device_->history.size() < at(params.history_capacity)) {
    device_->history = {};
    device_->history = Array<double>::uninitialised(devices_[0], at(params.history_capacity));
  }
}

template <class T>
std::vector<PrivateVector<T>> GpuSystem<T>::private_vector(std::size_t index) const {
  std::vector<PrivateVector<T>> parts;
  for (const Pe& pe : device_->pes)
    parts.push_back({pe.vectors[index].data(), pe.global_row.data(), pe.private_rows});
  return parts;
}

// Brings b and the guess to the GPUs, scaled. Returns the scale, and whether there is a guess.
template <class T>
double GpuSystem<T>::load(VectorView<const T> b, VectorView<const T> x0, bool& has_guess) {
  GpuTransfer<T>& transfer = *device_->transfer;
  Given given{transfer.load(b, private_vector(index_.b)), x0.size != 0};
  if (team_) given = given_in_all(*team_, given);
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
void GpuSystem<T>::set_arguments(const SolveSpec& spec, const SolveParams& params,
                                 const Residency& residency) {
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    const Pe& pe = device_->pes[k];
    std::byte* const heap = heap_of(k);
    SolveArgs<Matrix> a;
    a.params = params;
    place_private(a.vectors, spec, [&](std::size_t v) { return pe.vectors[v].data(); });
    heap_.place(a, heap);
    a.residency = residency;
    a.shares = pe.shares.data();
    a.factors = pe.factors.shares.data();
    a.rows = pe.rows;
    a.block_halos = block_halos_;
    a.send_ptr = pe.send_ptr.data();
    a.destinations = pe.destinations.data();
    a.source = pe.source.data();
    a.global_row = pe.names.data() == nullptr ? pe.global_row.data() : pe.names.data();
    const bool speaks = own_.speaker() && k == 0;
    a.outcome = speaks ? device_->outcome.data() : nullptr;
    a.history = speaks ? device_->history.data() : nullptr;
    a.splits = pe.splits.data();
    device_->args[k] = {a, {}};
    if (nodes_.count() > 1)
      device_->args[k].seat = {pe.remote.view(heap_.node_board(heap)),
                               own_.first + static_cast<int>(k), own_.all};
    const OnDevice here(devices_[k]);
    gpu::clear(heap, heap_.channel_bytes, device_->runner.stream(k));
  }
  device_->runner.synchronize();
  if (team_) barrier(*team_, "channels are clear");
}

template <class T>
std::vector<const void*> GpuSystem<T>::arguments() const {
  std::vector<const void*> all;
  for (const auto& args : device_->args) all.push_back(&args);
  return all;
}

template <class T>
std::vector<gpu_p2p::Shared> GpuSystem<T>::shared() const {
  std::vector<gpu_p2p::Shared> all(devices_.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    // By place: PEs are numbered within their node.
    const Nodes nodes = nodes_.view();
    const int pe = own_.first + static_cast<int>(k);
    const int node = nodes.of_pe[pe];
    all[k].pe = nodes.place[pe];
    all[k].pes = nodes.size(node);
    for (int at = 0; at < nodes.size(node); ++at)
      all[k].heaps[at] = device_->heaps->base(nodes.pe(node, at));
    all[k].leave = heap_.leave.at(heap_of(k));
  }
  return all;
}

template <class T>
void GpuSystem<T>::fetch(const SolveSpec& spec, SolveResult& result) const {
  if (own_.speaker()) {
    const OnDevice here(devices_[0]);
    result.outcome = device_->outcome.download()[0];
    result.history = device_->history.download(at(result.outcome.history_count));
  }
  if (spec.study != Study::split) return;
  std::vector<Split> splits;
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    const OnDevice there(devices_[k]);
    const auto of_pe = device_->pes[k].splits.download();
    splits.insert(splits.end(), of_pe.begin(), of_pe.end());
  }
  result.split = mean_of(team_ ? join(*team_, "splits", splits) : splits);
}

// out = x / scale, at rank 0 of a team; the end of the solve, at all of its members. Returns
// whether all of x is finite.
template <class T>
bool GpuSystem<T>::store(VectorView<T> out, double scale, const SolveSpec& spec,
                         SolveResult& result) {
  bool finite = device_->transfer->store(private_vector(index_.x), scale, out);
  if (team_) {
    share_end(*team_, result, finite);
    if (gathering_) gathering_->gather(out.span(), spec.gather);
  }
  return finite;
}

template <class T>
SolveResult GpuSystem<T>::solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                                const SolveSpec& spec, const Progress& progress) {
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone) throw SystemBusy();
  require_usable(usable_);
  check_solve(spec, b, x0, out, rows_);
  require_factors(spec, factor_spec_);
  if (team_ && !(b.on_host() && x0.on_host() && out.on_host()))
    throw Unsupported(
        "the engine nvshmem takes vectors in host memory only; copy b to an array there");
  if (team_) gpu::stay_on(devices_[0]);
  LapTimer timer;
  const gpu_p2p::DeviceLocks locks(devices_);
  timer.lap("turn");
  const Choice& choice = choice_for(spec);
  device_->runner.load(choice.kernel);  // another System may have allowed it less shared memory
  timer.lap("choice");
  SolveParams params = params_of<T>(spec, lambda_bound_, x0.size != 0, 1.0);
  reserve(spec, params);
  timer.lap("memory");
  const double scale = load(b, x0, params.has_guess);
  params.atol *= scale;
  set_arguments(spec, params, choice.residency);
  timer.lap("upload");
  SolveResult result;
  result.seconds = device_->runner.run(choice.kernel, shared(), arguments(), spec.limits(),
                                       unscaled(progress, scale), team_.get());
  timer.lap("launch", "kernel", result.seconds);
  fetch(spec, result);
  const bool finite = store(out, scale, spec, result);
  unscale(result, scale, scale != 1.0 && !finite && !spec.leaves_out());
  timer.lap("download");
  result.laps = timer.laps();
  return result;
}

template class GpuSystem<float>;
template class GpuSystem<double>;

}  // namespace cpufree
