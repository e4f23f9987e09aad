// Lays a small system out for the solver kernels on the testing engine (plain rows, fibers).
#pragma once

#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "cpufree/device/node_table.hpp"
#include "cpufree/device/reduction.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/engines/cpu_fibers/remote_port.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/multigrid/cycle.hpp"
#include "cpufree/problem/blocks/block_halo.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/problem/remote_plan.hpp"
#include "cpufree/solvers/study.hpp"
#include "cycle_rig.hpp"
#include "factor_rig.hpp"
#include "matrices.hpp"

namespace testing_rig {

using namespace cpufree;
using Format = CsrRows<double>;

// How halos travel, and private vectors lie: as on the CPU engine, or as on GPUs, there for large
// systems or for those with halos of blocks.
enum class Style { cpu, gpu, gpu_blocks };

inline constexpr std::int64_t kAnyReads = std::numeric_limits<std::int64_t>::max();

class Rig {
 public:
  Rig(const testing_matrices::Matrix<double>& a, const std::vector<double>& b, int pes, int blocks,
      unsigned seed, Style style = Style::cpu)
      : Rig(a, b, NodeTable(pes), pes, blocks, seed, style) {}

  // PEs in nodes: halos of style `cpu` alone.
  Rig(const testing_matrices::Matrix<double>& a, const std::vector<double>& b,
      const NodeTable& nodes, int pes, int blocks, unsigned seed, Style style = Style::cpu)
      : pes_(pes), blocks_(blocks), gpu_(style != Style::cpu), b_(b), nodes_(nodes) {
    plan_ = make_halo_plan(a.view(), testing_matrices::random_partition(a.n(), pes, seed), {}, pes);
    if (style == Style::gpu_blocks)
      halos_ = make_block_halos(plan_, {}, blocks, kAnyReads, 1).value();  // interiors of any size
    else
      block_plans_ = make_block_plans(plan_, blocks);
    if (halos_) block_plans_ = halos_->plans;
    pes_data_.resize(static_cast<std::size_t>(pes));
    std::size_t longest = 1;
    for (int pe = 0; pe < pes; ++pe) {
      auto& local = plan_.local[static_cast<std::size_t>(pe)];
      data(pe).far =
          make_remote_plan(local, block_plans_[static_cast<std::size_t>(pe)], pe, nodes_.of_pe());
      longest = std::max(
          longest, static_cast<std::size_t>(local.rows() + local.ghosts + data(pe).far.staged));
    }
    for (const auto& blocks_of_pe : block_plans_) {
      std::size_t operand = 0;  // what blocks own and read
      for (const BlockPlan& plan : blocks_of_pe)
        operand += static_cast<std::size_t>(plan.rows()) + plan.reads.size();
      longest = std::max(longest, operand);
    }
    SymmetricLayout layout;
    const auto flags = layout.reserve<Flag>(
        static_cast<std::size_t>(arrival_flag_count(pes, blocks, nodes_.count())));
    const auto factor_flags =
        layout.reserve<Flag>(static_cast<std::size_t>(arrival_flag_count(pes, blocks, 1)));
    const auto slots =
        layout.reserve<Packet>(static_cast<std::size_t>(reduce_slot_count(pes, blocks)));
    const auto ghosted = layout.reserve<double>(3 * longest);
    const auto halo = layout.reserve<Packet>(3 * longest);
    const auto in = layout.reserve<double>(static_cast<std::size_t>(node_in_count(nodes_.count())));
    const auto out = layout.reserve<double>(static_cast<std::size_t>(node_out_count()));
    const auto told =
        layout.reserve<Flag>(static_cast<std::size_t>(node_flag_count(nodes_.count())));
    levels_ = LevelsHeap(layout, pes, blocks, static_cast<std::size_t>(a.n()));
    heaps_ = std::make_unique<cpu_threads::SymmetricHeaps>(pes, layout.bytes());
    for (int pe = 0; pe < pes; ++pe) {
      std::byte* const heap = heaps_->base(pe);
      for (const auto& runs : data(pe).far.runs)
        data(pe).runs.push_back({runs.data(), static_cast<std::int32_t>(runs.size())});
      data(pe).remote = {
          nodes_.view(), {in.at(heap), out.at(heap), told.at(heap)}, data(pe).runs.data()};
      fill(pe, flags, slots, ghosted.at(heaps_->base(pe)), longest);
      if (gpu_) send_packets(pe, halo.at(heaps_->base(pe)), longest);
      data(pe).factor_flags = factor_flags.at(heap);
    }
  }

