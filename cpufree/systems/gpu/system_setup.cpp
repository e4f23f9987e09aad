// Lays a matrix out on the GPUs.
#include <algorithm>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/length_windows.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/systems/distributed/team_peers.hpp"
#include "cpufree/systems/gpu/devices.hpp"
#include "cpufree/systems/gpu/engine.hpp"
#include "cpufree/systems/gpu/kernels/kernel.hpp"
#include "cpufree/systems/gpu/system.hpp"

namespace cpufree {

namespace {

using gpu::OnDevice;

// Rows and ghosts of a PE: 32-bit numbers, and loops look a block's threads ahead.
constexpr std::int64_t kMostEntries = (std::int64_t{1} << 31) - 1 - 1024;
// Most ghosts of a PE that travel as packets: 16 bytes each and no fence, against 8 and one.
constexpr std::size_t kMostPackets = 16384;
// A block with fewer rows has nothing to do for most of its threads.
constexpr std::int64_t kRowsPerBlock = 32;

}  // namespace

template <class T>
GpuSystem<T>::GpuSystem(std::int64_t rows, std::int64_t all_rows, const SystemSpec& spec)
    : rows_(static_cast<std::int32_t>(rows)),
      team_(spec.team),
      own_(OwnPes::of(spec.team.get(), spec.pes)),
      nodes_(spec.pes),
      factor_spec_(spec.factors),
      nvshmem_kernels_(spec.nvshmem_kernels),
      residency_mode_(spec.residency),
      ring_slots_(spec.ring),
      keep_(spec.keep) {
  check(spec);
  devices_ = choose_devices(own_.here, spec.gpus);
  choose_nodes(spec, all_rows);
  require_reach(nodes_.largest());
}

template <class T>
GpuSystem<T>::GpuSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                        std::span<const std::int32_t> order, const SystemSpec& spec)
    : GpuSystem(matrix.n, matrix.n, spec) {
  std::jthread waking = wake_devices(devices_);
  timer_.lap("choice");
  if (auto cuts = cuts_for_gpus(matrix, part, order, spec); !cuts.empty()) {
    waking.join();
    timer_.lap("context");
    set_up_sent(matrix, std::move(cuts), spec);
    return;
  }
  auto plan = plan_of(matrix, part, order, spec.pes);
  timer_.lap("plan");
  waking.join();
  timer_.lap("context");
  if (team_) gathering_.emplace(team_, plan);
  keep_own(plan, own_);
  set_up(plan, order, spec);
}

template <class T>
GpuSystem<T>::GpuSystem(SlabPlan<T> slab, const SystemSpec& spec)
    : GpuSystem(slab.plan.local.at(0).rows(), slab.all_rows, spec) {
  first_row_ = slab.first;
  set_up(slab.plan, {}, spec);
}

// `plan` has the PEs of this process.
template <class T>
void GpuSystem<T>::set_up(HaloPlan<T>& plan, std::span<const std::int32_t> order,
                          const SystemSpec& spec) {
  if (team_) gpu::stay_on(devices_[0]);  // the GPU of this process, as NVSHMEM wants it
  const gpu_p2p::DeviceLocks locks(devices_);
  try {
    gpu_p2p::connect(devices_);
    build(plan, order, spec);
  } catch (...) {
    device_.reset();  // while the devices are still ours
    throw;
  }
}

// Which PEs are a node: as many as are asked for, or those that NVSHMEM says.
template <class T>
void GpuSystem<T>::choose_nodes(const SystemSpec& spec, std::int64_t all_rows) {
  if (in_nodes(spec)) nodes_ = NodeTable::of_size(spec.pes, spec.node_size);
  if (spec.node_size == 0 && spec.several_machines) {
    gpu::stay_on(devices_[0]);
    const gpu_p2p::DeviceLocks locks(devices_);
    // Before it is known what is needed: vectors of twice the mean length.
    const std::size_t values = 8 * (at(all_rows) / at(spec.pes) + 1);
    nodes_ = nodes_of(*team_, spec.nvshmem_library, devices_[0], values * sizeof(T));
  }
  const bool far = nodes_.count() > 1;
  require(!far || spec.halo <= 0, "halos between nodes do not travel as packets: leave out halo");
  if (far && nvshmem_kernels_.empty())
    throw Unsupported(
        "ranks are on several nodes, between which kernels call NVSHMEM, and those have not been "
        "built: pip install nvidia-nvshmem-cu13, then build with tools/build_gpu.sh or CMake");
}

