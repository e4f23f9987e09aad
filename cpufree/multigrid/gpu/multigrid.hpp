// Multigrid on GPUs: the memory of all levels of the PEs of this process.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/multigrid/gpu/level_sharer.hpp"
#include "cpufree/multigrid/host/multigrid_layout.hpp"

namespace cpufree {

template <class T>
class GpuMultigrid {
 public:
  // Lays a hierarchy out beside A, level 0 of which has its plan and its blocks, and sends it to
  // the GPUs. Throws OutOfMemory.
  GpuMultigrid(const GpuPlace& place, multigrid::Hierarchy hierarchy, LevelPlan first, int threads);

  // One that the GPU of the one PE has made of A: its rows as they lie there, and their layout.
  GpuMultigrid(const GpuPlace& place, HierarchyOnGpu hierarchy, const GpuRows<T>& rows,
               const PeLayout& of_a, int threads);

  // One that the first GPU has made of A, for several PEs: A's rows as they lie on their GPUs,
  // their plan and their layouts.
  GpuMultigrid(const GpuPlace& place, const HierarchyOnGpu& hierarchy, const GpuLayouts<T>& rows,
               const HaloPlan<T>& plan, const std::vector<PeLayout>& of_a, int threads);

  // Whether an update can compute the numbers again: a GPU has made the levels, and had room to
  // keep what they were made from.
  bool keeps_patterns() const { return made_ != nullptr; }
  // Numbers of a matrix with the same pattern: of A's rows as they were sent, and then as they lie
  // there. `show` is due.
  void remake(const GpuPlace& place, const GpuRows<T>& sent, const multigrid::Options& options,
              LapTimer& timer);
  void rewrite(const GpuRows<T>& rows, const PeLayout& of_a);

  const LevelsExtent& extent() const { return extent_; }
  const std::vector<LevelReport>& reports() const { return reports_; }
  const std::string& why() const { return why_; }

  // Tells the blocks of all PEs what they have in the heaps; again after `rewrite`.
  void show(const GpuPlace& place, const Heap<T>& heap, const GpuHeaps& heaps);
  // What a block's copy of its levels takes on chip.
  std::size_t fast_bytes() const { return fast_level_bytes<Single>(levels_.size()); }
  // On the GPU of PE k of this process.
  const CycleArgs<WarpSlices<T>>* args(std::size_t k) const { return pes_[k].args.data(); }

 private:
  template <class U>
  using Array = gpu::DeviceArray<U>;
  using Single = WarpSlices<float>;

  using Matrix = LevelMatrix;
  // One PE's part of a level.
  struct Part {
    std::int32_t rows = 0, interior = 0;
    std::array<Array<float>, 2> vectors;  // r, x
    Array<std::int64_t> send_ptr;
    Array<Destination> destinations;
    Array<std::int32_t> partners, first_rows;
    // If the next level is gathered.
    Array<std::int32_t> gathers, gather_partners;
    Array<float> gathered;
  };
  struct Level {
    Matrix matrix, restriction, prolongation;  // transfers are to the next level
    std::vector<Part> parts;
    double lambda = 1.0;
    bool solves = false;
  };
  struct Pe {
    Array<T> scale;
    Array<CycleLevel<Single>> levels;
    Array<CycleArgs<WarpSlices<T>>> args;
  };

  static PackedOnGpu packed(Matrix& matrix);
  Matrix send(const GpuPlace& place, const HaloPlan<float>& plan, const BlockPlans& blocks,
              LevelReport& report) const;
  void add_level(const GpuPlace& place, const LevelPlan& plan);
  void add_scale(const GpuPlace& place, const HaloPlan<float>& plan,
                 const std::vector<double>& of_rows);
  void pack_levels(LevelPacker& packer, const GpuRows<T>& rows, const PeLayout& of_a);
  void add_parts(const GpuPlace& place, Level& level, const HaloPlan<float>& plan);
  void add_gathered(const GpuPlace& place, Level& level, const std::vector<std::int64_t>& cuts);
  void count_bytes();
  void add_transfers(const GpuPlace& place, const TransferPlan& plan, std::size_t level);
  // Of each block of PE k.
  std::vector<CycleLevel<Single>> arguments(std::size_t level, std::size_t k, int device,
                                            const LevelHeap& heap, std::byte* base);
  void add_gathering(std::vector<CycleLevel<Single>>& blocks, std::size_t level, std::size_t k,
                     int device, const Heap<T>& heap, std::byte* base);

  int threads_;
  std::unique_ptr<HierarchyOnGpu> made_;  // none: not kept
  std::vector<LevelOrder> orders_;        // of its levels
  std::vector<Level> levels_;
  std::vector<Pe> pes_;
  LevelsExtent extent_;
  std::size_t gathered_ = 0;  // Hierarchy::gathered
  std::vector<LevelReport> reports_;
  std::string why_;
};

}  // namespace cpufree
