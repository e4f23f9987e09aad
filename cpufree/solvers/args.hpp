// What a solver kernel is given, and what it gives back. Plain structs of pointers and numbers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpufree/device/channel.hpp"
#include "cpufree/device/columns.hpp"
#include "cpufree/formats/factor_slices.hpp"
#include "cpufree/formats/slices/slice_ring.hpp"
#include "cpufree/problem/destination.hpp"
#include "cpufree/solvers/method.hpp"
#include "cpufree/trace/record.hpp"

namespace cpufree {

// One row of mine under its two numbers: `i` in the PE's numbering, which columns and ghosted
// vectors use, and `j` in my block's part of the private vectors.
struct Row {
  std::int32_t i = 0;
  std::int32_t j = 0;
};

// Most right-hand sides that are solved together: the columns of one solve. A row of a vector then
// holds a value for each of them, side by side: `V` below is a number, or Columns of them.
inline constexpr int kMostColumns = 8;

// Most sums of one all-reduce in a solve of K columns: a Gram matrix of all columns, and one more
// of each (block_cg.hpp), or what is rare (RareSums).
CPUFREE_FN constexpr int rare_sums(int columns) { return columns == 1 ? 5 : 3; }
CPUFREE_FN constexpr int most_sums(int columns) {
  const int gram = columns * (columns + 1) / 2 + columns, rare = rare_sums(columns) * columns;
  return gram > rare ? gram : rare;
}

// My block's part of a vector that no other block reads.
template <class V>
struct Private {
  V* data = nullptr;
  CPUFREE_FN V& operator[](Row row) const { return data[row.j]; }
};

// A vector of the PE whose ghosts follow its rows, or travel as packets. Its entries begin with row
// `first`: 0, or with halos of blocks my block's first row. `own`, if not null: a copy of my
// block's part in fast memory, of vectors of one column.
template <class V>
struct Ghosted {
  static constexpr bool may_own = kFastMemory && kColumnsOf<V> == 1;
  using Read = std::conditional_t<kColumnsOf<V> == 1, V, const V&>;
  V* data = nullptr;
  Packet* halo = nullptr;
  V* own = nullptr;
  std::int32_t first = 0;

  CPUFREE_KERNEL_FN Read operator[](Row row) const {
    if constexpr (may_own)
      if (own != nullptr) return own[row.j];
    return data[row.i - first];
  }
  // For all to see.
  CPUFREE_KERNEL_FN void set(Row row, const V& value) const {
    data[row.i - first] = value;
    if constexpr (may_own)
      if (own != nullptr) own[row.j] = value;
  }
  // For my block alone: others may see it, or not.
  CPUFREE_KERNEL_FN void keep(Row row, const V& value) const {
    if constexpr (may_own)
      if (own != nullptr) {
        own[row.j] = value;
        return;
      }
    data[row.i - first] = value;
  }
};

// The vectors of a solver: `P` those that are private to a block, `G` those that travel. With
// several columns there are those of cg with a pointwise preconditioner: x, r, s, b, p, scratch.
template <class P, class C, class D, class G>
struct VectorSet {
  P x = {};
  P r = {};
  P s = {};
  C b = {};
  D inverse_diagonal = {};  // Jacobi, Chebyshev
  P z = {};                 // pipecg, minres, bicgstab; not pointwise: preconditioned vector
  P w = {};                 // pipecg, minres, bicgstab
  P n = {};                 // pipecg, minres
  P u = {};                 // minres; not pointwise, prcg and pipecg: preconditioned residual
  P q = {};                 // minres; not pointwise, pipecg
  P out = {};               // not pointwise: its result
  P rest = {};              // Chebyshev: its own residual
  G p = {};
  G scratch[2] = {};  // used in turn
};

// The vectors of one PE as memory. Private ones hold block after block (BlockShare::first_private);
// p and scratch are symmetric, rows + ghosts entries. Null where a method needs none.
template <class T, int K = 1>
using Vectors = VectorSet<ValuesOf<T, K>*, const ValuesOf<T, K>*, const T*, ValuesOf<T, K>*>;

// The same as one block sees them.
template <class T, int K = 1>
using BlockVectors = VectorSet<Private<ValuesOf<T, K>>, Private<const ValuesOf<T, K>>,
                               Private<const T>, Ghosted<ValuesOf<T, K>>>;

// One block's share of the matrix, and its partners. Private number of a row i: i - boundary_shift
// if it is a boundary row, else i - interior_shift.
template <class M>
struct BlockShare {
  M matrix;
  typename M::Rows interior;
  typename M::Rows boundary;
  ArrivalBoard board;
  std::int64_t first_private = 0;  // where my part of the private vectors begins
  std::int32_t interior_shift = 0;
  std::int32_t boundary_shift = 0;
  // Boundary rows before `remote_end` go to other PEs: number of a row in `send_ptr` = its own -
  // send_shift. With halos of blocks all of them go to my own PE too, as packets from here on.
  std::int32_t remote_end = 0;
  std::int32_t send_shift = 0;
  std::int32_t first_packet = 0;
  // With halos of blocks: the packets that my rows read, and where my part of an exchanged vector
  // begins: my rows, and behind them what the packets bring.
  const std::int32_t* reads = nullptr;
  std::int32_t read_count = 0;
  std::int64_t first_operand = 0;

