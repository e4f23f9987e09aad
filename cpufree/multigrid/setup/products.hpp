// Kernels that make a hierarchy on a GPU: products of sparse matrices, row by row (Gustavson 1978,
// "Two fast algorithms for sparse matrices"). A team makes a row, in a hashed table of its columns;
// what is added to a column is summed in the order of the first factor's entries.
#pragma once

#include "cpufree/multigrid/setup/strength.hpp"

namespace cpufree::multigrid::setup {

// Places of a table on chip, and columns that are too many for it.
inline constexpr std::int32_t kTablePlaces = 512;
CPUFREE_FN std::int32_t most_columns(std::int32_t places) { return places - places / 4; }
// Places of a table for so many columns, at most `most`.
CPUFREE_FN std::int32_t places_for(std::int64_t columns, std::int32_t most) {
  std::int32_t places = 32;
  while (places < most && places < 2 * columns) places *= 2;
  return places;
}

// The columns of a row and their sums, for one team. Lanes may add to different columns at once.
template <class P>
class RowTable {
 public:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};

  CPUFREE_KERNEL_FN RowTable(const P& port, std::uint32_t* used, std::uint32_t* columns,
                             double* sums, std::int32_t places)
      : port_(port), used_(used), columns_(columns), sums_(sums), places_(places) {
    for (std::int32_t s = port.team_lane(); s < places; s += P::team_lanes()) columns[s] = kFree;
    if (port.team_lane() == 0) *used = 0;
    port.sync_team();
  }
  // Nothing, once there are too many columns: a quarter of the places is for those of other lanes
  // that have not seen that yet.
  CPUFREE_KERNEL_FN void add(std::int32_t column, double value) const {
    if (overflows()) return;
    const auto mine = static_cast<std::uint32_t>(column);
    for (std::uint32_t s = mine * 2654435761U;; ++s) {
      const std::uint32_t place = s & static_cast<std::uint32_t>(places_ - 1);
      std::uint32_t there = port_.get(&columns_[place]);
      if (there == kFree) {
        there = port_.swap_if(&columns_[place], kFree, mine);
        if (there == kFree) {
          sums_[place] = value;
          port_.add(used_, std::uint32_t{1});
          return;
        }
      }
      if (there == mine) {
        sums_[place] += value;
        return;
      }
    }
  }
  CPUFREE_KERNEL_FN std::uint32_t size() const { return port_.get(used_); }
  CPUFREE_KERNEL_FN bool overflows() const {
    return size() > static_cast<std::uint32_t>(most_columns(places_));
  }
  // Writes the row, columns increasing.
  CPUFREE_KERNEL_FN void write(std::int32_t* col, double* val) const {
    for (std::int32_t s = port_.team_lane(); s < places_; s += P::team_lanes()) {
      const std::uint32_t mine = columns_[s];
      if (mine == kFree) continue;
      std::int32_t rank = 0;
      for (std::int32_t t = 0; t < places_; ++t) rank += columns_[t] < mine ? 1 : 0;
      col[rank] = static_cast<std::int32_t>(mine);
      val[rank] = sums_[s];
    }
    port_.sync_team();  // before the table is cleared
  }

 private:
  const P& port_;
  std::uint32_t* used_;
  std::uint32_t* columns_;
  double* sums_;
  std::int32_t places_;
};

// A B; or, where `aggregate` is not null, (I - omega D_F^-1 F) T with the tentative prolongator T
// and the strong entries F of A.
struct Factors {
  Rows a, b;
  const std::int32_t* aggregate = nullptr;  // of each row; -1: none
  const double* constant = nullptr;         // T's entry
  Bits strong;
  const double* diagonal = nullptr;
  double omega = 0.0;
};

// How many entries of B each row takes, no more than there are columns; and all rows together.
struct CountProducts {
  Factors of;
  std::int32_t columns = 0;
  std::int32_t* bound = nullptr;
  std::uint64_t* all = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    std::uint64_t sum = 0;
    each_item(port, of.a.count, [&](std::int64_t row) {
      std::int64_t mine = 0;
      for (std::int64_t k = of.a.ptr[row]; k < of.a.ptr[row + 1]; ++k) {
        const std::int32_t j = of.a.col[k];
        mine += of.aggregate != nullptr ? 1 : of.b.ptr[j + 1] - of.b.ptr[j];
      }
      bound[row] = mine < columns ? static_cast<std::int32_t>(mine) : columns;
      sum += static_cast<std::uint64_t>(mine);
    });
    if (sum != 0) port.add(all, sum);
  }
};

