// Solves with a matrix that lies on its GPUs: one persistent kernel on each, launched together.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cpufree/launch/gpu/run.hpp"
#include "cpufree/launch/gpu/trace.hpp"
#include "cpufree/multigrid/gpu/multigrid.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"
#include "cpufree/solvers/gpu/pe_memory.hpp"
#include "cpufree/solvers/gpu/transfer.hpp"
#include "cpufree/solvers/host/columns.hpp"

namespace cpufree {

// The kernels that a solve chooses from.
template <class T>
KernelsWanted kernels_wanted(const GpuPlace& place, const LayoutFacts& facts,
                             const SolveSpec& spec);

// All that is on the GPUs of a System, and goes with it. The caller holds the devices
// (DeviceLocks), to make and to free it, too.
template <class T>
class GpuSolve {
 public:
  // `pes` has the matrix; `bound`: of the spectrum.
  GpuSolve(const GpuPlace& place, const LayoutFacts& facts, PeMemories<T> pes, double bound);

  // Before anything else, where multigrid is asked for.
  void take(std::unique_ptr<GpuMultigrid<T>> multigrid) { multigrid_ = std::move(multigrid); }
  GpuMultigrid<T>* multigrid() const { return multigrid_.get(); }
  // Chooses and loads the kernel of the solve that is expected first, or of multigrid; says in the
  // report what it keeps on chip.
  void choose_first(PlanReport& report);
  // Makes the symmetric heaps, and all that vectors of N entries need.
  void make_heaps(std::size_t entries);
  // Makes what blocks are told of the layout and of factors, once there are heaps.
  void link(const SystemLayout<T>& layout);
  void show_multigrid() {
    if (multigrid_) multigrid_->show(place_, heap_, *heaps_);
  }
  void factor(SystemLayout<T>& layout, std::vector<FactorsByGpu> by_gpus) {
    make_factors(place_, layout, heap_, *heaps_, std::move(by_gpus), pes_);
  }
  PeMemories<T>& pes() { return pes_; }
  void set_bound(double bound) { lambda_bound_ = bound; }

  // The vectors fit. Adds laps to the timer, up to the download.
  SolveResult solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                    const SolveSpec& spec, const Progress& progress, LapTimer& timer);
  std::vector<SolveResult> solve_columns(const ColumnViews<T>& vectors, const SolveSpec& spec,
                                         const Progress& progress);

 private:
  using Matrix = WarpSlices<T>;
  template <class U>
  using Array = gpu::DeviceArray<U>;

  // A kernel and what it keeps on chip.
  struct Choice {
    GpuKernel kernel;
    Residency residency;
  };
  // Memory for N right-hand sides together, once they have been asked for.
  struct ColumnsMemory {
    std::size_t columns = 0;
    Heap<T> heap;
    std::unique_ptr<GpuHeaps> heaps;
    std::vector<std::array<Array<T>, kColumnVectors>> vectors;  // of each PE (ColumnVector)
    std::vector<Array<std::int32_t>> first_ghost;               // of all PEs, on each
    Array<Outcome> outcomes;                                    // of PE 0, as the histories are
    Array<double> history;
  };

  const Choice& choice_for(const SolveSpec& spec);
  void reserve(const SolveSpec& spec, const SolveParams& params);
  double load(VectorView<const T> b, VectorView<const T> x0, bool& has_guess);
  void set_arguments(const SolveSpec& spec, const SolveParams& params, double scale,
                     const Residency& residency);
  std::vector<gpu_p2p::Shared> shared() const;
  void fetch(const SolveSpec& spec, SolveResult& result) const;
  std::vector<PrivateVector<T>> private_vector(std::size_t index) const;
  std::byte* heap_of(std::size_t k) const {
    return heaps_->base(place_.own.first + static_cast<int>(k));
  }

  void reserve_columns(const SolveSpec& spec, std::size_t columns, std::size_t histories);
  void allocate_columns(std::size_t columns);
  std::vector<double> load_columns(const ColumnViews<T>& from);
  template <int K>
  std::vector<SolveArgs<Matrix, K>> columns_arguments(const SolveSpec& spec, bool guess,
                                                      std::span<const double> scale);
  template <int K>
  std::vector<SolveResult> solve_together(const ColumnViews<T>& vectors, const SolveSpec& spec,
                                          const Progress& progress);
  bool store_column(std::size_t k, std::size_t columns, VectorView<T> out, double scale);

  GpuPlace place_;
  LayoutFacts facts_;
  double lambda_bound_;
  PrivateIndex index_ = private_index();
  PeMemories<T> pes_;                           // of this process
  std::unique_ptr<GpuMultigrid<T>> multigrid_;  // none: it is not asked for
  Heap<T> heap_;
  std::unique_ptr<GpuHeaps> heaps_;
  GpuRunner runner_;
  std::map<std::tuple<Method, Preconditioner, Study>, Choice> choices_;  // once they are needed
  std::vector<RemoteSolveArgs<Matrix>> args_;
  std::optional<GpuTrace> trace_;  // of a solve that is traced
  Array<Outcome> outcome_;         // of PE 0, as the history is
  Array<double> history_;
  std::unique_ptr<GpuTransfer<T>> transfer_;
  ColumnsMemory columns_;
};

}  // namespace cpufree
