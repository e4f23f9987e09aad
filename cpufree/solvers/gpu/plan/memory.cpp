#include "cpufree/solvers/gpu/plan/memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/slices/slice_ring.hpp"
#include "cpufree/solvers/context.hpp"
#include "cpufree/solvers/factored.hpp"
#include "cpufree/solvers/gpu/plan/levels.hpp"
#include "cpufree/solvers/host/factor_layout.hpp"
#include "cpufree/solvers/host/heap.hpp"
#include "cpufree/solvers/host/scaling.hpp"

namespace cpufree {

namespace {

template <class U>
double bytes(const std::vector<U>& values) {
  return static_cast<double>(values.size() * sizeof(U));
}

// Chunks of the blocks' shares, for their rings.
template <class T>
double bytes_of_feeds(const PeLayout& layout, int warps, PageCount& pages) {
  double items = 0.0, first = 0.0;
  for (const ShareLayout& share : layout.shares) {
    const SliceFeed feed = feed_of<T>(share.shape, {share.interior, share.boundary}, warps);
    items += bytes(feed.items), first += bytes(feed.first);
  }
  return pages.array(items) + pages.array(first);
}

template <class T>
double bytes_of_matrix(const PeLayout& layout, const LayoutFacts& facts, bool rings,
                       PageCount& pages) {
  double all = 0.0;
  each_array_of<T>(layout, [&](double array) { all += pages.array(array); });
  all += pages.array(4.0 * static_cast<double>(layout.private_rows));  // the row at each place
  all += pages.array(static_cast<double>(layout.shares.size() * sizeof(BlockShare<WarpSlices<T>>)));
  return all + (rings ? bytes_of_feeds<T>(layout, facts.threads / kSliceRows, pages) : 0.0);
}

// Private vectors; those that travel are of the heap.
template <class T>
double bytes_of_vectors(const PeLayout& layout, const SolveSpec& solve, PageCount& pages) {
  auto needed = needed_vectors(solve);
  needed[private_index().inverse_diagonal] = true;  // comes with the matrix
  double all = 0.0;
  for (auto held = std::ranges::count(needed, true); held > 0; --held)
    all += pages.array(sizeof(T) * static_cast<double>(layout.private_rows));
  return all;
}

template <class T>
double bytes_of_lists(const HostLayout<T>& layout, std::size_t k, PageCount& pages) {
  const LocalSystem<T>& local = layout.plan.local[k];
  const double all = pages.array(local.send_ptr) + pages.array(local.destinations) +
                     pages.array(layout.sources[k]);
  double partners = 0.0;
  for (const ShareLayout& share : layout.pes[k].shares)
    for (const auto* list :
         {&share.plan.notify, &share.plan.await, &share.plan.await_local, &share.plan.reads})
      partners += bytes(*list);
  return all + pages.array(partners);
}

// f(bytes) of each array of FactorOnGpu.
template <class F>
void each_array_of(const std::vector<SlicedFactor>& blocks, F&& f) {
  const auto all = [&](auto part) {
    double sum = 0.0;
    for (const SlicedFactor& block : blocks) sum += bytes(block.*part);
    f(sum);
  };
  all(&SlicedFactor::slice), all(&SlicedFactor::row), all(&SlicedFactor::value);
  all(&SlicedFactor::narrow), all(&SlicedFactor::wide);
}

template <class T>
double bytes_of_factors(const PeFactors<T>& factors, const PeLayout& layout, PageCount& pages) {
  double all = pages.array(factors.scale), partners = 0.0;
  for (const auto& blocks : factors.factors)
    each_array_of(blocks, [&](double array) { all += pages.array(array); });
  for (int k = 0; k < 2; ++k)
    all += pages.array(sizeof(T) * static_cast<double>(layout.private_rows));
  for (const auto& list : factors.partners) partners += bytes(list);
  return all + pages.array(partners) +
         pages.array(static_cast<double>(layout.shares.size() * sizeof(FactorShare<T>)));
}

template <class T>
std::vector<PeFactors<T>> factors_of_pes(const HostLayout<T>& layout, const FactorSpec& spec) {
  std::vector<PeFactors<T>> made;
  if (!spec.any()) return made;
  for (std::size_t k = 0; k < layout.pes.size(); ++k) {
    const LocalSystem<T>& local = layout.plan.local[k];
    const OwnRows own = own_rows_of(local, layout.facts.first_row);
    made.push_back(lay_out_factors<T>(factors_of(own, spec), places_of(layout.pes[k], local.rows()),
                                      layout.pes[k].private_rows, kSliceRows));
  }
  return made;
}

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g GB", bytes / 1e9);
  return text;
}

// Where GPUs lay it out, they hold rows besides.
template <class T>
void set_peaks(const GpuPlace& place, const CsrView<T>& matrix,
               const std::vector<std::int64_t>& cuts, std::vector<GpuMemory>& pes) {
  for (std::size_t k = 0; k < pes.size(); ++k) {
    pes[k].peak = pes[k].all();
    if (cuts.empty()) continue;
    const auto entries = [&](std::size_t cut) { return matrix.row_ptr[at(cuts[cut])]; };
    const LaidOutShare share = {
        1, cuts[k + 1] - cuts[k], entries(k + 1) - entries(k), matrix.nnz(), true, k == 0};
    pes[k].peak = std::max(pes[k].peak, room_for_layout(place.spec, share, sizeof(T)));
  }
}

}  // namespace

