// Multigrid on the CPU engine: the memory of all levels of all PEs.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/launch/cpu/process_heaps.hpp"
#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/multigrid/host/multigrid_layout.hpp"
#include "cpufree/solvers/cpu/share.hpp"
#include "cpufree/solvers/host/heap.hpp"

namespace cpufree {

template <class T>
class CpuMultigrid {
  using Matrix = typename CpuShare<T>::Matrix;
  using Single = typename Matrix::Single;

 public:
  using SharesOfA = std::vector<std::span<const CpuShare<T>>>;  // of each PE
  // Lays a hierarchy out beside A, level 0 of which has its plan, its blocks and the patterns of
  // its shares, and empties it.
  CpuMultigrid(multigrid::Hierarchy hierarchy, const OwnPes& own, LevelPlan first,
               const SharesOfA& of_a);

  const LevelsExtent& extent() const { return extent_; }
  const std::vector<LevelReport>& reports() const { return reports_; }
  const std::string& why() const { return why_; }

  // Decisions of the set-up, for another one; they are gone then.
  std::vector<multigrid::Coarsening> take_coarsenings() { return std::move(coarsenings_); }
  // Takes the numbers of a hierarchy that was made with these. False: it has other patterns.
  bool rewrite(multigrid::Hierarchy hierarchy, const SharesOfA& of_a);

  // Points the arguments of all PEs at the heaps; after `rewrite` again.
  void show(const Heap<T>& heap, const CpuHeaps& heaps, const OwnPes& own);
  const CycleArgs<Matrix>* args(std::size_t pe) const { return &args_[pe]; }

 private:
  template <class U>
  using Array = cpu_threads::Array<U>;

  // One PE's part of a level; transfers are to the next level.
  struct Part {
    LocalSystem<float> local;  // without its entries
    std::vector<CpuShare<float>> shares, restriction, prolongation;
    std::array<Array<float>, 2> vectors;  // r, x
    // If the next level is gathered: the rows there that the PE restricts to.
    std::vector<std::int32_t> gathers;
    Array<float> gathered;  // of these
  };
  struct Level {
    std::vector<Part> parts;  // of each PE
    double lambda = 1.0;
    bool solves = false;
  };

  void add_level(LevelPlan& plan, const SharesOfA& of_a = {});
  bool same_patterns(const multigrid::Hierarchy& hierarchy) const;
  void rewrite_level(const multigrid::Hierarchy& hierarchy, std::size_t level);
  void rewrite_transfers(const multigrid::SparseMatrix& up, std::size_t level);
  void finish(multigrid::Hierarchy hierarchy);
  void fill_first_level(const std::vector<double>& scale, const SharesOfA& of_a);
  void add_transfers(TransferPlan plan, std::size_t level, bool gathers);
  CycleLevel<Single> arguments(Level& level, Part& part, std::size_t block, const LevelHeap& heap,
                               std::byte* base);
  static CycleGather gathering(Part& part, std::size_t block, const Heap<T>& heap, std::byte* base);

  std::vector<Level> levels_;
  LevelsExtent extent_;
  std::size_t gathered_ = 0;  // Hierarchy::gathered
  std::vector<LevelReport> reports_;
  std::string why_;
  std::vector<multigrid::Coarsening> coarsenings_;
  std::vector<std::vector<T>> scale_;                   // of each PE
  std::vector<std::vector<CycleLevel<Single>>> of_pe_;  // [pe], block after block
  std::vector<CycleArgs<Matrix>> args_;
};

}  // namespace cpufree
