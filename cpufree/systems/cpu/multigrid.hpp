// Multigrid on the CPU engine: the memory of all levels of all PEs.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/systems/cpu/process_heaps.hpp"
#include "cpufree/systems/cpu/share.hpp"
#include "cpufree/systems/heap.hpp"
#include "cpufree/systems/multigrid_layout.hpp"

namespace cpufree {

template <class T>
class CpuMultigrid {
  using Matrix = typename CpuShare<T>::Matrix;
  using Single = typename Matrix::Single;

 public:
  // Lays a hierarchy out beside A, whose plan and shares of each PE are given, and empties it.
  // Level 0 has the patterns of these shares.
  CpuMultigrid(multigrid::Hierarchy hierarchy, const HaloPlan<T>& plan,
               const std::vector<std::span<const CpuShare<T>>>& of_a);

  // Most rows and ghosts of a PE, of each level.
  const std::vector<std::size_t>& rows_and_ghosts() const { return rows_and_ghosts_; }
  const std::vector<LevelReport>& reports() const { return reports_; }
  const std::string& why() const { return why_; }

  // Points the arguments of all PEs at the heaps. Once.
  void show(const Heap<T>& heap, const CpuHeaps& heaps);
  const CycleArgs<Matrix>* args(std::size_t pe) const { return &args_[pe]; }

 private:
  template <class U>
  using Array = cpu_threads::Array<U>;
  using Plans = std::vector<std::vector<BlockPlan>>;

  // One PE's part of a level; transfers are to the next level.
  struct Part {
    LocalSystem<float> local;  // without its entries
    std::vector<CpuShare<float>> shares, restriction, prolongation;
    std::vector<BlockShare<Single>> views;
    std::vector<TransferShare<Single>> restrict_views, prolongate_views;
    std::array<Array<float>, 3> vectors;  // r, x, s
  };
  struct Level {
    std::vector<Part> parts;  // of each PE
    double lambda = 1.0;
    bool solves = false;
  };

  void add_first_level(const multigrid::Hierarchy& hierarchy, const HaloPlan<T>& plan,
                       const std::vector<std::span<const CpuShare<T>>>& of_a);
  void add_level(HaloPlan<float> plan, Plans blocks);
  Level& make_level(std::vector<LocalSystem<float>> local, std::size_t blocks);
  void add_transfers(const multigrid::SparseMatrix& prolongator, std::size_t level);
  CycleLevel<Single> arguments(Level& level, Part& part, const LevelHeap& heap, std::byte* base);

  std::vector<Level> levels_;
  std::vector<std::size_t> rows_and_ghosts_;
  std::vector<LevelReport> reports_;
  std::string why_;
  std::vector<std::vector<T>> scale_;                   // of each PE
  std::vector<std::vector<CycleLevel<Single>>> of_pe_;  // [pe][level]
  std::vector<CycleArgs<Matrix>> args_;
};

}  // namespace cpufree
