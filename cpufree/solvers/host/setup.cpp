#include "cpufree/solvers/host/setup.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/machine.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

template <class T>
HaloPlan<T> plan_of(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                    std::span<const std::int32_t> order, int pes, RowArrays rows) {
  if (!part.empty()) return make_halo_plan(matrix, part, order, pes, rows);
  return make_halo_plan<T>(matrix, contiguous_partition(matrix.row_ptr, pes), order, pes, rows);
}

namespace {
// A share as numbers, to be sent.
template <class T>
std::vector<std::int64_t> numbers_of(const LocalSystem<T>& local) {
  std::vector<std::int64_t> numbers = {local.rows(), local.row_ptr.back(), local.ghosts,
                                       local.boundary(), local.ghost_reads()};
  for (const Neighbour& n : local.neighbours)
    numbers.insert(numbers.end(), {n.pe, n.received, n.first_ghost, n.sent});
  return numbers;
}

PlanReport::Pe share_from(const std::vector<std::int64_t>& numbers) {
  PlanReport::Pe pe{numbers.at(0), numbers.at(1), numbers.at(2), numbers.at(3), numbers.at(4), {}};
  const auto at32 = [&](std::size_t k) { return static_cast<std::int32_t>(numbers.at(k)); };
  for (std::size_t k = 5; k < numbers.size(); k += 4)
    pe.neighbours.push_back({at32(k), at32(k + 1), at32(k + 2), at32(k + 3)});
  return pe;
}
}  // namespace

template <class T>
Shares shares_of(const HaloPlan<T>& plan, const Peers& peers) {
  std::vector<std::vector<std::int64_t>> mine;
  for (const LocalSystem<T>& local : plan.local) mine.push_back(numbers_of(local));
  Shares shares;
  for (const auto& numbers : gather_lists(peers, "shares of the matrix", mine))
    shares.push_back(share_from(numbers));
  return shares;
}

Extent extent_of(const Shares& shares) {
  Extent extent;
  for (const PlanReport::Pe& pe : shares) {
    extent.rows = std::max(extent.rows, at(pe.rows));
    extent.ghosts = std::max(extent.ghosts, at(pe.ghosts));
    extent.rows_and_ghosts = std::max(extent.rows_and_ghosts, at(pe.rows + pe.ghosts));
  }
  return extent;
}

bool use_packets(const SystemSpec& spec, const Shares& shares, std::size_t most) {
  constexpr std::int64_t kMostReads = 4;  // of a ghost, on average
  const std::size_t ghosts = extent_of(shares).ghosts;
  if (ghosts == 0 || spec.halo == 0) return false;
  if (spec.halo > 0) return true;
  return ghosts <= most && std::ranges::all_of(shares, [](const PlanReport::Pe& pe) {
           return pe.ghost_reads <= kMostReads * pe.ghosts;
         });
}

bool may_have_block_halos(const SystemSpec& spec, std::int64_t nonzeros) {
  return spec.halo >= 0 ? spec.halo == 2 : nonzeros <= kMostBlockHaloNonzeros;
}

std::int64_t most_block_reads(const SystemSpec& spec, const Shares& shares, int blocks,
                              std::size_t value_bytes) {
  if (spec.halo >= 0) return spec.halo == 2 ? std::numeric_limits<std::int64_t>::max() : 0;
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
  std::int64_t nonzeros = 0;
  std::int64_t rows = 0;
  bool on_chip = true, perhaps = true;  // with values as they are, with values coded
  const auto bytes = static_cast<double>(value_bytes);
  for (const PlanReport::Pe& pe : shares) {
    nonzeros += pe.nnz;
    rows += pe.rows;
    const double entries = kPadding * static_cast<double>(pe.nnz);
    const double vectors = kVectors * bytes * static_cast<double>(pe.rows);
    on_chip =
        on_chip && entries * (bytes + 2.0) + vectors <= spec.machine.solver_block_bytes * blocks;
    perhaps =
        perhaps && entries * (1.0 + 2.0) + vectors <= spec.machine.solver_block_bytes * blocks;
  }
  if (!may_have_block_halos(spec, nonzeros)) return 0;
  const std::int64_t all_blocks = static_cast<std::int64_t>(shares.size()) * blocks;
  if (nonzeros >= kLong * rows) return kMost * all_blocks;
  const std::int64_t few = kFew * all_blocks;
  if (on_chip) return std::max(rows, few);
  return perhaps ? rows : std::min(rows, few);
}