template <class T>
std::vector<GpuMemory> memory_of(const GpuPlace& place, const HostLayout<T>& layout,
                                 std::int64_t rows, const LevelsMemory& levels,
                                 std::span<const PeFactors<T>> factors,
                                 std::span<const std::int64_t> cuts) {
  SolveSpec solve = place.spec.first;
  if (place.spec.factors.multigrid())
    solve.method = Method::cg, solve.preconditioner = Preconditioner::amg;
  const LayoutFacts& facts = layout.facts;
  const auto heap_of = [&](const LevelsExtent& cycle) {
    return Heap<T>(place.own.all, facts.blocks, facts.extent, facts.packets, place.nodes.count(),
                   place.spec.factors.any(), 1, cycle);
  };
  const auto plain = static_cast<double>(heap_of({}).bytes);
  const auto whole_heap = static_cast<double>(heap_of(levels.extent).bytes);
  const double travelling = 3.0 * sizeof(T) * static_cast<double>(facts.extent.rows_and_ghosts);
  const bool rings = on_chip_request<T>(place, facts, solve).slots != 0;
  std::vector<GpuMemory> pes(layout.pes.size());
  for (std::size_t k = 0; k < pes.size(); ++k) {
    GpuMemory& of = pes[k];
    PageCount pages = levels.pages.empty() ? PageCount(place.gpus[k].page_bytes) : levels.pages[k];
    pages.array(whole_heap);
    of.matrix = bytes_of_matrix<T>(layout.pes[k], facts, rings, pages);
    if (!cuts.empty() && facts.block_halos)  // the order of rows of blocks, for updates
      of.matrix += pages.array(4.0 * static_cast<double>(cuts[k + 1] - cuts[k]));
    of.vectors = bytes_of_vectors<T>(layout.pes[k], solve, pages) + travelling;
    if (k == 0 && place.own.speaker())  // what a whole vector passes through, and the history
      of.vectors +=
          pages.array(static_cast<double>(sizeof(T)) * static_cast<double>(rows)) +
          pages.array(8.0 * static_cast<double>(params_of<T>(solve, 1.0, false).history_capacity));
    of.halo = plain - travelling + bytes_of_lists(layout, k, pages);
    if (!factors.empty()) of.factors = bytes_of_factors(factors[k], layout.pes[k], pages);
    if (!levels.bytes.empty()) {
      of.levels = levels.bytes[k] + whole_heap - plain;
      of.kept = levels.kept;
    }
    of.pages = pages.unused();
  }
  return pes;
}

template <class T>
std::vector<GpuMemory> estimate_memory(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                                       std::span<const std::int32_t> order, const SystemSpec& spec,
                                       const GpuFacts& gpu, double free) {
  check(spec);
  GpuPlace place{spec, OwnPes::of(nullptr, spec.pes), {}, {}, NodeTable(spec.pes)};
  for (int pe = 0; pe < spec.pes; ++pe) place.devices.push_back(pe);
  place.gpus.assign(at(spec.pes), gpu);
  if (spec.factors.multigrid()) prepare_for_multigrid(place);
  const auto cuts = cuts_for_gpus(place, matrix, part, order);
  HaloPlan<T> plan = plan_of(matrix, part, order, spec.pes);
  std::optional<multigrid::Hierarchy> hierarchy;
  std::vector<std::int32_t> owner;
  if (spec.factors.multigrid())
    hierarchy = hierarchy_of(matrix, plan, multigrid_options(spec.factors, kMostGathered),
                             spec.factors, owner);
  const HostLayout<T> layout = lay_out_by_host(place, std::move(plan), order);
  LevelsMemory levels;
  if (hierarchy) {
    const LayoutFacts& facts = layout.facts;
    LevelPlan first = plan_of_first_level(
        *hierarchy, layout.plan, make_block_plans(layout.plan, facts.blocks, Awaited::everybody),
        facts.extent.rows_and_ghosts);
    const auto reports = report_of(*hierarchy);
    levels = memory_of_levels(place, *hierarchy, std::move(first), facts.threads, sizeof(T));
    choose_packets(place, reports, hierarchy->gathered, levels.extent);
    if (cuts.empty()) levels.kept = 0.0;
  }
  const auto factors = factors_of_pes(layout, spec.factors);
  auto pes = memory_of<T>(place, layout, matrix.n, levels, factors, cuts);
  if (free > 0.0 && pes.front().kept * kShareOfKept > free - pes.front().all())
    pes.front().kept = 0.0;
  set_peaks(place, matrix, cuts, pes);
  return pes;
}

