// The CPU engine's System: slices and vectors in memory, kernels on threads.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cpufree/base/laps.hpp"
#include "cpufree/device/node_table.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/launch/cpu/process_heaps.hpp"
#include "cpufree/launch/cpu/run.hpp"
#include "cpufree/multigrid/cpu/multigrid.hpp"
#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/problem/remote_plan.hpp"
#include "cpufree/solvers/cpu/share.hpp"
#include "cpufree/solvers/host/columns.hpp"
#include "cpufree/solvers/host/factor_layout.hpp"
#include "cpufree/solvers/host/gather.hpp"
#include "cpufree/solvers/host/heap.hpp"
#include "cpufree/solvers/host/scaling.hpp"
#include "cpufree/solvers/host/setup.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

template <class T>
class CpuSystem final : public System<T> {
 public:
  CpuSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
            std::span<const std::int32_t> order, const SystemSpec& spec);
  CpuSystem(SlabPlan<T> slab, const SystemSpec& spec);

  using System<T>::solve;
  std::int32_t rows() const override { return rows_; }
  const PlanReport& plan() const override { return report_; }
  SolveResult solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                    const SolveSpec& spec, const Progress& progress) override;
  std::vector<SolveResult> solve_columns(const ColumnViews<T>& vectors, const SolveSpec& spec,
                                         const Progress& progress) override;
  std::string refuses_columns() const override;
  bool update(const CsrView<T>& matrix) override;
  bool usable() const override { return usable_; }

 private:
  using Share = CpuShare<T>;
  static constexpr int kWidth = Share::kWidth;
  using Matrix = typename Share::Matrix;
  template <class U>
  using Array = cpu_threads::Array<U>;

  // One PE's private memory. A row's private number is its number in the PE.
  struct Pe {
    LocalSystem<T> local;             // without row_ptr, col, val: the shares hold the matrix
    bool consecutive = false;         // rows, in the order of the matrix
    std::vector<std::int32_t> names;  // of a slab's rows (row_names), once they are needed
    std::vector<std::int32_t> ghost_source;
    RemotePlan far;  // what goes to other nodes
    std::vector<RemoteRuns> runs;
    std::vector<Share> shares;
    std::vector<BlockShare<Matrix>> views;
    std::array<Array<T>, kPrivateVectors> vectors;  // in the order of `each_private`
    PeFactors<T> factors;
    std::array<Array<T>, 2> operand;  // of the factors
    std::vector<FactorShare<T>> factor_views;
  };

  // Memory for N right-hand sides together, once they have been asked for.
  struct ColumnsMemory {
    std::size_t columns = 0;
    Heap<T> heap;
    std::unique_ptr<CpuHeaps> heaps;
    std::vector<std::array<Array<T>, kColumnVectors>> vectors;  // of each PE (ColumnVector)
  };

  CpuSystem(std::int64_t rows, const SystemSpec& spec);
  void build(HaloPlan<T>& plan, const SystemSpec& spec,
             std::optional<multigrid::Hierarchy> hierarchy = {});
  void build_shares(HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>> plans);
  void plan_nodes(HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>>& plans, Extent& extent);
  void lay_out(const Extent& extent);
  void make_factors(const std::function<OwnRows(std::size_t)>& own);
  void show_factors();
  bool update_multigrid(const CsrView<T>& matrix);
  std::vector<std::span<const Share>> shares_of_pes() const;
  void lay_out_multigrid(multigrid::Hierarchy hierarchy, const HaloPlan<T>& plan,
                         std::size_t rows_and_ghosts);
  void invert_diagonal(Pe& pe, const Share& share, std::size_t slice, std::int32_t row,
                       std::int32_t rows, DiagonalFacts& facts) const;
  void take_diagonals(const std::vector<DiagonalFacts>& of_blocks);
  DiagonalFacts rewrite(const CsrView<T>& matrix, Pe& pe, Share& share) const;
  void reserve_vectors(const SolveSpec& spec);
  void load(std::span<const T> b, std::span<const T> x0, double scale);
  bool store(std::span<T> out, double scale) const;
  std::vector<SolveArgs<Matrix>> arguments(const SolveSpec& spec, const SolveParams& params,
                                           double scale, SolveResult& result);
  SolveResult run_all(const SolveSpec& spec, const SolveParams& params, double scale,
                      const Progress& progress);
  cpu_threads::LaunchConfig launch_config() const;
  ThreadsRun run(const SolveSpec& spec, const std::vector<SolveArgs<Matrix>>& args,
                 const Progress& progress);
  void reserve_columns(const SolveSpec& spec, std::size_t columns);
  template <int K>
  std::vector<SolveArgs<Matrix, K>> columns_arguments(const SolveSpec& spec, bool guess,
                                                      std::span<const double> scale);
  template <int K>
  void load_columns(const ColumnViews<T>& from, std::span<const double> scale);
  template <int K>
  bool store_column(int k, std::span<T> out, double scale) const;
  template <int K>
  std::vector<SolveResult> solve_together(const ColumnViews<T>& vectors, const SolveSpec& spec,
                                          const Progress& progress);

  LapTimer timer_;              // of the set-up
  std::mutex busy_;             // held while a solve runs
  bool usable_ = true;          // false: an update has ended in the middle
  std::int32_t rows_ = 0;       // of its vectors
  std::int64_t first_row_ = 0;  // of a slab, in the matrix
  std::shared_ptr<Team> team_;  // none: all PEs are in this process
  OwnPes own_;
  NodeTable nodes_;
  std::optional<Gathering> gathering_;  // with a team, where vectors are those of all rows
  int blocks_ = 1;
  bool packets_ = false;
  bool pairs_ = false;          // SystemSpec::pairs
  bool single_values_ = false;  // as SystemSpec says
  FactorSpec factor_spec_;
  std::vector<Pe> pes_;         // of this process
  std::vector<Remote> remote_;  // of these, where there are several nodes
  PlanReport report_;
  DiagonalFacts diagonal_;  // of all PEs
  PrivateIndex index_ = private_index();

  Extent extent_;
  Heap<T> heap_;
  std::unique_ptr<CpuHeaps> heaps_;
  ColumnsMemory columns_;
  Array<double> history_;  // that kernels write: kept, as fresh pages cost more than small solves
  std::unique_ptr<CpuMultigrid<T>> multigrid_;  // none: it is not asked for
  multigrid::Options multigrid_options_;        // of it
  std::vector<std::int32_t> row_owner_;         // with it: the PE of each row of the matrix
};

}  // namespace cpufree
