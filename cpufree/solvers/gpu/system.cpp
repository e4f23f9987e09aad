#include "cpufree/solvers/gpu/system.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/launch/gpu/gpus.hpp"
#include "cpufree/multigrid/gpu/hierarchy.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"
#include "cpufree/solvers/gpu/layout/inverse.hpp"
#include "cpufree/solvers/gpu/likely_kernels.hpp"
#include "cpufree/solvers/gpu/make_system.hpp"
#include "cpufree/solvers/gpu/plan/levels.hpp"
#include "cpufree/solvers/gpu/plan/memory.hpp"
#include "cpufree/solvers/host/factor_layout.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace cpufree {

namespace {

// What an update makes again.
template <class T>
void drop_values(SystemLayout<T>& layout) {
  for (LocalSystem<T>& local : layout.plan.local) local.val = {};
  for (PeLayout& pe : layout.pes) pe.names.reset();
}

}  // namespace

template <class T>
GpuSystem<T>::GpuSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                        std::span<const std::int32_t> order, const SystemSpec& spec)
    : place_(place_on_gpus(spec, matrix.n, sizeof(T))), rows_(matrix.n) {
  check_single_values<T>(spec, place_.several_nodes());
  if (spec.single_values) require_singles(matrix);
  std::jthread waking = wake_devices(place_.devices);
  auto cuts = cuts_for_gpus(place_, matrix, part, order);
  // Before memory is asked for, which starts CUDA.
  if (!cuts.empty()) prepare_layout<T>(place_.devices);
  if (!cuts.empty() && spec.factors.any()) prepare_inverse<T>(place_.devices);
  if (!place_.several_nodes()) compile_ahead_for<T>(spec.first, likely_kernels(place_, matrix));
  if (gpu_makes_hierarchy(place_, matrix.nnz())) {
    prepare_hierarchy(place_.devices);
    prepare_layout<float>(place_.devices);  // of levels
  }
  timer_.lap("choice");
  if (!cuts.empty() && have_room(place_, GivenCsr<T>::of(matrix), cuts)) {
    waking.join();
    timer_.lap("context");
    if (set_up_by_gpus(GivenCsr<T>::of(matrix), std::move(cuts))) return;
    waking = {};
  }
  if (spec.inspect) {
    refuse("the host is to lay this matrix out");
    return;
  }
  auto plan = plan_of(matrix, part, order, spec.pes);
  timer_.lap("plan");
  waking.join();
  timer_.lap("context");
  if (spec.factors.multigrid())
    require_memory(place_, least_with_levels(place_, matrix), free_bytes(), sizeof(T));
  if (spec.team) gathering_.emplace(spec.team, plan);
  std::optional<multigrid::Hierarchy> hierarchy;
  if (spec.factors.multigrid()) {
    hierarchy = make_hierarchy(matrix, plan);
    timer_.lap("multigrid");
  }
  keep_own(plan, place_.own);
  set_up_by_host(std::move(plan), order, 0, std::move(hierarchy));
}

template <class T>
GpuSystem<T>::GpuSystem(const GivenCsr<T>& matrix, const SystemSpec& spec)
    : place_(place_on_gpus(spec, matrix.n, sizeof(T))), rows_(matrix.n) {
  check_single_values<T>(spec, false);
  require(spec.pes == 1, "a matrix on a GPU is laid out for one PE");
  require(!spec.team, "GPUs of one process lay a matrix out");
  require(
      !spec.factors.near && !spec.factors.prolongators &&
          (!spec.factors.any() || spec.factors.by_gpus()),
      "fsai of level 2, and levels of vectors that are given, are made of matrices on the host");
  prepare_layout<T>(place_.devices);
  if (spec.factors.any()) prepare_inverse<T>(place_.devices);
  if (spec.factors.multigrid()) {
    prepare_hierarchy(place_.devices);
    prepare_layout<float>(place_.devices);  // of levels
  }
  compile_ahead_for<T>(spec.first, {.kinds = kSingles | kPlainValues, .devices = place_.devices});
  timer_.lap("choice");
  if (!set_up_by_gpus(matrix, {0, matrix.n}))
    refuse("its levels have rows that are too long, or no room on the GPU while they are made");
}

