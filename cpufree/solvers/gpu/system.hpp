// The GPU engine's System: how it is set up, updated and freed, and who may use it now. What it is
// made of: where it is (devices.hpp), how the matrix lies there (layout/system_layout.hpp), what is
// in the memory of each GPU (pe_memory.hpp), and solves (solve.hpp).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cpufree/solvers/gpu/solve.hpp"
#include "cpufree/solvers/host/gather.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

template <class T>
class GpuSystem final : public System<T> {
 public:
  GpuSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
            std::span<const std::int32_t> order, const SystemSpec& spec);
  // Laid out by the GPU, wherever its rows lie. For one PE.
  GpuSystem(const GivenCsr<T>& matrix, const SystemSpec& spec);
  GpuSystem(SlabPlan<T> slab, const SystemSpec& spec);
  ~GpuSystem() override;

  using System<T>::solve;
  std::int32_t rows() const override { return rows_; }
  const PlanReport& plan() const override { return layout_.report; }
  SolveResult solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                    const SolveSpec& spec, const Progress& progress) override;
  std::vector<SolveResult> solve_columns(const ColumnViews<T>& vectors, const SolveSpec& spec,
                                         const Progress& progress) override;
  std::string refuses_columns() const override;
  bool update(const CsrView<T>& matrix) override;
  bool usable() const override { return usable_; }
  // What the GPUs of this process have in their memory.
  const PeMemories<T>& pes() const { return solve_->pes(); }

 private:
  void set_up_by_host(HaloPlan<T> plan, std::span<const std::int32_t> order,
                      std::int64_t first_row = 0,
                      std::optional<multigrid::Hierarchy> hierarchy = {});
  multigrid::Hierarchy make_hierarchy(const CsrView<T>& matrix, const HaloPlan<T>& plan);
  LevelPlan plan_first_level(const multigrid::Hierarchy& hierarchy) const;
  void lay_out_multigrid(multigrid::Hierarchy hierarchy);
  std::vector<double> free_bytes() const;  // of each device
  void require_room(std::optional<multigrid::Hierarchy>& hierarchy);
  // False: the host is to do it.
  bool set_up_by_gpus(const GivenCsr<T>& matrix, std::vector<std::int64_t> cuts);
  void report_multigrid();
  // Fills the memory of PEs, and returns the bound of the spectrum.
  using Fill = std::function<double(const std::vector<PeLayout>& layouts, PeMemories<T>& pes)>;
  void begin_solves(const Fill& fill);
  void refuse(const std::string& why);  // to be used: its report says so
  std::unique_lock<std::mutex> take_turn();
  bool update_by_host(const CsrView<T>& matrix);
  bool update_by_gpus(const CsrView<T>& matrix);
  bool rewrite(std::optional<std::vector<PeLayout>> layouts, const Fill& fill);
  // While rows are in the sequence of the matrix.
  void factor_on_gpus(const std::vector<GpuRows<T>>& rows);

  LapTimer timer_;  // of the set-up, or of the last update
  GpuPlace place_;
  std::int32_t rows_;                   // of its vectors
  std::optional<Gathering> gathering_;  // with a team, where vectors are those of all rows
  std::mutex busy_;                     // held while a solve runs
  bool usable_ = true;                  // false: refused, or an update has ended in the middle
  // Values are in host memory while they are on their way, and no longer. Columns stay, where the
  // host has laid them out: four bytes an entry.
  SystemLayout<T> layout_;
  std::vector<std::int64_t> cuts_;  // where PEs' rows begin; empty: the host has laid them out
  std::uint64_t pattern_ = 0;       // of the matrix, if GPUs have
  std::unique_ptr<GpuMultigrid<T>> multigrid_;  // until there is `solve_`
  std::vector<FactorsByGpu> factors_;           // on their way to `solve_`, if GPUs make them
  std::unique_ptr<GpuSolve<T>> solve_;
};

}  // namespace cpufree