  CPUFREE_FN std::int32_t rows() const {
    return interior.end - interior.begin + boundary.end - boundary.begin;
  }
};

// One block's share of the factors of a preconditioner (factored.hpp).
template <class T>
struct FactorShare {
  FactorSlices factor[2];
  std::int32_t count = 0;
  const T* scale = nullptr;  // S of my rows
  T* operand[2] = {};        // of the PE, in the order of the private vectors
  ArrivalBoard board;        // of blocks of my PE alone
};

// What a block keeps in its fast memory (a GPU's shared memory) from the start of a solve to its
// end: the first `vectors` of the private vectors in order of use (resident.hpp), `stride` values
// apart, where it has no more rows than that; behind them, perhaps, a copy of its part of p, and
// its share of the matrix. With halos of blocks the exchanged vectors themselves are kept,
// `operand` values each: p, and one place that the two scratch vectors share; and the list of
// `reads` packets. A matrix that is not kept may come through rings, which are last.
struct Residency {
  std::int32_t vectors = 0;
  std::int32_t stride = 0;
  std::int32_t operand = 0;
  std::int32_t reads = 0;
  bool direction = false;
  bool scratch = false;
  bool matrix = false;
  std::int32_t values = 0;  // of a dictionary that is kept although the matrix is not
  RingShape ring;
  bool prefetch = false;  // vectors are read from far, and are long
  // Where a copy of the block's levels of multigrid begins, if there is room for one; -1: nowhere.
  std::int32_t levels = -1;
};

// What a multigrid cycle is given (multigrid/cycle_args.hpp).
template <class M>
struct CycleArgs;

// One PE's arguments, for K columns.
template <class M, int K = 1>
struct SolveArgs {
  using T = typename M::Value;
  SolveParams params;
  double atol[K] = {};  // of each column: right-hand sides are scaled each by itself
  Vectors<T, K> vectors;
  Residency residency;
  const BlockShare<M>* shares = nullptr;    // one per block
  const FactorShare<T>* factors = nullptr;  // one per block, of a preconditioner that has factors
  const CycleArgs<M>* cycle = nullptr;      // of multigrid as preconditioner
  std::int32_t rows = 0;                    // number of rows: ghosts begin there
  bool block_halos = false;                 // rows of other blocks are ghosts, too (block_halo.hpp)
  const std::int64_t* send_ptr = nullptr;   // rows that other PEs read + 1
  const Destination* destinations = nullptr;
  // Small halos travel as packets: ghosts of p, scratch[0], scratch[1], symmetric, K packets in a
  // row for each ghost; the destinations then hold numbers of ghosts, from 0. Null: halos travel as
  // stores into the vectors. With several columns only halos of blocks are packets.
  Packet* halo[3] = {};
  const std::int32_t* source = nullptr;      // slot of the block that sends a packet: for diagnosis
  const std::int32_t* global_row = nullptr;  // rows, in the order of the private vectors
  const T* inverse_diagonal = nullptr;       // the same, for what is verified, whatever M needs
  Packet* slots = nullptr;                   // symmetric
  // Of several columns: flags in place of those that the shares name, for vectors of their own;
  // and where the ghosts of each PE begin in its vectors, if destinations are counted from there.
  Flag* flags = nullptr;
  const std::int32_t* first_ghost = nullptr;
  Outcome* outcome = nullptr;         // of each column, written by PE 0
  double* history = nullptr;          // PE 0: of each column history_capacity squares of norms
  Split* splits = nullptr;            // one per block; of a study of the times
  const TraceRing* traces = nullptr;  // one per block; of a solve that is traced
  // Of several columns with factors: in place of those that the factors' shares name.
  ValuesOf<T, K>* operand[2] = {};
  Flag* factor_flags = nullptr;
};

// What a kernel reports is of the column whose residual is largest relative to its right-hand side:
// its number, and its iteration.
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