template <class T>
GpuSystem<T>::GpuSystem(SlabPlan<T> slab, const SystemSpec& spec)
    : place_(place_on_gpus(spec, slab.all_rows, sizeof(T))), rows_(slab.plan.local.at(0).rows()) {
  refuse_multigrid_of_slabs(spec.factors);
  check_single_values<T>(spec, place_.several_nodes());
  if (spec.single_values) {
    const LocalSystem<T>& rows = slab.plan.local.at(0);
    for (std::int64_t k = 0; k < rows.row_ptr.back(); ++k)
      single_of(static_cast<double>(rows.values()[k]));  // throws where it is out of range
  }
  set_up_by_host(std::move(slab.plan), {}, slab.first);
}

template <class T>
GpuSystem<T>::~GpuSystem() {
  const gpu_p2p::DeviceLocks locks(place_.devices);
  solve_.reset();
}

// `plan` has the PEs of this process.
template <class T>
void GpuSystem<T>::set_up_by_host(HaloPlan<T> plan, std::span<const std::int32_t> order,
                                  std::int64_t first_row,
                                  std::optional<multigrid::Hierarchy> hierarchy) {
  // The GPU of this process, as NVSHMEM wants it.
  if (place_.team() != nullptr) gpu::stay_on(place_.devices[0]);
  const gpu_p2p::DeviceLocks locks(place_.devices);
  gpu_p2p::connect(place_.devices);
  static_cast<HostLayout<T>&>(layout_) = lay_out_by_host(place_, std::move(plan), order);
  layout_.facts.first_row = first_row;
  require_room(hierarchy);
  if (hierarchy) lay_out_multigrid(*std::move(hierarchy));
  begin_solves([&](const auto& layouts, auto& pes) {
    return fill_from_host(place_, layout_.plan, layouts, pes);
  });
}

template <class T>
multigrid::Hierarchy GpuSystem<T>::make_hierarchy(const CsrView<T>& matrix,
                                                  const HaloPlan<T>& plan) {
  const FactorSpec& factors = place_.spec.factors;
  const multigrid::Options options = multigrid_options(factors, kMostGathered);
  if (gpu_makes_hierarchy(place_, matrix.nnz())) {
    const gpu_p2p::DeviceLocks locks(place_.devices);
    if (auto made = hierarchy_by_gpu(place_, matrix, plan, options)) return *std::move(made);
  }
  std::vector<std::int32_t> owner;
  return hierarchy_of(matrix, plan, options, factors, owner);
}

// Blocks have the rows of level 0 that they have of A.
template <class T>
LevelPlan GpuSystem<T>::plan_first_level(const multigrid::Hierarchy& hierarchy) const {
  const HaloPlan<T>& plan = layout_.plan;
  return plan_of_first_level(hierarchy, plan,
                             make_block_plans(plan, layout_.facts.blocks, Awaited::everybody),
                             layout_.facts.extent.rows_and_ghosts);
}

template <class T>
void GpuSystem<T>::lay_out_multigrid(multigrid::Hierarchy hierarchy) {
  timer_.lap("layout");
  LevelPlan first = plan_first_level(hierarchy);
  multigrid_ = std::make_unique<GpuMultigrid<T>>(place_, std::move(hierarchy), std::move(first),
                                                 layout_.facts.threads);
  report_multigrid();
}

template <class T>
std::vector<double> GpuSystem<T>::free_bytes() const {
  std::vector<double> free;
  for (const int device : place_.devices) {
    const gpu::OnDevice here(device);
    free.push_back(static_cast<double>(gpu::memory_info().free));
  }
  return free;
}

