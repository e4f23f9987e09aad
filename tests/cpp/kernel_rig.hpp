// Lays a small system out for the solver kernels on the testing engine (plain rows, fibers).
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/problem/block_plan.hpp"
#include "cpufree/solvers/csr_rows.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "matrices.hpp"

namespace testing_rig {

using namespace cpufree;
using FiberPort = cpu_fibers::Port;
using Format = CsrRows<double>;

class Rig {
 public:
  Rig(const testing_matrices::Matrix<double>& a, const std::vector<double>& b, int pes, int blocks,
      unsigned seed)
      : pes_(pes), blocks_(blocks), b_(b) {
    plan_ = make_halo_plan(a.view(), testing_matrices::random_partition(a.n(), pes, seed), {}, pes);
    block_plans_ = make_block_plans(plan_, blocks);
    std::size_t longest = 1;
    for (const auto& local : plan_.local)
      longest = std::max(longest, static_cast<std::size_t>(local.rows() + local.ghosts));
    SymmetricLayout layout;
    const auto flags = layout.reserve<Flag>(static_cast<std::size_t>(pes * blocks));
    const auto slots =
        layout.reserve<Packet>(static_cast<std::size_t>(reduce_slot_count(pes, blocks)));
    const auto ghosted = layout.reserve<double>(3 * longest);
    heaps_ = std::make_unique<cpu_threads::SymmetricHeaps>(pes, layout.bytes());
    pes_data_.resize(static_cast<std::size_t>(pes));
    for (int pe = 0; pe < pes; ++pe) fill(pe, flags, slots, ghosted.at(heaps_->base(pe)), longest);
  }

  SolveParams params;
  Outcome outcome;

  // Runs `solve_kernel` under one schedule. True if no wait was given up.
  template <template <class, class> class Algorithm, class M>
  bool run(std::uint64_t seed, const cpu_fibers::Fault& fault = {}) {
    outcome = {};
    history_.assign(static_cast<std::size_t>(params.history_capacity), 0.0);
    for (int pe = 0; pe < pes_; ++pe) {
      std::memset(heaps_->base(pe), 0, heaps_->bytes());
      data(pe).args.params = params;
      data(pe).args.outcome = &outcome;
      data(pe).args.history = history_.data();
    }
    machine_ = std::make_unique<cpu_fibers::Machine>(
        cpu_fibers::Config{pes_, blocks_, heaps_->bases(), seed, fault}, [&](int pe, int block) {
          FiberPort port(*machine_, pe, block);
          solve_kernel<Algorithm, M>(port, data(pe).args);
        });
    return machine_->run();
  }

  const cpu_fibers::Machine& machine() const { return *machine_; }

  std::vector<double> x() const {
    std::vector<double> all(b_.size());
    for (int pe = 0; pe < pes_; ++pe) {
      const auto& rows = plan_.local[static_cast<std::size_t>(pe)].global_row;
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
    std::vector<BlockShare<Format>> shares;
  };
  PeData& data(int pe) { return pes_data_[static_cast<std::size_t>(pe)]; }
  const PeData& data(int pe) const { return pes_data_[static_cast<std::size_t>(pe)]; }

  void fill(int pe, Symmetric<Flag> flags, Symmetric<Packet> slots, double* ghosted,
            std::size_t longest) {
    const auto& local = plan_.local[static_cast<std::size_t>(pe)];
    PeData& d = data(pe);
    const auto rows = static_cast<std::size_t>(local.rows());
    d.vectors.assign(12, std::vector<double>(rows + 1));
    d.row_ptr.assign(local.row_ptr.begin(), local.row_ptr.end());
    for (std::size_t i = 0; i < rows; ++i) {
      d.vectors[0][i] = b_[static_cast<std::size_t>(local.global_row[i])];
      for (auto k = local.row_ptr[i]; k < local.row_ptr[i + 1]; ++k)
        if (static_cast<std::size_t>(local.col[static_cast<std::size_t>(k)]) == i)
          d.vectors[4][i] = 1.0 / local.val[static_cast<std::size_t>(k)];
    }
    auto v = [&](std::size_t k) { return d.vectors[k].data(); };
    const Format format{d.row_ptr.data(), local.col.data(), local.val.data()};
    const auto rows_of = [&](RowRange r) {
      return Format::Rows{r.begin, r.end, local.row_ptr[static_cast<std::size_t>(r.begin)]};
    };
    for (const BlockPlan& plan : block_plans_[static_cast<std::size_t>(pe)])
      d.shares.push_back(
          {format, rows_of(plan.interior), rows_of(plan.boundary),
           ArrivalBoard{flags.at(heaps_->base(pe)), plan.notify.data(), plan.await.data(),
                        static_cast<std::int32_t>(plan.notify.size()),
                        static_cast<std::int32_t>(plan.await.size())}});
    d.args.vectors = {v(0),  v(1), v(2), v(3), ghosted, {ghosted + longest, ghosted + 2 * longest},
                      v(4),  v(5), v(6), v(7), v(8),    v(9),
                      v(10), v(11)};
    d.args.shares = d.shares.data();
    d.args.interior = local.interior;
    d.args.send_ptr = local.send_ptr.data();
    d.args.destinations = local.destinations.data();
    d.args.global_row = local.global_row.data();
    d.args.slots = slots.at(heaps_->base(pe));
  }

  int pes_, blocks_;
  std::vector<double> b_;
  HaloPlan<double> plan_;
  std::vector<std::vector<BlockPlan>> block_plans_;
  std::unique_ptr<cpu_threads::SymmetricHeaps> heaps_;
  std::vector<PeData> pes_data_;
  std::vector<double> history_;
  std::unique_ptr<cpu_fibers::Machine> machine_;
};

}  // namespace testing_rig
