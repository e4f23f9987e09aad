// The steps by which a GPU makes a level of multigrid from the one above (multigrid/setup).
#pragma once

#include <vector>

#include "cpufree/multigrid/gpu/scratch.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/layout/rows.hpp"

namespace cpufree {

inline multigrid::setup::Values values_of(const double* val) { return {val, nullptr}; }
inline multigrid::setup::Values values_of(const float* val) { return {nullptr, val}; }

// A matrix in the memory of a GPU; arrays are of a Scratch, which has to outlive it.
struct MatrixOnGpu {
  std::int64_t rows = 0, nonzeros = 0;
  std::int32_t columns = 0;
  gpu::DeviceArray<std::int64_t> ptr;
  gpu::DeviceArray<std::int32_t> col;
  gpu::DeviceArray<double> val;

  multigrid::setup::Rows view() const { return {rows, ptr.data(), col.data(), val.data()}; }
};

// Lanes that are to share a row of a matrix with a given number of entries: those that a warp has
// eight rows for, or four.
inline int lanes_of_rows(std::int64_t rows, std::int64_t nonzeros) {
  constexpr std::int64_t kShort = 12;
  return nonzeros <= kShort * rows ? multigrid::setup::kFewLanes : static_cast<int>(kTeamItems);
}

// A product, and what its numbers are computed again from: its pattern, and lists of the rows that
// have too many columns for tables on chip: for teams of a given number of lanes, and for those of
// a warp.
struct ProductOnGpu : MatrixOnGpu {
  int lanes = 32;
  gpu::DeviceArray<std::int32_t> wide_rows, long_rows;
  std::int32_t places = 0;  // of tables for long rows
};

// Strong entries, in scratch memory, but for the bits.
struct StrongOnGpu {
  multigrid::setup::Bits bits;
  multigrid::setup::Graph graph;  // of those whose row and column are of one PE
  const std::int32_t* isolated = nullptr;
  bool some_weak = false;
};

struct AggregatesOnGpu {
  const std::int32_t* of_row = nullptr;  // -1: none
  std::int32_t count = 0;
  std::int64_t covered = 0;              // rows that have one
  gpu::DeviceArray<std::int32_t> owner;  // of each, if rows have owners
};

// A row has more columns than kernels have room for.
struct RowTooLong {};

// Each step is queued; what it returns by value has come to the host.
class SetupSteps {
 public:
  // `least`: bytes that steps are sure to need.
  explicit SetupSteps(int device, double least = 0.0) : stream_(device), scratch_(device, least) {}

  const gpu::Stream& stream() const { return stream_; }
  Scratch& scratch() { return scratch_; }
  template <class K>
  void launch(const K& kernel, std::int64_t items) const {
    launch_layout(kernel, items, stream_);
  }
  template <class U>
  U* zeros(std::int64_t count) {
    U* const made = scratch_.take<U>(count);
    gpu::clear(made, at(count) * sizeof(U), stream_);
    return made;
  }
  template <class U>
  U one(const U* number) const {
    return fetch(stream_, number, 1)[0];
  }

  // Sums of the numbers before each, and of all.
  void scan(const std::int32_t* numbers, std::int64_t count, std::int64_t* to);

  // Bits, aggregates and matrices below are made in `kept`.
  StrongOnGpu find_strong(const MatrixOnGpu& a, const std::int32_t* owner, const double* threshold,
                          Scratch& kept);
  AggregatesOnGpu aggregate(const MatrixOnGpu& a, const StrongOnGpu& strong,
                            const std::int32_t* owner, const std::int32_t* order, Scratch& kept);
  // Of A; or of the filtered matrix, `root`: the inverse roots of its diagonal.
  double largest_eigenvalue(const MatrixOnGpu& a, multigrid::setup::Bits strong = {},
                            const double* root = nullptr);
  // Finds the pattern of a product whose second factor has rows for a given number of lanes, but
  // for its columns. False: it takes more than `most` multiplications, or has more nonzeros than
  // there is room for. Throws RowTooLong.
  bool plan(const multigrid::setup::Factors& factors, int lanes, std::int32_t columns, double most,
            double room, Scratch& kept, ProductOnGpu& product);
  // Computes it; columns and values are made in `memory`, where there are none.
  void multiply(const multigrid::setup::Factors& factors, Scratch& memory, ProductOnGpu& product);
  // The inverse of a small matrix; if it maps `vector` to 0, as of dense_inverse.
  void invert(const MatrixOnGpu& a, const double* vector, Scratch& kept, MatrixOnGpu& inverse);
  // Of a matrix that has the pattern of one that has been transposed, values alone.
  void transpose(const MatrixOnGpu& a, Scratch& kept, MatrixOnGpu& transposed);

 private:
  // An independent set of the rows that have no root: their keys are kIn or more.
  void find_set(const StrongOnGpu& strong, bool first, std::int32_t* root_of, multigrid::Key* own,
                std::int32_t* candidate);
  std::int32_t places_of_far_tables(const std::int32_t* rows, std::int64_t count,
                                    const std::int32_t* bound, std::int64_t all);
  // Rows that a kernel has listed, kept.
  gpu::DeviceArray<std::int32_t> listed(const multigrid::setup::MultiplyRows& kernel,
                                        Scratch& kept);
  double weight_of_null_vector(const MatrixOnGpu& a, const double* vector);
  // For a number of rows; in scratch memory.
  multigrid::setup::FarTables far_tables(std::int32_t places, std::int64_t rows);

  gpu::Stream stream_;
  Scratch scratch_;
};

}  // namespace cpufree