template <class T>
std::vector<GpuMemory> least_with_levels(const GpuPlace& place, const CsrView<T>& matrix) {
  constexpr double kShortest = 1.0 + 2.0 / kRun;  // a byte of a dictionary, and columns in runs
  constexpr double kOfLevel = 6.0;                // a single and a distance
  const double share = 1.0 / place.own.all;
  const auto entries = share * static_cast<double>(matrix.nnz());
  GpuMemory least;
  least.matrix = kShortest * entries;
  least.vectors = 8.0 * sizeof(T) * share * static_cast<double>(matrix.n);
  least.levels = kOfLevel * entries;
  return std::vector<GpuMemory>(place.devices.size(), least);
}

double most_of_levels(const multigrid::Hierarchy& hierarchy, const OwnPes& own, double page) {
  // Of a slice: a value and a distance, at least; columns of four bytes where these are far apart,
  // and padding. Of a row: vectors, what travels, and places.
  constexpr double kEntry = 10.0, kRow = 96.0;
  constexpr double kArrays = 24.0;  // of a level, each of which may leave a page unused
  double all = page * (1.0 + kArrays * static_cast<double>(hierarchy.levels.size()));
  for (std::size_t l = 0; l < hierarchy.levels.size(); ++l) {
    const multigrid::Level& level = hierarchy.levels[l];
    const double entries = static_cast<double>(level.matrix.col.size()) +
                           2.0 * static_cast<double>(level.prolongator.col.size());
    const double share = hierarchy.is_whole(l) ? 1.0 : 1.0 / own.all;
    all += share * (kEntry * entries + kRow * static_cast<double>(level.matrix.row_ptr.size()));
  }
  return all + kEntry * static_cast<double>(hierarchy.inverse.size());
}

void require_memory(const GpuPlace& place, const std::vector<GpuMemory>& pes,
                    const std::vector<double>& free, std::size_t value_bytes) {
  std::string lacking;
  for (std::size_t k = 0; k < pes.size() && lacking.empty(); ++k) {
    GpuMemory all;
    for (std::size_t other = 0; other < pes.size(); ++other) {
      if (place.devices[other] != place.devices[k]) continue;
      all.matrix += pes[other].matrix, all.vectors += pes[other].vectors;
      all.halo += pes[other].halo, all.factors += pes[other].factors;
      all.levels += pes[other].levels, all.pages += pes[other].pages;
    }
    const double need = all.all();
    if (need <= free[k]) continue;
    lacking = "GPU " + std::to_string(place.devices[k]) +
              " has no room for this system: it takes " + gigabytes(need) + " there (matrix " +
              gigabytes(all.matrix) + ", vectors " + gigabytes(all.vectors) + ", messages " +
              gigabytes(all.halo);
    if (all.factors > 0.0) lacking += ", factors " + gigabytes(all.factors);
    if (all.levels > 0.0) lacking += ", levels of multigrid " + gigabytes(all.levels);
    lacking += "), and " + gigabytes(free[k]) + " are free. ";
    std::vector<std::string> fits;
    const int more = static_cast<int>(std::ceil(need / std::max(free[k], 1.0) * place.own.all));
    if (free[k] > 0.02 * need) fits.push_back(std::to_string(more) + " such GPUs or more");
    const double single = need - 0.4 * all.matrix - 0.5 * all.vectors;
    if (value_bytes > 4 && !place.spec.single_values && single <= free[k])
      fits.push_back("dtype=float32, about " + gigabytes(single));
    if (all.levels > 0.0 && need - all.levels <= free[k])
      fits.push_back("pc='jacobi', " + gigabytes(need - all.levels));
    lacking += fits.empty() ? "Free what else is on it" : "What would fit: ";
    for (std::size_t f = 0; f < fits.size(); ++f) lacking += (f == 0 ? "" : "; ") + fits[f];
  }
  if (place.least("room on GPUs", lacking.empty() ? 1 : 0) == 1) return;
  throw OutOfMemory(lacking.empty() ? "another process's GPU has no room for its part of the system"
                                    : lacking);
}

#define CPUFREE_GPU_MEMORY(T)                                                                    \
  template std::vector<GpuMemory> least_with_levels(const GpuPlace&, const CsrView<T>&);         \
  template std::vector<GpuMemory> memory_of(const GpuPlace&, const HostLayout<T>&, std::int64_t, \
                                            const LevelsMemory&, std::span<const PeFactors<T>>,  \
                                            std::span<const std::int64_t>);                      \
  template std::vector<GpuMemory> estimate_memory(                                               \
      const CsrView<T>&, std::span<const std::int32_t>, std::span<const std::int32_t>,           \
      const SystemSpec&, const GpuFacts&, double);
CPUFREE_GPU_MEMORY(float)
CPUFREE_GPU_MEMORY(double)

}  // namespace cpufree
