#include "cpufree/run/setup.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

template <class T>
HaloPlan<T> plan_of(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                    std::span<const std::int32_t> order, int pes) {
  if (!part.empty()) return make_halo_plan(matrix, part, order, pes);
  return make_halo_plan<T>(matrix, contiguous_partition(matrix.row_ptr, pes), order, pes);
}

template <class T>
double invert_diagonal(const LocalSystem<T>& local, RowRange rows, T* inverse) {
  double bound = 0.0;
  for (std::int32_t i = rows.begin; i < rows.end; ++i) {
    double sum = 0.0;
    double diagonal = 0.0;
    for (std::int64_t e = local.row_ptr[at(i)]; e < local.row_ptr[at(i) + 1]; ++e) {
      const double size = std::abs(static_cast<double>(local.val[at(e)]));
      sum += size;
      if (local.col[at(e)] == i) diagonal = size;
    }
    // |a_ii|, so that an indefinite matrix is not taken for an indefinite preconditioner.
    inverse[i - rows.begin] = static_cast<T>(diagonal > 0.0 ? 1.0 / diagonal : 1.0);
    bound = std::max(bound, diagonal > 0.0 ? sum / diagonal : sum);
  }
  return bound;
}

template <class T>
Extent extent_of(const HaloPlan<T>& plan) {
  Extent extent;
  for (const LocalSystem<T>& local : plan.local) {
    extent.rows = std::max(extent.rows, at(local.rows()));
    extent.ghosts = std::max(extent.ghosts, at(local.ghosts));
    extent.rows_and_ghosts = std::max(extent.rows_and_ghosts, at(local.rows()) + at(local.ghosts));
  }
  return extent;
}

template <class T>
bool use_packets(const SystemSpec& spec, const HaloPlan<T>& plan, std::size_t most) {
  constexpr std::int64_t kMostReads = 4;  // of a ghost, on average
  const std::size_t ghosts = extent_of(plan).ghosts;
  if (ghosts == 0 || spec.halo == 0) return false;
  if (spec.halo > 0) return true;
  if (ghosts > most) return false;
  return std::ranges::all_of(plan.local, [](const LocalSystem<T>& local) {
    const auto first = local.col.begin() + local.row_ptr[at(local.interior)];
    const auto reads = std::count_if(first, local.col.end(),
                                     [&](std::int32_t column) { return column >= local.rows(); });
    return reads <= kMostReads * local.ghosts;
  });
}

template <class T>
std::int64_t most_block_reads(const SystemSpec& spec, const HaloPlan<T>& plan, int blocks) {
  if (spec.halo >= 0) return spec.halo == 2 ? std::numeric_limits<std::int64_t>::max() : 0;
  constexpr std::int64_t kMostNonzeros = 24'000'000;  // beyond, renumbering takes too long
  // Packets of a block. With more, G3_circuit (4500; one H200, cg) takes 97 us with packets and 79
  // without; with fewer, tmt_sym (1900) takes 36 and 42.
  constexpr std::int64_t kFew = 2048;
  // Where rows are long, what is read is read many times, and from the block's own part of the
  // vector: on two H200 crankseg_1 takes 29 us and 78 without (prcg), crankseg_2 37 and 74,
  // bmwcra_1 55 and 60, hood 12.1 and 16.2, consph 9.8 and 15.1; on one they are the same or better
  // by up to a tenth. (6700 packets of a block of bmwcra_1 are the most that was measured.)
  constexpr std::int64_t kLong = 24;  // entries of a row
  constexpr std::int64_t kMost = 8192;
  constexpr double kPadding = 1.15;  // entries of slices over nonzeros
  constexpr double kVectors = 6.0;   // that a solve by prcg keeps on chip
  constexpr double kRoom = 200e3;    // bytes of a block
  std::int64_t nonzeros = 0;
  std::int64_t rows = 0;
  bool on_chip = true, perhaps = true;  // with values as they are, with values coded
  for (const LocalSystem<T>& local : plan.local) {
    nonzeros += local.row_ptr.back();
    rows += local.rows();
    const double entries = kPadding * static_cast<double>(local.row_ptr.back());
    const double vectors = kVectors * sizeof(T) * local.rows();
    on_chip = on_chip && entries * (sizeof(T) + 2.0) + vectors <= kRoom * blocks;
    perhaps = perhaps && entries * (1.0 + 2.0) + vectors <= kRoom * blocks;
  }
  if (spec.boundary_blocks > 0 || nonzeros > kMostNonzeros) return 0;
  const std::int64_t all_blocks = static_cast<std::int64_t>(plan.local.size()) * blocks;
  if (nonzeros >= kLong * rows) return kMost * all_blocks;
  const std::int64_t few = kFew * all_blocks;
  if (on_chip) return std::max(rows, few);
  return perhaps ? rows : std::min(rows, few);
}

template <class T>
void count_destinations_from_ghosts(HaloPlan<T>& plan) {
  for (LocalSystem<T>& local : plan.local)
    for (Destination& destination : local.destinations)
      destination.index -= plan.local[at(destination.pe)].rows();
}

template <class T>
void keep_own(HaloPlan<T>& plan, const OwnPes& own) {
  keep_own(plan.local, own);
}

template <class T>
PlanReport report_of(const HaloPlan<T>& plan, const SystemSpec& spec, int blocks, bool packets) {
  PlanReport report;
  report.engine = engine_name(spec.engine);
  report.blocks = blocks;
  report.edge_cut = plan.edge_cut;
  report.halo_values = plan.halo_values;
  report.imbalance = plan.imbalance;
  if (plan.halo_values > 0) report.halo = packets ? "packets" : "stores";
  for (const LocalSystem<T>& local : plan.local)
    report.pes.push_back(
        {local.rows(), local.row_ptr.back(), local.ghosts, local.boundary(), local.neighbours});
  return report;
}

template HaloPlan<float> plan_of(const CsrView<float>&, std::span<const std::int32_t>,
                                 std::span<const std::int32_t>, int);
template HaloPlan<double> plan_of(const CsrView<double>&, std::span<const std::int32_t>,
                                  std::span<const std::int32_t>, int);
template double invert_diagonal(const LocalSystem<float>&, RowRange, float*);
template double invert_diagonal(const LocalSystem<double>&, RowRange, double*);
template Extent extent_of(const HaloPlan<float>&);
template Extent extent_of(const HaloPlan<double>&);
template bool use_packets(const SystemSpec&, const HaloPlan<float>&, std::size_t);
template bool use_packets(const SystemSpec&, const HaloPlan<double>&, std::size_t);
template std::int64_t most_block_reads(const SystemSpec&, const HaloPlan<float>&, int);
template std::int64_t most_block_reads(const SystemSpec&, const HaloPlan<double>&, int);
template void count_destinations_from_ghosts(HaloPlan<float>&);
template void count_destinations_from_ghosts(HaloPlan<double>&);
template void keep_own(HaloPlan<float>&, const OwnPes&);
template void keep_own(HaloPlan<double>&, const OwnPes&);
template PlanReport report_of(const HaloPlan<float>&, const SystemSpec&, int, bool);
template PlanReport report_of(const HaloPlan<double>&, const SystemSpec&, int, bool);

}  // namespace cpufree
