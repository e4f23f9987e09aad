// Levels of multigrid that a GPU has made, as kernels of its one PE read them.
#pragma once

#include <vector>

#include "cpufree/multigrid/gpu/hierarchy.hpp"
#include "cpufree/solvers/gpu/pe_memory.hpp"
#include "cpufree/solvers/gpu/plan/levels.hpp"

namespace cpufree {

// A matrix between levels or of one, of each PE: what lay_out_shares and fill_slices make of it on
// the host.
struct LevelMatrix {
  std::vector<PeLayout> layouts;
  std::vector<SlicesOnGpu<float>> slices;
};
// Of one PE.
struct PackedOnGpu {
  PeLayout& layout;
  SlicesOnGpu<float>& slices;
};

// The rows of a level in the sequence in which its PE has them. Empty: their own.
struct LevelOrder {
  gpu::DeviceArray<std::int32_t> row;     // at each place
  gpu::DeviceArray<std::int32_t> number;  // of each row: its place
};

class LevelPacker {
 public:
  using Plans = std::vector<BlockPlan>;

  // Blocks of the PE, and threads of a block. Orders are made in `kept`.
  LevelPacker(int device, int blocks, int threads, Scratch& kept)
      : steps_(device), kept_(kept), device_(device), blocks_(blocks), threads_(threads) {}

  // That of A, on the GPU; and the one that multigrid_layout.cpp gives a coarser level.
  template <class T>
  LevelOrder order_of(const GpuRows<T>& a);
  LevelOrder order_of(const MatrixOnGpu& matrix, const MatrixOnGpu& restriction);

  // Where `to` is packed, values alone are written there; its pattern is the same.
  // Level 0, of the rows of A as they lie there, in the blocks of A.
  template <class T>
  void pack_first(const GpuRows<T>& a, const double* scale, const PeLayout& of_a, PackedOnGpu to);
  // What scales the private vectors of A's PE; 0 in gaps.
  template <class T>
  gpu::DeviceArray<T> private_scale(const GpuRows<T>& a, const PeLayout& of_a, const double* scale);
  // A matrix with rows and columns in these orders, in these blocks; without any, in blocks of its
  // own.
  void pack(const MatrixOnGpu& matrix, const LevelOrder& rows, const LevelOrder& columns,
            const Plans& plans, PackedOnGpu to);

  // Rows that are to be packed, those from `first` on of a matrix.
  struct Given {
    multigrid::setup::Rows rows;
    std::int64_t nonzeros = 0;
    std::int32_t columns = 0;
    const std::int32_t* list = nullptr;    // rows in sequence; null: as they are
    const std::int32_t* number = nullptr;  // of columns; null: the same
    std::int64_t first = 0;
  };
  // These in their places, and A scaled as level 0 has it, in scratch memory. `names`: the rows of
  // `scale` that rows and columns are, null for the same. Throws EngineError where a column has no
  // number.
  GpuRows<float> placed(const Given& given);
  template <class T>
  GpuRows<float> placed_first(const GpuRows<T>& a, const std::int32_t* names, const double* scale);
  SetupSteps& steps() { return steps_; }

 private:
  void pack(GpuRows<float> rows, const Plans& plans, PackedOnGpu to);

  SetupSteps steps_;
  Scratch& kept_;
  int device_, blocks_, threads_;
};

}  // namespace cpufree
