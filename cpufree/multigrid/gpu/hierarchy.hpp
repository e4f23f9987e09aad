// A hierarchy of multigrid in the memory of a GPU, which makes it by kernels: what
// multigrid/hierarchy.cpp does on the host, with the same patterns, values to rounding.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpufree/base/laps.hpp"
#include "cpufree/multigrid/gpu/setup_steps.hpp"
#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/solvers/gpu/layout/layouts.hpp"
#include "cpufree/solvers/gpu/plan/levels.hpp"

namespace cpufree {

struct LevelOnGpu {
  ProductOnGpu matrix;  // of level 0: pattern and columns are those of A
  ProductOnGpu prolongator;
  MatrixOnGpu restriction;               // these are to the next level; the last one has none
  gpu::DeviceArray<std::int32_t> owner;  // empty: there is one PE
  double lambda = 1.0;

  // What has been decided of the way to the next level, and what that is computed from.
  StrongOnGpu strong;                                   // bits alone
  AggregatesOnGpu aggregates;                           // without owners
  ProductOnGpu matrix_by_coarse;                        // matrix times prolongator: pattern alone
  gpu::DeviceArray<double> roots, constant, threshold;  // of rows
};

// Fields are those of multigrid::Hierarchy.
struct HierarchyOnGpu {
  std::vector<LevelOnGpu> levels;
  std::size_t gathered = 0;
  MatrixOnGpu inverse;  // dense; without rows, there is none
  std::string why;
  std::unique_ptr<Scratch> kept;  // has the arrays

  const gpu::DeviceArray<double>& scale() const { return levels.front().roots; }
  multigrid::Hierarchy download() const;
};
// Without the bytes.
std::vector<LevelReport> report_of(const HierarchyOnGpu& hierarchy);

// A matrix that lies on a GPU, columns increasing within rows, and may lie there longer than what
// is made of it.
template <class T>
struct GivenRows {
  std::int64_t rows = 0, nonzeros = 0;
  std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  const T* val = nullptr;
};

// As make_hierarchy, for the constant as near-null space. `owner`: empty where there is one PE;
// `order`: as there. `timer`: of the steps, if there is any. None: kernels have no room for a row.
// Throws OutOfMemory.
template <class T>
std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(int device, const GivenRows<T>& a,
                                                    const std::vector<std::int32_t>& owner,
                                                    const std::vector<std::int32_t>& order,
                                                    const multigrid::Options& options,
                                                    LapTimer* timer = nullptr);

// A matrix whose rows lie on the GPUs of several PEs, on the first one.
template <class T>
struct GatheredRows {
  int device = 0;
  gpu::DeviceArray<std::int64_t> ptr;
  gpu::DeviceArray<std::int32_t> col;
  gpu::DeviceArray<T> val;
};
template <class T>
GatheredRows<T> gather_rows(const std::vector<GpuRows<T>>& rows);
// The hierarchy of such a matrix, level 1 in the sequence of the PEs' rows, which are `numbered`.
template <class T>
std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(const GatheredRows<T>& a,
                                                    const GpuLayouts<T>& numbered, int pes,
                                                    const multigrid::Options& options,
                                                    LapTimer* timer = nullptr);

// Numbers for a hierarchy that was made of another matrix with this pattern: what is decided on the
// way down stays, and all patterns. Of one PE. Throws OutOfMemory.
template <class T>
void remake_hierarchy_on_gpu(int device, const GivenRows<T>& a, const multigrid::Options& options,
                             HierarchyOnGpu& hierarchy, LapTimer* timer = nullptr);

// That of a matrix in host memory, by the first GPU, in host memory. None: as above, or it has no
// room.
template <class T>
std::optional<multigrid::Hierarchy> hierarchy_by_gpu(const GpuPlace& place,
                                                     const CsrView<T>& matrix,
                                                     const HaloPlan<T>& plan,
                                                     const multigrid::Options& options);

}  // namespace cpufree
