// Levels of multigrid that the first GPU has made, shared among the PEs of one process: rows go
// from GPU to GPU, and each lays out its own, as multigrid_layout.cpp does on the host.
#pragma once

#include <memory>
#include <vector>

#include "cpufree/multigrid/gpu/level_packer.hpp"
#include "cpufree/multigrid/host/multigrid_layout.hpp"

namespace cpufree {

// A level as the PEs have it: consecutive rows of the hierarchy's, in numbers of their own; or,
// where every PE has all of them, all rows as they are.
struct SharedLevel {
  HaloPlan<float> plan;            // without rows, names of them and entries
  std::vector<std::int64_t> cuts;  // where each PE's rows begin, and the end
  bool whole = false;
  // On each PE's GPU; empty where the level is whole: the hierarchy's row at each place, and the
  // number of each of the hierarchy's rows, -1: none.
  std::vector<gpu::DeviceArray<std::int32_t>> row, number;

  std::size_t rows_and_ghosts() const;
};

class LevelSharer {
 public:
  // `blocks`, `threads`: of a PE, and of a block.
  LevelSharer(const GpuPlace& place, const HierarchyOnGpu& h, int blocks, int threads);

  // Level 0, of the rows of A as they lie on their GPUs, and what scales their private vectors.
  template <class T>
  SharedLevel share_first(const GpuLayouts<T>& rows, const HaloPlan<T>& plan,
                          const std::vector<PeLayout>& of_a, LevelMatrix& to,
                          std::vector<gpu::DeviceArray<T>>& scale);
  // Another one, or its inverse, if there is one.
  SharedLevel share(std::size_t level, LevelMatrix& to);
  // From a level to the next one and back; in the blocks of these.
  void share_transfers(std::size_t level, const SharedLevel& fine, const LevelMatrix& of_fine,
                       const SharedLevel& coarse, const LevelMatrix& of_coarse,
                       LevelMatrix& prolongation, LevelMatrix& restriction);

 private:
  using Plans = std::vector<std::vector<BlockPlan>>;
  using Int32s = gpu::DeviceArray<std::int32_t>;
  // Rows of a matrix on the first GPU, on those of the PEs: all of them, or those between cuts.
  template <class V>
  std::vector<GpuRows<V>> send(const MatrixOnGpu& matrix, const V* values, const SharedLevel& by,
                               bool all) const;
  // Lays rows out, in these blocks or, without any, in blocks of their own, which await everybody.
  void lay_out(std::vector<GpuRows<float>> rows, const HaloPlan<float>& halos, Plans plans,
               LevelMatrix& to, SharedLevel* numbered = nullptr);
  void number(SharedLevel& level, std::int64_t rows);
  // Rows of a matrix between levels, in the numbers of both.
  void lay_out_transfer(const MatrixOnGpu& matrix, const SharedLevel& rows,
                        const SharedLevel& columns, const HaloPlan<float>& halos, Plans plans,
                        LevelMatrix& to);
  int pes() const { return static_cast<int>(place_.devices.size()); }
  int first_device() const { return place_.devices.front(); }

  const GpuPlace& place_;
  const HierarchyOnGpu& h_;
  int blocks_, threads_;
  std::vector<std::unique_ptr<Scratch>> kept_;         // of each PE
  std::vector<std::unique_ptr<LevelPacker>> packers_;  // likewise
};

}  // namespace cpufree