// Before anything of a system that the host lays out is sent. Levels are looked at as closely as
// that takes: by their size or, where that may be too much, by their layout.
template <class T>
void GpuSystem<T>::require_room(std::optional<multigrid::Hierarchy>& hierarchy) {
  LevelsMemory levels;
  const auto free = free_bytes();
  const auto found = [&] {
    auto pes = memory_of<T>(place_, layout_, rows_, levels, {});
    // What travels lies in memory that NVSHMEM has taken already.
    if (place_.team() != nullptr)
      for (GpuMemory& pe : pes) pe.halo = 0.0;
    return pes;
  };
  if (hierarchy) {
    const double most = most_of_levels(*hierarchy, place_.own, place_.gpus[0].page_bytes);
    auto pes = found();
    bool fits = true;
    for (std::size_t k = 0; k < pes.size(); ++k) {
      const auto sharing = std::ranges::count(place_.devices, place_.devices[k]);
      fits = fits && static_cast<double>(sharing) * (pes[k].all() + most) <= free[k];
    }
    if (place_.least("room for levels", fits ? 1 : 0) == 1) return;
    levels = memory_of_levels(place_, *hierarchy, plan_first_level(*hierarchy),
                              layout_.facts.threads, sizeof(T));
    choose_packets(place_, report_of(*hierarchy), hierarchy->gathered, levels.extent);
    levels.kept = 0.0;
  }
  require_memory(place_, found(), free, sizeof(T));
}

template <class T>
void GpuSystem<T>::report_multigrid() {
  layout_.report.levels = multigrid_->reports();
  if (place_.team() != nullptr)
    for (LevelReport& level : layout_.report.levels)
      level.bytes = sum(*place_.team(), "bytes of a level", level.bytes);
  layout_.report.coarsest_why = multigrid_->why();
  timer_.lap("levels");
}

template <class T>
void GpuSystem<T>::refuse(const std::string& why) {
  layout_.report.refused = why;
  usable_ = false;
}

template <class T>
void GpuSystem<T>::begin_solves(const Fill& fill) {
  timer_.lap("layout");
  // What was expected may not be what is there.
  if (!place_.several_nodes())
    compile_ahead_for<T>(place_.spec.first,
                         kernels_wanted<T>(place_, layout_.facts, place_.spec.first));
  // NVSHMEM may still be starting: what it is not needed for comes first.
  PeMemories<T> pes(layout_.pes.size());
  for (std::size_t k = 0; k < pes.size(); ++k)
    pes[k].bytes = gpu::DeviceArray<std::byte>::uninitialised(
        place_.devices[k], at(layout_.pes[k].units * kSliceUnit));
  timer_.lap("room");
  const double bound = fill(layout_.pes, pes);
  timer_.lap("upload");
  auto solve = std::make_unique<GpuSolve<T>>(place_, layout_.facts, std::move(pes), bound);
  solve->take(std::move(multigrid_));
  solve->make_heaps(at(rows_));
  timer_.lap("memory");
  solve->choose_first(layout_.report);  // kernels of NVSHMEM are loaded once it runs
  timer_.lap("kernels");
  solve->link(layout_);
  solve->factor(layout_, std::exchange(factors_, {}));
  if (place_.spec.factors.any()) timer_.lap("factors");
  layout_.sources.clear();
  layout_.far.clear();
  drop_values(layout_);
  if (layout_.facts.rows != rows_) {  // a slab: no process has the values of all rows for an update
    layout_.plan = {};
    layout_.pes = {};
  }
  timer_.lap("tables");
  layout_.report.seconds = timer_.laps();
  solve_ = std::move(solve);
}

// For a call that nothing else may run beside.
template <class T>
std::unique_lock<std::mutex> GpuSystem<T>::take_turn() {
  std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone) throw SystemBusy();
  require_usable(usable_);
  return alone;
}