  // Of a preconditioner that has factors.
  void set_factors(const FactorSpec& spec) {
    for (int pe = 0; pe < pes_; ++pe) {
      std::vector<std::int64_t> first;
      for (const auto& share : data(pe).shares) first.push_back(share.first_private);
      data(pe).factors.emplace(spec, plan_.local[static_cast<std::size_t>(pe)],
                               block_plans_[static_cast<std::size_t>(pe)], private_order(pe), first,
                               kFactorWidth<cpu_fibers::Port>, data(pe).factor_flags);
      data(pe).args.factors = data(pe).factors->shares();
    }
  }
  // So that no block waits for another before it multiplies with a factor.
  void forget_factor_partners() {
    for (int pe = 0; pe < pes_; ++pe) data(pe).factors->forget_partners();
  }

  // Of multigrid, where halos are those of the CPU engine. Returns the number of levels.
  std::size_t set_multigrid(const testing_matrices::Matrix<double>& a,
                            const multigrid::Options& options) {
    cycle_ = std::make_unique<RigCycle>(a, plan_, blocks_, options);
    for (int pe = 0; pe < pes_; ++pe)
      data(pe).args.cycle = cycle_->place(static_cast<std::size_t>(pe), levels_, heaps_->base(pe));
    return cycle_->levels();
  }
  RigCycle& cycle() { return *cycle_; }

  SolveParams params;
  bool prefetch = false;
  Outcome outcome;
  std::vector<Split> splits;  // of all blocks

  // Runs `solve_kernel` under one schedule, or `study_kernel`. True if no wait was given up.
  template <template <class, class> class Algorithm, class M, Study S = Study::none>
  bool run(std::uint64_t seed, const cpu_fibers::Fault& fault = {}) {
    reset();
    machine_ = std::make_unique<cpu_fibers::Machine>(
        cpu_fibers::Config{pes_, blocks_, heaps_->bases(), seed, fault}, [&](int pe, int block) {
          if constexpr (!std::is_same_v<M, Multigrid<double>>)  // which is for one node
            if (nodes_.count() > 1) {
              cpu_fibers::RemotePort port(*machine_, pe, block, data(pe).remote);
              return solve<Algorithm, M, S>(port, pe);
            }
          cpu_fibers::Port port(*machine_, pe, block);
          solve<Algorithm, M, S>(port, pe);
        });
    return machine_->run();
  }

  // For kernels that are run otherwise: a new solve, and what a PE's kernel is given.
  void reset() {
    outcome = {};
    history_.assign(static_cast<std::size_t>(params.history_capacity), 0.0);
    splits.assign(static_cast<std::size_t>(pes_ * blocks_), Split());
    for (int pe = 0; pe < pes_; ++pe) {
      std::memset(heaps_->base(pe), 0, heaps_->bytes());
      data(pe).args.params = params;
      data(pe).args.residency.prefetch = prefetch;
      data(pe).args.outcome = &outcome;
      data(pe).args.history = history_.data();
      data(pe).args.splits = splits.data() + pe * blocks_;
    }
  }
  const SolveArgs<Format>& args(int pe) const { return data(pe).args; }
  int pes() const { return pes_; }
  std::byte* const* heaps() const { return heaps_->bases(); }

  const cpu_fibers::Machine& machine() const { return *machine_; }

