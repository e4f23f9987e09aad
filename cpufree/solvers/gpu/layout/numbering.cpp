// The rows of PEs in their own numbers, and what they exchange.
#include <algorithm>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/halo_build.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/layout/rows.hpp"

namespace cpufree {

namespace {

using gpu::DeviceArray;
using gpu::OnDevice;
using Int32s = DeviceArray<std::int32_t>;
using Int64s = DeviceArray<std::int64_t>;

// What is known of a PE's rows before ghosts have numbers.
struct Numbered {
  Int32s local_row, global_row;
  Int64s ghost;                                // of each row of the matrix that is one: its number
  std::vector<std::int32_t> boundary, ghosts;  // rows of the matrix, increasing
};

template <class T>
Numbered number(const GpuRows<T>& mine, std::int64_t all_rows, std::int32_t& interior) {
  const int device = mine.device();
  const gpu::Stream& stream = mine.stream;
  Int32s boundary = Int32s::uninitialised(device, at(mine.rows));
  Int32s mark = Int32s::uninitialised(device, at(all_rows));
  mark.clear(stream);
  launch_layout(layout::MarkBoundary<T>{mine.part(), boundary.data(), mark.data()}, mine.rows,
                stream);
  const Int64s before = scan_numbers<T>(stream, boundary.data(), mine.rows);
  const auto count = fetch(stream, before.data() + mine.rows, 1)[0];
  interior = mine.rows - static_cast<std::int32_t>(count);
  Numbered numbered;
  numbered.local_row = Int32s::uninitialised(device, at(mine.rows));
  numbered.global_row = Int32s::uninitialised(device, at(mine.rows));
  launch_layout(
      layout::NumberRows<T>{mine.first, mine.rows, interior, boundary.data(), before.data(),
                            numbered.local_row.data(), numbered.global_row.data()},
      mine.rows, stream);
  numbered.boundary = fetch(stream, numbered.global_row.data() + interior, at(count));
  numbered.ghost = scan_numbers<T>(stream, mark.data(), all_rows);
  const auto ghosts = fetch(stream, numbered.ghost.data() + all_rows, 1)[0];
  const Int32s list = Int32s::uninitialised(device, at(ghosts));
  launch_layout(layout::ListMarked<T>{mark.data(), numbered.ghost.data(), all_rows, list.data()},
                all_rows, stream);
  numbered.ghosts = fetch(stream, list.data(), at(ghosts));
  return numbered;
}

// The ghosts of a PE by owner and the owner's row: boundary rows there, as the pattern is
// symmetric.
template <class T>
void place_ghosts(const std::vector<GpuRows<T>>& rows, const std::vector<Numbered>& numbered,
                  std::size_t k, LocalSystem<T>& local) {
  std::vector<RowOfPe> ghosts;
  std::size_t owner = 0;
  for (const std::int32_t row : numbered[k].ghosts) {
    while (row >= rows[owner].first + rows[owner].rows) ++owner;
    const auto& there = numbered[owner].boundary;
    const auto found = std::ranges::lower_bound(there, row);
    if (found == there.end() || *found != row) refuse_one_way(row);
    ghosts.push_back({static_cast<std::int32_t>(owner),
                      rows[owner].interior + static_cast<std::int32_t>(found - there.begin())});
  }
  list_ghosts(local, ghosts);
  local.ghost_name = numbered[k].ghosts;
}

// The rows in their new numbers, in the place of those that there were.
template <class T>
void take_rows(GpuRows<T>& mine, Numbered& numbered) {
  const int device = mine.device();
  const Int32s length = Int32s::uninitialised(device, at(mine.rows));
  launch_layout(layout::RowLengths<T>{mine.ptr.data(), numbered.global_row.data(), mine.first,
                                      mine.rows, length.data()},
                mine.rows, mine.stream);
  Int64s ptr = scan_numbers<T>(mine.stream, length.data(), mine.rows);
  Int32s col = Int32s::uninitialised(device, at(mine.nnz));
  auto val = DeviceArray<T>::uninitialised(device, at(mine.nnz));
  launch_layout(layout::TakeRows<T>{mine.part(), mine.interior, numbered.global_row.data(),
                                    numbered.local_row.data(), numbered.ghost.data(), ptr.data(),
                                    col.data(), val.data(), mine.facts.data()},
                mine.rows, mine.stream);
  mine.ghost_reads =
      static_cast<std::int64_t>(fetch(mine.stream, mine.facts.data(), 1)[0].ghost_reads);
  mine.ptr = std::move(ptr);
  mine.col = std::move(col);
  mine.val = std::move(val);
  mine.global_row = std::move(numbered.global_row);
}

}  // namespace

template <class T>
HaloPlan<T> number_rows(std::vector<GpuRows<T>>& rows) {
  HaloPlan<T> plan;
  for (const GpuRows<T>& mine : rows) plan.local.emplace_back().rows_elsewhere = mine.rows;
  if (rows.size() == 1) {
    rows[0].interior = plan.local[0].interior = rows[0].rows;
    plan.local[0].send_ptr.assign(1, 0);
    return plan;
  }
  const std::int64_t all_rows = rows.back().first + rows.back().rows;
  std::vector<Numbered> numbered(rows.size());
  const int pes = static_cast<int>(rows.size());
  in_parallel(pes, [&](int k) {
    const OnDevice here(rows[at(k)].device());
    numbered[at(k)] = number(rows[at(k)], all_rows, rows[at(k)].interior);
  });
  in_parallel(pes, [&](int k) {
    const OnDevice here(rows[at(k)].device());
    plan.local[at(k)].interior = rows[at(k)].interior;
    place_ghosts(rows, numbered, at(k), plan.local[at(k)]);
    take_rows(rows[at(k)], numbered[at(k)]);
  });
  in_parallel(pes, [&](int k) {
    list_destinations(plan, k, [](std::int32_t row) { refuse_one_way(row); });
  });
  for (LocalSystem<T>& local : plan.local) count_sent(local);
  return plan;
}

template HaloPlan<float> number_rows(std::vector<GpuRows<float>>&);
template HaloPlan<double> number_rows(std::vector<GpuRows<double>>&);

}  // namespace cpufree