template <class T>
SolveResult GpuSystem<T>::solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                                const SolveSpec& spec, const Progress& progress) {
  const auto alone = take_turn();
  check_solve(spec, b, x0, out, rows_);
  require_factors(spec, place_.spec.factors);
  if (place_.team() != nullptr) {
    if (!(b.on_host() && x0.on_host() && out.on_host()))
      throw Unsupported(
          "an engine with a process for each GPU takes vectors in host memory only; copy b to an "
          "array there");
    gpu::stay_on(place_.devices[0]);
  }
  LapTimer timer;
  const gpu_p2p::DeviceLocks locks(place_.devices);
  timer.lap("turn");
  SolveResult result = solve_->solve(b, x0, out, spec, progress, timer);
  if (gathering_) gathering_->gather(out.span(), spec.gather);
  timer.lap("download");
  result.laps = timer.laps();
  return result;
}

template <class T>
std::string GpuSystem<T>::refuses_columns() const {
  return place_.team() != nullptr ? "with a process for each PE they are solved one by one" : "";
}

template <class T>
std::vector<SolveResult> GpuSystem<T>::solve_columns(const ColumnViews<T>& vectors,
                                                     const SolveSpec& spec,
                                                     const Progress& progress) {
  const auto alone = take_turn();
  check_columns(spec, vectors, rows_);
  require_factors(spec, place_.spec.factors);
  refuse_block_of_singles(spec, layout_.report.single_values);
  if (const std::string why = refuses_columns(); !why.empty()) throw Unsupported(why);
  const gpu_p2p::DeviceLocks locks(place_.devices);
  return solve_->solve_columns(vectors, spec, progress);
}

// The plan, the memory and all that kernels are told of it stay.
template <class T>
bool GpuSystem<T>::update(const CsrView<T>& matrix) {
  const auto alone = take_turn();
  require_update(matrix, rows_, layout_.report);
  if (place_.spec.single_values) require_singles(matrix);
  if (place_.spec.factors.multigrid() && !solve_->multigrid()->keeps_patterns()) return false;
  if (place_.team() != nullptr) gpu::stay_on(place_.devices[0]);
  const gpu_p2p::DeviceLocks locks(place_.devices);
  const struct AtTheEnd {
    SystemLayout<T>& layout;
    ~AtTheEnd() { drop_values(layout); }
  } at_the_end{layout_};
  timer_ = {};
  const bool done = cuts_.empty() ? update_by_host(matrix) : update_by_gpus(matrix);
  if (done) layout_.report.seconds = timer_.laps();
  return done;
}

template <class T>
bool GpuSystem<T>::update_by_host(const CsrView<T>& matrix) {
  take_values(matrix, layout_.plan);
  timer_.lap("plan");
  return rewrite(lay_out_again(place_, layout_), [&](const auto& layouts, auto& pes) {
    return fill_from_host(place_, layout_.plan, layouts, pes);
  });
}

// Writes values where the old ones are; false: they do not fit there.
template <class T>
bool GpuSystem<T>::rewrite(std::optional<std::vector<PeLayout>> layouts, const Fill& fill) {
  timer_.lap("layout");
  if (!layouts) return false;
  usable_ = false;
  solve_->set_bound(fill(*layouts, solve_->pes()));
  layout_.pes = *std::move(layouts);
  solve_->factor(layout_, std::exchange(factors_, {}));
  usable_ = true;
  timer_.lap("upload");
  return true;
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

#define CPUFREE_MAKE_CUDA_SYSTEM(T)                                                     \
  template std::unique_ptr<System<T>> make_cuda_system(                                 \
      const CsrView<T>&, std::span<const std::int32_t>, std::span<const std::int32_t>,  \
      const SystemSpec&);                                                               \
  template std::unique_ptr<System<T>> make_cuda_system(SlabPlan<T>, const SystemSpec&); \
  template std::unique_ptr<System<T>> make_cuda_system(const GivenCsr<T>&, const SystemSpec&);
CPUFREE_MAKE_CUDA_SYSTEM(float)
CPUFREE_MAKE_CUDA_SYSTEM(double)
#undef CPUFREE_MAKE_CUDA_SYSTEM

}  // namespace cpufree
