// What the Systems of all engines share in laying a matrix out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/peers.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// The halo plan; without a partition, contiguous parts of equal weight.
template <class T>
HaloPlan<T> plan_of(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                    std::span<const std::int32_t> order, int pes, RowArrays rows = RowArrays::own);

// What there is to know of the shares of all PEs, by PE: the same in all processes, which make
// their choices from it alone and so make the same ones.
using Shares = std::vector<PlanReport::Pe>;
template <class T>
Shares shares_of(const HaloPlan<T>& plan, const Peers& peers);

// Most rows and ghosts of a PE, and most ghosts.
struct Extent {
  std::size_t rows_and_ghosts = 0;
  std::size_t rows = 0;
  std::size_t ghosts = 0;
};
Extent extent_of(const Shares& shares);

// Whether ghosts travel as packets: as SystemSpec::halo says, or if there are at most `most` on a
// PE, and rows read each of them a few times at most: every read is a look at the packet.
bool use_packets(const SystemSpec& spec, const Shares& shares, std::size_t most);

// Nonzeros beyond which barriers among blocks cost less than packets.
inline constexpr std::int64_t kMostBlockHaloNonzeros = 24'000'000;
// From which on GPUs lay a matrix out: below, the host has done it before the GPU has run its
// dozens of kernels.
inline constexpr std::int64_t kLeastGpuLayoutNonzeros = 400'000;

// Whether a system of N nonzeros may have halos of blocks (most_block_reads).
bool may_have_block_halos(const SystemSpec& spec, std::int64_t nonzeros);

// The packets, of all blocks, up to which rows of other blocks of the same PE are to be ghosts, too
// (make_block_halos); 0: not at all. As SystemSpec::halo says, or where values fetched
// from packets cost less than a barrier among the blocks: up to one for each row, or, where the
// share of every block is likely to fit on chip, up to a few for each thread. Values have
// `value_bytes`.
std::int64_t most_block_reads(const SystemSpec& spec, const Shares& shares, int blocks,
                              std::size_t value_bytes);

// Packets land in arrays of ghosts: turns destinations into numbers of ghosts, from 0.
template <class T>
void count_destinations_from_ghosts(HaloPlan<T>& plan, const Shares& shares);

// Throws InvalidInput for single_values where these cannot be had: in single precision, with PEs in
// several nodes.
template <class T>
void check_single_values(const SystemSpec& spec, bool nodes);
// Throws Unsupported for a block of right-hand sides with single_values: where the residual of one
// column is replaced, as these do often, all columns of a block start again.
void refuse_block_of_singles(const SolveSpec& spec, bool single_values);
// The value in single precision. Throws InvalidInput where it would be 0, infinite or lose digits.
float single_of(double value);
template <class T>
void require_singles(const CsrView<T>& matrix) {
  for (const T value : matrix.val) single_of(static_cast<double>(value));
}

// Drops the shares of PEs that other processes run: afterwards plan.local[k] is that of PE
// own.first + k.
template <class T>
void keep_own(HaloPlan<T>& plan, const OwnPes& own);

// Whether a solve makes noise from the names of rows (lambda_max_cold).
inline bool makes_noise(const SolveSpec& spec) {
  return spec.preconditioner == Preconditioner::chebyshev;
}
// The names of the rows of a slab, which begins with row `first` of the matrix: their numbers
// there, as far as 32 bits go.
std::vector<std::int32_t> row_names(const std::vector<std::int32_t>& rows, std::int64_t first);

// How the plan lies on the PEs; the engine adds what is its own.
PlanReport report_of(const Shares& shares, const SystemSpec& spec, int blocks, bool packets);

}  // namespace cpufree