// Tables of teams in far memory, for rows that have too many columns for those on chip.
struct FarTables {
  std::int64_t teams = 0;  // 0: none
  std::int32_t places = 0;
  std::uint32_t* columns = nullptr;
  double* sums = nullptr;
};

// Counts the columns of each row, or writes the rows where `to` says.
struct MultiplyRows {
  Factors of;
  std::int64_t count = 0;
  const std::int32_t* list = nullptr;   // of rows; null: all
  const std::int32_t* bound = nullptr;  // of the columns of each row, where its length is unknown
  FarTables far;
  // Either the length of each row, and a list of those that need far tables:
  std::int32_t* length = nullptr;
  std::int32_t* long_rows = nullptr;
  std::uint32_t* long_count = nullptr;
  // or the rows. Those that are too long for a table on chip are left out, unless they are listed.
  Rows to;
  std::int32_t* to_col = nullptr;

  // What is to be added, an entry of A for each lane.
  struct Part {
    std::int64_t begin, end;  // of B's entries; or the column of T
    double factor;
  };
  static constexpr int kAhead = 4, kParts = 32;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};  // no column
  struct Memory {
    double sums[kTablePlaces];
    std::uint32_t columns[kTablePlaces];
    Part part[kParts];
    std::uint32_t used;
  };

  CPUFREE_KERNEL_FN Part part_of(std::int64_t row, std::int64_t begin, std::int64_t k) const {
    const std::int32_t j = of.a.col[k];
    if (of.aggregate == nullptr) return {of.b.ptr[j], of.b.ptr[j + 1], of.a.val[k]};
    const std::int32_t column = of.aggregate[j];
    if (column < 0 || (j != row && !of.strong(row, begin, k))) return {0, 0, 0.0};
    const double factor = j == row ? 1.0 - of.omega : -of.omega * of.a.val[k] / of.diagonal[row];
    return {column, column + 1, factor * of.constant[j]};
  }
  template <class P>
  CPUFREE_KERNEL_FN void accumulate(const P& port, std::int64_t row, Part* part,
                                    const RowTable<P>& table) const {
    const std::int64_t begin = of.a.ptr[row], end = of.a.ptr[row + 1];
    const int lanes = P::team_lanes();
    for (std::int64_t first = begin; first < end; first += lanes) {
      if (first + port.team_lane() < end)
        part[port.team_lane()] = part_of(row, begin, first + port.team_lane());
      port.sync_team();
      const std::int64_t left = end - first;
      const int parts = left < lanes ? static_cast<int>(left) : lanes;
      for (int p = 0; p < parts; p += kAhead) add_parts(port, part + p, parts - p, table);
    }
  }
  // The first entries of some parts are loaded together, so that the team waits once for them.
  template <class P>
  CPUFREE_KERNEL_FN void add_parts(const P& port, const Part* part, int parts,
                                   const RowTable<P>& table) const {
    std::int32_t column[kAhead];
    double value[kAhead];
    CPUFREE_UNROLL
    for (int p = 0; p < kAhead; ++p) {
      const std::int64_t m = p < parts ? part[p].begin + port.team_lane() : 0;
      column[p] = p < parts && m < part[p].end ? column_at(m) : -1;
      value[p] = column[p] < 0 ? 0.0 : value_at(part[p], m);
    }
    CPUFREE_UNROLL
    for (int p = 0; p < kAhead; ++p) {
      if (column[p] >= 0) table.add(column[p], value[p]);
      if (p >= parts) continue;
      for (std::int64_t m = part[p].begin + port.team_lane() + P::team_lanes(); m < part[p].end;
           m += P::team_lanes())
        table.add(column_at(m), value_at(part[p], m));
      port.sync_team();
    }
  }
  CPUFREE_KERNEL_FN std::int32_t column_at(std::int64_t m) const {
    return of.aggregate != nullptr ? static_cast<std::int32_t>(m) : of.b.col[m];
  }
  CPUFREE_KERNEL_FN double value_at(const Part& part, std::int64_t m) const {
    return of.aggregate != nullptr ? part.factor : part.factor * of.b.val[m];
  }
  // A short row of the prolongator, which needs no table: of the entries with a column the first
  // one has their sum, in the order of the entries.
  template <class P>
  CPUFREE_KERNEL_FN void make_short(const P& port, std::int64_t row, Memory& memory) const {
    const std::int64_t begin = of.a.ptr[row];
    const int parts = static_cast<int>(of.a.ptr[row + 1] - begin);
    const int lane = port.team_lane(), lanes = P::team_lanes();
    for (int q = lane; q < parts; q += lanes) memory.part[q] = part_of(row, begin, begin + q);
    port.sync_team();
    for (int q = lane; q < parts; q += lanes) {
      const Part mine = memory.part[q];
      bool first = mine.begin < mine.end;
      double sum = 0.0;
      for (int p = 0; p < parts && first; ++p) {
        const Part other = memory.part[p];
        if (other.begin != mine.begin || other.begin == other.end) continue;
        first = p >= q;
        sum += other.factor;
      }
      memory.columns[q] = first ? static_cast<std::uint32_t>(mine.begin) : kNone;
      memory.sums[q] = sum;
    }
    port.sync_team();
    write_short(port, row, parts, memory);
    port.sync_team();  // before the next row
  }
  template <class P>
  CPUFREE_KERNEL_FN void write_short(const P& port, std::int64_t row, int parts,
                                     const Memory& memory) const {
    if (length != nullptr) {
      if (port.team_lane() != 0) return;
      std::int32_t size = 0;
      for (int p = 0; p < parts; ++p) size += memory.columns[p] != kNone ? 1 : 0;
      length[row] = size;
      return;
    }
    for (int q = port.team_lane(); q < parts; q += P::team_lanes()) {
      const std::uint32_t mine = memory.columns[q];
      if (mine == kNone) continue;
      std::int32_t rank = 0;
      for (int p = 0; p < parts; ++p) rank += memory.columns[p] < mine ? 1 : 0;
      to_col[to.ptr[row] + rank] = static_cast<std::int32_t>(mine);
      to.val[to.ptr[row] + rank] = memory.sums[q];
    }
  }
  template <class P>
  CPUFREE_KERNEL_FN void make(const P& port, std::int64_t row, Memory& memory) const {
    if (of.aggregate != nullptr && of.a.ptr[row + 1] - of.a.ptr[row] <= kParts)
      return make_short(port, row, memory);
    const bool is_far = far.teams > 0;
    const std::int64_t columns = length == nullptr ? to.ptr[row + 1] - to.ptr[row] : bound[row];
    if (length == nullptr && !is_far && columns > most_columns(kTablePlaces)) return;
    const std::int32_t places = is_far ? far.places : places_for(columns, kTablePlaces);
    const std::int64_t place = is_far ? port.team() * far.places : 0;
    const RowTable<P> table(port, &memory.used, is_far ? far.columns + place : memory.columns,
                            is_far ? far.sums + place : memory.sums, places);
    accumulate(port, row, memory.part, table);
    if (length == nullptr) return table.write(to_col + to.ptr[row], to.val + to.ptr[row]);
    if (port.team_lane() == 0) {
      length[row] = static_cast<std::int32_t>(table.size());
      if (table.overflows() && !is_far)
        long_rows[port.add(long_count, std::uint32_t{1})] = static_cast<std::int32_t>(row);
    }
    port.sync_team();
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    static_assert(sizeof(Memory) <= P::kTeamBytes);
    Memory& memory = *reinterpret_cast<Memory*>(port.team_memory());
    each_team_item(port, far.teams > 0 ? far.teams : count, count,
                   [&](std::int64_t i) { make(port, list == nullptr ? i : list[i], memory); });
  }
};

}  // namespace cpufree::multigrid::setup