  std::vector<double> x() const {
    std::vector<double> all(b_.size());
    for (int pe = 0; pe < pes_; ++pe) {
      const auto& rows = data(pe).global_row;
      for (std::size_t i = 0; i < rows.size(); ++i)
        all[static_cast<std::size_t>(rows[i])] = data(pe).vectors[1][i];
    }
    return all;
  }

 private:
  struct PeData {
    SolveArgs<Format> args;
    std::vector<std::vector<double>> vectors;  // b, x, r, s, 1/d, z, w, n, u, q, out, rest
    std::vector<std::uint32_t> row_ptr;
    std::vector<std::int32_t> col;
    std::vector<std::int32_t> global_row;  // in the order of the private vectors
    std::vector<std::int32_t> source;
    std::vector<Destination> destinations;
    std::vector<BlockShare<Format>> shares;
    Flag* factor_flags = nullptr;
    std::optional<RigFactors> factors;
    RemotePlan far;
    std::vector<RemoteRuns> runs;
    Remote remote;
  };
  template <template <class, class> class Algorithm, class M, Study S, class P>
  void solve(P& port, int pe) {
    if constexpr (S == Study::none)
      solve_kernel<Algorithm, M>(port, data(pe).args);
    else
      study_kernel<S, Algorithm, M>(port, data(pe).args);
  }

  PeData& data(int pe) { return pes_data_[static_cast<std::size_t>(pe)]; }
  const PeData& data(int pe) const { return pes_data_[static_cast<std::size_t>(pe)]; }

  void fill(int pe, Symmetric<Flag> flags, Symmetric<Packet> slots, double* ghosted,
            std::size_t longest) {
    const auto& local = plan_.local[static_cast<std::size_t>(pe)];
    PeData& d = data(pe);
    const auto rows = static_cast<std::size_t>(local.rows());
    d.vectors.assign(12, std::vector<double>(rows + 1));
    d.row_ptr.assign(local.row_ptr.begin(), local.row_ptr.end());
    const auto order = private_order(pe);
    for (std::size_t j = 0; j < rows; ++j) {
      const std::size_t i = order[j];
      d.global_row.push_back(local.global_row[i]);
      d.vectors[0][j] = b_[static_cast<std::size_t>(local.global_row[i])];
      for (auto k = local.row_ptr[i]; k < local.row_ptr[i + 1]; ++k)
        if (static_cast<std::size_t>(local.col[static_cast<std::size_t>(k)]) == i)
          d.vectors[4][j] = 1.0 / local.val[static_cast<std::size_t>(k)];
    }
    auto v = [&](std::size_t k) { return d.vectors[k].data(); };
    d.col = columns(pe);
    const Format format{d.row_ptr.data(), d.col.data(), local.val.data()};
    const auto rows_of = [&](RowRange r) {
      return Format::Rows{r.begin, r.end, local.row_ptr[static_cast<std::size_t>(r.begin)]};
    };
    std::int64_t first = 0;
    std::int64_t operand = 0;
    std::int32_t remote = 0;  // rows that other PEs read, of the blocks before
    for (const BlockPlan& plan : block_plans_[static_cast<std::size_t>(pe)]) {
      BlockShare<Format> share{
          format, rows_of(plan.interior), rows_of(plan.boundary),
          ArrivalBoard{flags.at(heaps_->base(pe)), plan.notify.data(), plan.await.data(),
                       plan.await_local.data(), static_cast<std::int32_t>(plan.notify.size()),
                       static_cast<std::int32_t>(plan.await.size()),
                       static_cast<std::int32_t>(plan.await_local.size())}};
      if (gpu_) {
        share.first_private = first;
        share.boundary_shift = plan.boundary.begin;
        share.interior_shift = plan.interior.begin - (plan.boundary.end - plan.boundary.begin);
        first += share.rows();
      }
      share.first_packet = plan.first_packet;
      share.reads = plan.reads.data();
      share.read_count = static_cast<std::int32_t>(plan.reads.size());
      share.first_operand = operand;
      operand += share.rows() + share.read_count;
      share.remote_end = halos_ ? plan.boundary.begin + plan.remote : plan.boundary.end;
      share.send_shift = halos_ ? plan.boundary.begin - remote : local.interior;
      remote += plan.remote;
      d.shares.push_back(share);
    }
    d.args.vectors = {.x = v(1),
                      .r = v(2),
                      .s = v(3),
                      .b = v(0),
                      .inverse_diagonal = v(4),
                      .z = v(5),
                      .w = v(6),
                      .n = v(7),
                      .u = v(8),
                      .q = v(9),
                      .out = v(10),
                      .rest = v(11),
                      .p = ghosted,
                      .scratch = {ghosted + longest, ghosted + 2 * longest}};
    d.args.shares = d.shares.data();
    d.args.rows = local.rows();
    d.args.block_halos = halos_.has_value();
    d.args.send_ptr = local.send_ptr.data();
    d.args.destinations = local.destinations.data();
    d.args.global_row = d.global_row.data();
    d.args.slots = slots.at(heaps_->base(pe));
  }