// What this process sends to other nodes, and the room that it takes in vectors.
template <class T>
void GpuSystem<T>::plan_nodes(HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>>& plans,
                              Extent& extent) {
  for (std::size_t k = 0; k < plan.local.size(); ++k) {
    LocalSystem<T>& local = plan.local[k];
    far_.push_back(
        make_remote_plan(local, plans[k], own_.first + static_cast<int>(k), nodes_.of_pe()));
    extent.rows_and_ghosts = std::max(extent.rows_and_ghosts,
                                      at(local.rows()) + at(local.ghosts) + at(far_.back().staged));
  }
  extent.rows_and_ghosts = most(*team_, "length of vectors", extent.rows_and_ghosts);
}

// As many blocks as a PE has multiprocessors, where there are rows for them.
template <class T>
void GpuSystem<T>::choose_blocks(const SystemSpec& spec, const Extent& extent) {
  blocks_ = spec.blocks;
  if (blocks_ == 0) blocks_ = default_blocks(extent);
}

template <class T>
int GpuSystem<T>::default_blocks(const Extent& extent) {
  int multiprocessors = multiprocessors_of_pe(devices_);
  if (team_) multiprocessors = least(*team_, "multiprocessors", multiprocessors);
  const auto rows = static_cast<std::int64_t>(extent.rows);
  return static_cast<int>(
      std::clamp<std::int64_t>((rows + kRowsPerBlock - 1) / kRowsPerBlock, 1, multiprocessors));
}

// Halos of blocks, where they pay and can be had.
template <class T>
auto GpuSystem<T>::share_with_block_halos(HaloPlan<T>& plan, std::span<const std::int32_t> order,
                                          const Shares& shares, const SystemSpec& spec)
    -> std::optional<Sharing> {
  const std::int64_t reads = most_block_reads(spec, shares, blocks_, sizeof(T));
  if (reads == 0) return {};
  const auto peers = peers_of(team_.get(), spec.pes);
  auto halos = make_block_halos(plan, *peers, order, blocks_, reads, kSliceRows, spec.cut != 0);
  if (!halos) return {};
  Sharing sharing;
  const Extent extent = extent_of(shares);
  block_halos_ = true;
  report_.block_halo = "packets";
  if (extent.ghosts > 0) report_.halo = "packets";
  sharing.packets = at(*std::ranges::max_element(halos->packets));
  if (team_) sharing.packets = most(*team_, "packets of a PE", sharing.packets);
  require(static_cast<std::int64_t>(extent.rows + sharing.packets) <= kMostEntries,
          "with packets among blocks, a GPU can hold at most " + std::to_string(kMostEntries) +
              " rows and packets; use more GPUs, or halo 1");
  const BoundaryRanges boundaries = gather_boundaries(halos->plans, *peers);
  for (int k = 0; k < own_.here; ++k)
    sharing.sources.push_back(
        packet_sources(plan.local[at(k)], boundaries, halos->plans[at(k)], own_.first + k));
  sharing.plans = std::move(halos->plans);
  return sharing;
}

