// What the kernel for several right-hand sides is given (columns_kernel.hpp).
#pragma once

#include <cstdint>

#include "cpufree/device/columns.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

inline constexpr int kMostColumns = 8;

// A vector of all columns whose ghosts follow its rows, or whose rows of other blocks come as
// packets. Its entries begin with row `first`.
template <class T, int K>
struct GhostedColumns {
  Columns<T, K>* data = nullptr;
  Packet* halo = nullptr;
  std::int32_t first = 0;
  CPUFREE_FN Columns<T, K>& operator[](Row row) const { return data[row.i - first]; }
};

// One PE's arguments, for K columns. What is not said here is as in SolveArgs.
template <class M, int K>
struct ColumnsArgs {
  using T = typename M::Value;
  using Values = Columns<T, K>;
  SolveParams params[K];  // columns are scaled each by itself
  // Private, block after block.
  Values* x = nullptr;
  Values* r = nullptr;
  Values* s = nullptr;
  const Values* b = nullptr;
  const T* inverse_diagonal = nullptr;  // Jacobi
  // Symmetric. `flags` in place of those that the shares name.
  Values* p = nullptr;
  Values* scratch[2] = {};
  Flag* flags = nullptr;
  Packet* slots = nullptr;
  // With halos of blocks: packets for p, scratch[0], scratch[1], K in a row for each that the plan
  // numbers. Other halos are stores and flags.
  Packet* halo[3] = {};
  bool block_halos = false;
  const BlockShare<M>* shares = nullptr;
  std::int32_t rows = 0;
  const std::int64_t* send_ptr = nullptr;
  const Destination* destinations = nullptr;
  // Where the ghosts of each PE begin in its vectors, as destinations are counted from there; null:
  // destinations are places in vectors.
  const std::int32_t* first_ghost = nullptr;
  const std::int32_t* source = nullptr;
  Outcome* outcome = nullptr;  // K of them, written by PE 0
  double* history = nullptr;   // PE 0: of each column params.history_capacity squares of norms
};

// The iteration that a kernel reports, and the column that it belongs to: the one whose residual is
// largest relative to its right-hand side.
inline constexpr int kColumnShift = 48;
CPUFREE_FN std::int64_t report_of_column(int column, std::int64_t iteration) {
  return (static_cast<std::int64_t>(column) << kColumnShift) | iteration;
}
CPUFREE_FN int reported_column(std::int64_t report) {
  return static_cast<int>(report >> kColumnShift);
}
CPUFREE_FN std::int64_t reported_iteration(std::int64_t report) {
  return report & ((std::int64_t{1} << kColumnShift) - 1);
}

}  // namespace cpufree