  // The columns of a PE's rows, as the kernel calls them.
  std::vector<std::int32_t> columns(int pe) const {
    const auto& local = plan_.local[static_cast<std::size_t>(pe)];
    std::vector<std::int32_t> col(local.col.begin(), local.col.end());
    if (!halos_) return col;
    const auto& blocks = halos_->plans[static_cast<std::size_t>(pe)];
    const auto packets = packets_of_rows(blocks);
    for (const BlockPlan& plan : blocks) {
      const RowRange own{plan.boundary.begin, plan.interior.end};
      const auto from = col.begin() + local.row_ptr[static_cast<std::size_t>(own.begin)];
      const auto end = col.begin() + local.row_ptr[static_cast<std::size_t>(own.end)];
      std::transform(from, end, from, BlockColumns{own, local.rows(), packets.data(), plan.reads});
    }
    return col;
  }

  // The rows of a PE in the order of its private vectors.
  std::vector<std::size_t> private_order(int pe) const {
    std::vector<std::size_t> order;
    const auto add = [&](RowRange r) {
      for (std::int32_t i = r.begin; i < r.end; ++i) order.push_back(static_cast<std::size_t>(i));
    };
    if (!gpu_) add({0, plan_.local[static_cast<std::size_t>(pe)].rows()});
    if (gpu_)
      for (const BlockPlan& plan : block_plans_[static_cast<std::size_t>(pe)])
        add(plan.boundary), add(plan.interior);
    return order;
  }

  // Halos as packets: destinations are numbers of ghosts, and each ghost knows who sends it.
  void send_packets(int pe, Packet* halo, std::size_t longest) {
    const auto& local = plan_.local[static_cast<std::size_t>(pe)];
    PeData& d = data(pe);
    d.destinations = local.destinations;
    for (Destination& to : d.destinations)
      to.index -= plan_.local[static_cast<std::size_t>(to.pe)].rows();
    const auto boundaries = gather_boundaries(block_plans_, AllHere(plan_.local.size()));
    d.source =
        halos_ ? packet_sources(local, boundaries, block_plans_[static_cast<std::size_t>(pe)], pe)
               : ghost_sources(local, boundaries);
    d.args.destinations = d.destinations.data();
    d.args.source = d.source.data();
    for (std::size_t k = 0; k < 3; ++k) d.args.halo[k] = halo + k * longest;
  }

  int pes_, blocks_;
  bool gpu_;
  std::vector<double> b_;
  NodeTable nodes_;
  HaloPlan<double> plan_;
  std::optional<BlockHalos> halos_;
  std::vector<std::vector<BlockPlan>> block_plans_;
  std::unique_ptr<cpu_threads::SymmetricHeaps> heaps_;
  LevelsHeap levels_;
  std::unique_ptr<RigCycle> cycle_;
  std::vector<PeData> pes_data_;
  std::vector<double> history_;
  std::unique_ptr<cpu_fibers::Machine> machine_;
};

}  // namespace testing_rig