// How rows are shared among blocks, and who sends what as packets.
template <class T>
auto GpuSystem<T>::share_out(HaloPlan<T>& plan, std::span<const std::int32_t> order,
                             const Shares& shares, const SystemSpec& spec) -> Sharing {
  const bool far = nodes_.count() > 1;
  const bool packets = !far && use_packets(spec, shares, kMostPackets);
  report_ = report_of(shares, spec, blocks_, packets);
  report_.nodes = nodes_.count();
  if (!far && !made_)
    if (auto sharing = share_with_block_halos(plan, order, shares, spec))
      return *std::move(sharing);
  Sharing sharing;
  const auto peers = peers_of(team_.get(), spec.pes);
  if (!made_ && spec.cut != 0) sort_by_length(plan, *peers);
  sharing.plans =
      made_ ? made_->block_plans(plan, blocks_) : make_block_plans(plan, *peers, blocks_);
  sharing.sources.resize(at(own_.here));
  if (!packets) return sharing;
  sharing.packets = extent_of(shares).ghosts;
  const BoundaryRanges boundaries = gather_boundaries(sharing.plans, *peers);
  for (int k = 0; k < own_.here; ++k)
    sharing.sources[at(k)] = ghost_sources(plan.local[at(k)], boundaries);
  return sharing;
}

template <class T>
void GpuSystem<T>::build(HaloPlan<T>& plan, std::span<const std::int32_t> order,
                         const SystemSpec& spec) {
  const Shares shares =
      made_ ? made_->shares(plan) : shares_of(plan, *peers_of(team_.get(), spec.pes));
  Extent extent = extent_of(shares);
  require(static_cast<std::int64_t>(extent.rows_and_ghosts) <= kMostEntries,
          "a GPU can hold vectors of at most " + std::to_string(kMostEntries) +
              " entries; use more GPUs");
  choose_blocks(spec, extent);
  threads_ = spec.threads > 0 ? spec.threads : kGpuThreads;
  Sharing sharing = share_out(plan, order, shares, spec);
  if (sharing.packets > 0) count_destinations_from_ghosts(plan, shares);
  if (nodes_.count() > 1) plan_nodes(plan, sharing.plans, extent);
  auto layouts = lay_out(plan, sharing.plans, spec);
  if (block_halos_) {
    for (const PeLayout& layout : layouts)
      extent.rows_and_ghosts = std::max(extent.rows_and_ghosts, at(layout.operand_rows));
    if (team_) extent.rows_and_ghosts = most(*team_, "length of vectors", extent.rows_and_ghosts);
  }
  sizes_ = sizes_in_all(layouts);
  timer_.lap("layout");
  extent_ = extent;
  packets_ = sharing.packets;
  heap_ = Heap<T>(own_.all, blocks_, extent, sharing.packets, nodes_.count(), factor_spec_.any());
  if (made_)
    upload_made(plan, layouts, sharing);
  else
    upload(plan, layouts, sharing, spec);
  make_factors(plan, layouts);
  if (factor_spec_.any()) timer_.lap("factors");
  keep_for_update(plan, std::move(layouts), spec);
  made_.reset();
  timer_.lap("tables");
  report_.seconds = timer_.laps();
  report_.entries = entries_;
  report_.mean_distance = mean_distance_;
}

// Sizes of the shares of all blocks of all PEs: all of them keep the same on chip.
template <class T>
std::vector<ShareSize> GpuSystem<T>::sizes_in_all(const std::vector<PeLayout>& layouts) const {
  const auto own = sizes_of<T>(layouts);
  return team_ ? join(*team_, "sizes of shares", own) : own;
}

template <class T>
void GpuSystem<T>::upload(HaloPlan<T>& plan, const std::vector<PeLayout>& layouts,
                          const Sharing& sharing, const SystemSpec& spec) {
  const auto inverse = invert_diagonals(plan, layouts);
  device_ = std::make_unique<Device>(devices_, blocks_);
  // NVSHMEM may still be starting: what it is not needed for comes first.
  auto slices = room_for_slices(layouts, devices_);
  std::vector<std::byte*> to;
  for (const auto& room : slices) to.push_back(room.data());
  timer_.lap("room");
  upload_slices(plan, layouts, devices_, to);
  timer_.lap("upload");
  const bool by_nvshmem = nodes_.count() > 1;
  if (!by_nvshmem) finish_report(layouts);
  device_->heaps = team_ ? std::make_unique<GpuHeaps>(*team_, spec.nvshmem_library, devices_[0],
                                                      heap_.bytes, nodes_)
                         : std::make_unique<GpuHeaps>(devices_, heap_.bytes);
  timer_.lap("memory");
  if (by_nvshmem) finish_report(layouts);  // its kernels are loaded once it runs
  in_parallel(static_cast<int>(devices_.size()), [&](int k) {
    device_->pes[at(k)].bytes = std::move(slices[at(k)]);
    upload_pe(at(k), plan.local[at(k)], layouts[at(k)], sharing.sources[at(k)], inverse[at(k)]);
  });
  make_transfer();
}

