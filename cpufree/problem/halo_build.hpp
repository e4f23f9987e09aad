// The steps that make the share of one PE, wherever the rows of the others are known: a plan of
// the whole matrix (halo_plan.cpp), or one that ranks make together
// (distributed/slab_plan.cpp).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// A row by its owner and its number there.
struct RowOfPe {
  std::int32_t pe = 0;
  std::int32_t row = 0;
  friend auto operator<=>(const RowOfPe&, const RowOfPe&) = default;
};

// Makes `ghosts`, sorted, those of a PE.
template <class T>
void list_ghosts(LocalSystem<T>& local, std::span<const RowOfPe> ghosts) {
  local.ghosts = static_cast<std::int32_t>(ghosts.size());
  for (const auto [owner, row] : ghosts) {
    if (local.neighbours.empty() || local.neighbours.back().pe != owner)
      local.neighbours.push_back(
          {owner, 0, static_cast<std::int32_t>(local.ghost_owner.size()), 0});
    local.ghost_owner.push_back(owner);
    local.ghost_row.push_back(row);
    ++local.neighbours.back().received;
  }
}

// The number of a ghost, from its owner and its row there.
template <class T>
std::int32_t ghost_number(const LocalSystem<T>& local, std::int32_t owner, std::int32_t row) {
  const auto neighbour = std::ranges::lower_bound(local.neighbours, owner, {}, &Neighbour::pe);
  const auto first = local.ghost_row.begin() + neighbour->first_ghost;
  const auto found = std::lower_bound(first, first + neighbour->received, row);
  return static_cast<std::int32_t>(found - local.ghost_row.begin());
}

// Writes rows of a PE, whose row_ptr stands, in local numbering, columns sorted. One for a thread.
template <class T>
class RowWriter {
 public:
  explicit RowWriter(LocalSystem<T>& local) : local_(local) {}

  // Row i from columns and values that begin at `columns` and `values`; `place(column)` numbers a
  // column.
  template <class C, class F>
  void write(std::int32_t i, const C* columns, const T* values, F&& place) {
    std::int32_t* const col = local_.col.data() + local_.row_ptr[at(i)];
    T* const val = local_.val.data() + local_.row_ptr[at(i)];
    const std::int64_t count = local_.row_ptr[at(i) + 1] - local_.row_ptr[at(i)];
    bool sorted = true;
    for (std::int64_t k = 0; k < count; ++k) {
      col[k] = place(columns[k]);
      val[k] = values[k];
      sorted = sorted && (k == 0 || col[k - 1] < col[k]);
    }
    if (!sorted) sort(col, val, at(count));
  }

 private:
  void sort(std::int32_t* col, T* val, std::size_t count) {
    keys_.resize(count);
    copy_.assign(val, val + count);
    for (std::size_t k = 0; k < count; ++k)
      keys_[k] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(col[k])) << 32U | k;
    std::ranges::sort(keys_);
    for (std::size_t k = 0; k < count; ++k) {
      col[k] = static_cast<std::int32_t>(keys_[k] >> 32U);
      val[k] = copy_[keys_[k] & 0xffffffffU];
    }
  }

  LocalSystem<T>& local_;
  std::vector<std::uint64_t> keys_;
  std::vector<T> copy_;
};

// Makes the destinations of a PE. `each_read(add)` calls add(row, Destination) for every value that
// another PE reads, by increasing PE; `row` is a boundary row. It is called twice.
template <class T, class F>
void set_destinations(LocalSystem<T>& local, F&& each_read) {
  std::vector<std::int64_t> next(at(local.boundary()) + 1, 0);
  each_read([&](std::int32_t row, Destination) { ++next[at(row - local.interior) + 1]; });
  std::partial_sum(next.begin(), next.end(), next.begin());
  local.send_ptr = next;
  local.destinations.resize(at(next.back()));
  each_read([&](std::int32_t row, Destination destination) {
    local.destinations[at(next[at(row - local.interior)]++)] = destination;
  });
}

[[noreturn]] inline void refuse_one_way(std::int32_t row) {
  throw InvalidInput("the pattern of the matrix is not symmetric: row " + std::to_string(row) +
                     " is coupled one way only");
}

// Turns the ghosts of all PEs into the destinations of one PE. refuse(row): where one reads an
// interior row of it.
template <class T, class F>
void list_destinations(HaloPlan<T>& plan, std::int32_t owner, F&& refuse) {
  LocalSystem<T>& local = plan.local[at(owner)];
  set_destinations(local, [&](auto&& add) {
    for (std::size_t pe = 0; pe < plan.local.size(); ++pe) {
      const LocalSystem<T>& reader = plan.local[pe];
      const auto run = std::ranges::lower_bound(reader.neighbours, owner, {}, &Neighbour::pe);
      if (run == reader.neighbours.end() || run->pe != owner) continue;
      for (std::int32_t g = run->first_ghost; g < run->first_ghost + run->received; ++g) {
        const std::int32_t row = reader.ghost_row[at(g)];
        if (row < local.interior) refuse(row);
        add(row, Destination{static_cast<std::int32_t>(pe), reader.rows() + g});
      }
    }
  });
}

// Counts what each neighbour is sent; a neighbour that is sent something sends something.
template <class T>
void count_sent(LocalSystem<T>& local) {
  for (const Destination& destination : local.destinations)
    ++std::ranges::lower_bound(local.neighbours, destination.pe, {}, &Neighbour::pe)->sent;
}

}  // namespace cpufree
