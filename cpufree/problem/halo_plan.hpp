// From a matrix and a partition to what each PE holds, sends and receives.
//
// A PE numbers its rows locally: interior rows first (all columns its own), then boundary rows
// (some column belongs to another PE), each in the order given. Columns below `rows()` are local
// rows; those above are ghosts, grouped by owner, and within an owner by the owner's local row. As
// the pattern is symmetric, the rows that read ghosts are exactly the rows that others need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/pages.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/destination.hpp"

namespace cpufree {

// A run of ghosts received from one neighbour, or of values sent to it.
struct Neighbour {
  std::int32_t pe = 0;
  std::int32_t received = 0;     // ghosts that it owns
  std::int32_t first_ghost = 0;  // where they begin among my ghosts
  std::int32_t sent = 0;         // rows of mine that it needs
};

// One PE's share of the matrix.
template <class T>
struct LocalSystem {
  std::int32_t interior = 0;             // number of interior rows
  std::int32_t ghosts = 0;               // number of ghost columns
  std::vector<std::int32_t> global_row;  // rows(): original number of each local row
  std::vector<std::int64_t> row_ptr;     // rows() + 1
  PageVector<std::int32_t> col;          // local numbering; sorted within a row at first
  PageVector<T> val;
  std::int32_t rows_elsewhere = -1;  // not -1: how many, numbers and entries of which are not here
  // The caller's arrays in place of col and val, which are then empty; they live as long as needed.
  const std::int32_t* given_col = nullptr;
  const T* given_val = nullptr;
  std::vector<Neighbour> neighbours;      // by increasing PE
  std::vector<std::int32_t> ghost_owner;  // ghosts: owning PE
  std::vector<std::int32_t> ghost_row;    // ghosts: local row on the owning PE
  std::vector<std::int32_t> ghost_name;   // ghosts: original number; empty where it is unknown
  std::vector<std::int64_t> send_ptr;     // boundary rows + 1
  std::vector<Destination> destinations;  // by boundary row, then PE

  std::int32_t rows() const {
    return rows_elsewhere >= 0 ? rows_elsewhere : static_cast<std::int32_t>(global_row.size());
  }
  const std::int32_t* columns() const { return given_col == nullptr ? col.data() : given_col; }
  const T* values() const { return given_val == nullptr ? val.data() : given_val; }
  // Reads of ghosts in a product.
  std::int64_t ghost_reads() const {
    const auto* const first = columns() + row_ptr[static_cast<std::size_t>(interior)];
    return std::count_if(first, columns() + row_ptr.back(),
                         [&](std::int32_t column) { return column >= rows(); });
  }
  std::int32_t boundary() const { return rows() - interior; }
  // The original number of a column.
  std::int32_t name_of(std::int32_t column) const {
    return column < rows() ? global_row[static_cast<std::size_t>(column)]
                           : ghost_name[static_cast<std::size_t>(column - rows())];
  }
};

template <class T>
struct HaloPlan {
  std::vector<LocalSystem<T>> local;  // one per PE, or of the PEs of this process
};

// Whether a plan may have the caller's arrays as its rows, where these are all of the matrix in its
// order, until they are laid out. It saves a copy; rows of such a plan cannot be renumbered.
enum class RowArrays { own, given };

// Builds the plan. `part[i]` in [0, pes) owns row i; `order`, a permutation of the rows, or empty
// for the natural one, gives the sequence of rows inside each PE. Throws InvalidInput where these
// or the matrix do not fit together (a pattern that is not symmetric included).
template <class T>
HaloPlan<T> make_halo_plan(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                           std::span<const std::int32_t> order, int pes,
                           RowArrays rows = RowArrays::own);

// Writes the values of another matrix with the pattern of the first one into a plan of it, whatever
// order its rows have been given since. Throws InvalidInput where an entry is missing.
template <class T>
void take_values(const CsrView<T>& matrix, HaloPlan<T>& plan);

}  // namespace cpufree