// What solves need besides.
template <class T>
void GpuSystem<T>::make_transfer() {
  device_->outcome = Array<Outcome>(devices_[0], std::size_t{1});
  std::vector<gpuStream_t> streams;
  for (std::size_t k = 0; k < devices_.size(); ++k) streams.push_back(device_->runner.stream(k));
  device_->transfer = std::make_unique<GpuTransfer<T>>(devices_, streams, at(rows_));
}

// The engine's part of the report; the kernel of the default solve is loaded for it.
template <class T>
void GpuSystem<T>::finish_report(const std::vector<PeLayout>& layouts) {
  report_.threads = threads_;
  for (const PeLayout& layout : layouts)
    for (const ShareLayout& share : layout.shares)
      report_.lanes_per_row = std::max(
          {report_.lanes_per_row, 1 << share.interior.lanes_log2, 1 << share.boundary.lanes_log2});
  for (const PeLayout& layout : layouts)
    report_.matrix_bytes += static_cast<double>(layout.units) * kSliceUnit +
                            static_cast<double>(layout.slices) * sizeof(WarpSlice) +
                            static_cast<double>(layout.tails) * sizeof(std::int64_t) +
                            static_cast<double>(layout.tail_entries) * (sizeof(T) + 4.0) +
                            static_cast<double>(layout.values) * sizeof(T);
  if (team_) report_.matrix_bytes = sum(*team_, "bytes of the matrix", report_.matrix_bytes);
  bytes_of_pe_ = report_.matrix_bytes / own_.all;
  const Choice& choice = choice_for(SolveSpec{});
  report_.resident_vectors = choice.residency.vectors;
  report_.resident_matrix = choice.residency.matrix;
  report_.ring_slots = choice.residency.ring.slots;
  report_.shared_bytes = static_cast<std::int64_t>(choice.kernel.dynamic_bytes);
  timer_.lap("kernels");
}

template class GpuSystem<float>;
template class GpuSystem<double>;

template <class T>
std::unique_ptr<System<T>> make_cuda_system(const CsrView<T>& matrix,
                                            std::span<const std::int32_t> part,
                                            std::span<const std::int32_t> order,
                                            const SystemSpec& spec) {
  return std::make_unique<GpuSystem<T>>(matrix, part, order, spec);
}

template <class T>
std::unique_ptr<System<T>> make_cuda_system(SlabPlan<T> slab, const SystemSpec& spec) {
  return std::make_unique<GpuSystem<T>>(std::move(slab), spec);
}

template <class T>
std::unique_ptr<System<T>> make_cuda_system(const GivenCsr<T>& matrix, const SystemSpec& spec) {
  return std::make_unique<GpuSystem<T>>(matrix, spec);
}

template std::unique_ptr<System<float>> make_cuda_system(const GivenCsr<float>&, const SystemSpec&);
template std::unique_ptr<System<double>> make_cuda_system(const GivenCsr<double>&,
                                                          const SystemSpec&);
template std::unique_ptr<System<float>> make_cuda_system(SlabPlan<float>, const SystemSpec&);
template std::unique_ptr<System<double>> make_cuda_system(SlabPlan<double>, const SystemSpec&);
template std::unique_ptr<System<float>> make_cuda_system(const CsrView<float>&,
                                                         std::span<const std::int32_t>,
                                                         std::span<const std::int32_t>,
                                                         const SystemSpec&);
template std::unique_ptr<System<double>> make_cuda_system(const CsrView<double>&,
                                                          std::span<const std::int32_t>,
                                                          std::span<const std::int32_t>,
                                                          const SystemSpec&);

}  // namespace cpufree