template <class T>
void count_destinations_from_ghosts(HaloPlan<T>& plan, const Shares& shares) {
  for (LocalSystem<T>& local : plan.local)
    for (Destination& destination : local.destinations)
      destination.index -= static_cast<std::int32_t>(shares[at(destination.pe)].rows);
}

template <class T>
void check_single_values(const SystemSpec& spec, bool nodes) {
  if (!spec.single_values) return;
  require(sizeof(T) == sizeof(double),
          "mixed precision is for solves in double precision: leave out precision, or dtype");
  if (nodes)
    throw Unsupported("mixed precision is for PEs of one node: leave out precision='mixed'");
}

void refuse_block_of_singles(const SolveSpec& spec, bool single_values) {
  if (single_values && spec.method == Method::block_cg)
    throw Unsupported(
        "right-hand sides are no block in mixed precision, where each replaced residual would have "
        "all of them start again: leave out precision='mixed', or solve columns together");
}

float single_of(double value) {
  const auto single = static_cast<float>(value);
  if (value == 0.0 || std::isnormal(single) || std::isnan(value)) return single;
  std::ostringstream text;
  text << "the matrix has the value " << value << ", which single precision does not hold (1.2e-38 "
       << "to 3.4e38): multiply A and b by a number that brings all values there, if there is one, "
          "or "
       << "leave out precision='mixed'";
  throw InvalidInput(text.str());
}

template <class T>
void keep_own(HaloPlan<T>& plan, const OwnPes& own) {
  std::vector<LocalSystem<T>> kept;
  for (int k = 0; k < own.here; ++k) kept.push_back(std::move(plan.local[at(own.first + k)]));
  plan.local = std::move(kept);
}

std::vector<std::int32_t> row_names(const std::vector<std::int32_t>& rows, std::int64_t first) {
  std::vector<std::int32_t> names;
  names.reserve(rows.size());
  for (const std::int32_t row : rows)
    names.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(first + row)));
  return names;
}

PlanReport report_of(const Shares& shares, const SystemSpec& spec, int blocks, bool packets) {
  PlanReport report;
  report.engine = engine_name(spec.engine);
  report.blocks = blocks;
  report.pes = shares;
  std::int64_t reads = 0, most = 0, all = 0;
  for (const PlanReport::Pe& pe : shares) {
    reads += pe.ghost_reads;
    report.halo_values += pe.ghosts;
    most = std::max(most, pe.nnz);
    all += pe.nnz;
  }
  report.edge_cut = reads / 2;  // each pair is read from both sides
  const double mean = static_cast<double>(all) / static_cast<double>(shares.size());
  report.imbalance = all > 0 ? static_cast<double>(most) / mean : 1.0;
  if (report.halo_values > 0) report.halo = packets ? "packets" : "stores";
  return report;
}

template HaloPlan<float> plan_of(const CsrView<float>&, std::span<const std::int32_t>,
                                 std::span<const std::int32_t>, int, RowArrays);
template HaloPlan<double> plan_of(const CsrView<double>&, std::span<const std::int32_t>,
                                  std::span<const std::int32_t>, int, RowArrays);
template Shares shares_of(const HaloPlan<float>&, const Peers&);
template Shares shares_of(const HaloPlan<double>&, const Peers&);
template void count_destinations_from_ghosts(HaloPlan<float>&, const Shares&);
template void count_destinations_from_ghosts(HaloPlan<double>&, const Shares&);
template void check_single_values<float>(const SystemSpec&, bool);
template void check_single_values<double>(const SystemSpec&, bool);
template void keep_own(HaloPlan<float>&, const OwnPes&);
template void keep_own(HaloPlan<double>&, const OwnPes&);

}  // namespace cpufree
