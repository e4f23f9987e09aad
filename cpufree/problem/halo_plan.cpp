#include "cpufree/problem/halo_plan.hpp"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/halo_build.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "cpufree/problem/row_values.hpp"

namespace cpufree {

namespace {

// Calls f(pe, rows) for runs of rows [first, end) of every PE, first = first_row(local), that are
// together all of them, on all cores.
template <class T, class First, class F>
void for_row_chunks(const HaloPlan<T>& plan, First&& first_row, F&& f) {
  struct Chunk {
    int pe;
    RowRange rows;
  };
  std::vector<Chunk> chunks;
  for (int pe = 0; pe < static_cast<int>(plan.local.size()); ++pe) {
    const LocalSystem<T>& local = plan.local[at(pe)];
    const RowRange rows{first_row(local), local.rows()};
    const std::int64_t entries = local.row_ptr[at(rows.end)] - local.row_ptr[at(rows.begin)];
    for (const RowRange& part : split_rows(local.row_ptr, rows, parts_for_threads(entries)))
      chunks.push_back({pe, part});
  }
  in_parallel(static_cast<int>(chunks.size()),
              [&](int k) { f(chunks[at(k)].pe, chunks[at(k)].rows); });
}

template <class T>
std::int32_t all_rows(const LocalSystem<T>&) {
  return 0;
}
template <class T>
std::int32_t boundary_rows(const LocalSystem<T>& local) {
  return local.interior;
}

// Messages are made only where they are needed: these checks run for every row.
[[noreturn]] void refuse_owner(std::size_t row, std::int32_t owner, int pes) {
  throw InvalidInput("row " + std::to_string(row) + " is assigned to PE " + std::to_string(owner) +
                     " of " + std::to_string(pes));
}
[[noreturn]] void refuse_order(std::int32_t row) {
  throw InvalidInput("the order of rows must be a permutation: row " + std::to_string(row) +
                     " is out of range or named twice");
}

template <class T>
void check_arguments(const CsrView<T>& a, std::span<const std::int32_t> part,
                     std::span<const std::int32_t> order, int pes) {
  require(pes >= 1, "the number of PEs must be at least 1, not " + std::to_string(pes));
  require(a.row_ptr.size() == at(a.n) + 1, "row_ptr must have one entry more than there are rows");
  require(part.size() == at(a.n), "the partition has " + std::to_string(part.size()) +
                                      " entries for " + std::to_string(a.n) + " rows");
  for (std::size_t i = 0; i < part.size(); ++i)
    if (part[i] < 0 || part[i] >= pes) refuse_owner(i, part[i], pes);
  if (order.empty()) return;
  require(order.size() == at(a.n), "the order of rows must be a permutation of all rows");
  std::vector<bool> met(order.size(), false);
  for (const std::int32_t row : order) {
    if (row < 0 || row >= a.n || met[at(row)]) refuse_order(row);
    met[at(row)] = true;
  }
}

template <class T>
bool has_remote_column(const CsrView<T>& a, std::span<const std::int32_t> part, std::int32_t row) {
  for (std::int64_t k = a.row_ptr[at(row)]; k < a.row_ptr[at(row) + 1]; ++k)
    if (part[at(a.col[at(k)])] != part[at(row)]) return true;
  return false;
}

// Which rows have a column of another PE.
template <class T>
std::vector<char> find_boundary(const CsrView<T>& a, std::span<const std::int32_t> part, int pes) {
  std::vector<char> remote(at(a.n), 0);
  if (pes == 1) return remote;
  for_chunks(a.row_ptr, [&](RowRange chunk) {
    for (std::int32_t row = chunk.begin; row < chunk.end; ++row)
      remote[at(row)] = has_remote_column(a, part, row) ? 1 : 0;
  });
  return remote;
}

// Numbers rows: global_row of every PE, and local_row of every row.
template <class T>
std::vector<std::int32_t> number_rows(const CsrView<T>& a, std::span<const std::int32_t> part,
                                      std::span<const std::int32_t> order, HaloPlan<T>& plan) {
  const auto remote = find_boundary(a, part, static_cast<int>(plan.local.size()));
  std::vector<std::vector<std::int32_t>> boundary(plan.local.size());
  for (std::int32_t k = 0; k < a.n; ++k) {
    const std::int32_t row = order.empty() ? k : order[at(k)];
    const std::size_t pe = at(part[at(row)]);
    (remote[at(row)] != 0 ? boundary[pe] : plan.local[pe].global_row).push_back(row);
  }
  std::vector<std::int32_t> local_row(at(a.n));
  for (std::size_t pe = 0; pe < plan.local.size(); ++pe) {
    auto& rows = plan.local[pe].global_row;
    plan.local[pe].interior = static_cast<std::int32_t>(rows.size());
    rows.insert(rows.end(), boundary[pe].begin(), boundary[pe].end());
    for (std::size_t i = 0; i < rows.size(); ++i)
      local_row[at(rows[i])] = static_cast<std::int32_t>(i);
  }
  return local_row;
}

// Finds the ghosts of one PE, by owner and the owner's local row.
template <class T>
void number_ghosts(const CsrView<T>& a, std::span<const std::int32_t> part,
                   std::span<const std::int32_t> local_row, std::int32_t pe,
                   LocalSystem<T>& local) {
  std::vector<bool> met(local.boundary() > 0 ? at(a.n) : 0, false);
  std::vector<RowOfPe> ghosts;
  for (std::int32_t i = local.interior; i < local.rows(); ++i) {
    const std::int32_t row = local.global_row[at(i)];
    for (std::int64_t k = a.row_ptr[at(row)]; k < a.row_ptr[at(row) + 1]; ++k) {
      const std::int32_t col = a.col[at(k)];
      if (part[at(col)] == pe || met[at(col)]) continue;
      met[at(col)] = true;
      ghosts.push_back({part[at(col)], local_row[at(col)]});
    }
  }
  std::ranges::sort(ghosts);
  list_ghosts(local, ghosts);
}

// The original numbers of one PE's ghosts.
template <class T>
void name_ghosts(HaloPlan<T>& plan, LocalSystem<T>& local) {
  for (std::size_t g = 0; g < local.ghost_row.size(); ++g)
    local.ghost_name.push_back(
        plan.local[at(local.ghost_owner[g])].global_row[at(local.ghost_row[g])]);
}

// Room for one PE's rows, untouched: who writes a page first decides where it lies.
template <class T>
void reserve_rows(const CsrView<T>& a, LocalSystem<T>& local) {
  local.row_ptr.assign(at(local.rows()) + 1, 0);
  for (std::int32_t i = 0; i < local.rows(); ++i)
    local.row_ptr[at(i) + 1] = local.row_ptr[at(i)] + a.row_nnz(local.global_row[at(i)]);
  local.col.resize(at(local.row_ptr.back()));
  local.val.resize(at(local.row_ptr.back()));
}

// Copies some of one PE's rows, in local numbering, columns sorted.
template <class T>
void copy_rows(const CsrView<T>& a, std::span<const std::int32_t> part,
               std::span<const std::int32_t> local_row, std::int32_t pe, RowRange rows,
               LocalSystem<T>& local) {
  RowWriter<T> writer(local);
  for (std::int32_t i = rows.begin; i < rows.end; ++i) {
    const std::int64_t from = a.row_ptr[at(local.global_row[at(i)])];
    writer.write(i, a.col.data() + from, a.val.data() + from, [&](std::int32_t there) {
      const std::int32_t owner = i < local.interior ? pe : part[at(there)];
      return owner == pe ? local_row[at(there)]
                         : local.rows() + ghost_number(local, owner, local_row[at(there)]);
    });
  }
}

// Where row i of one PE reads row j of another, row j must read row i: the proofs of the channels
// rest on it.
template <class T>
void check_symmetry(const HaloPlan<T>& plan, std::int32_t pe, RowRange rows) {
  const auto& local = plan.local[at(pe)];
  for (std::int32_t row = rows.begin; row < rows.end; ++row) {
    const std::int32_t i = row - local.interior;
    const auto sent = std::span(local.destinations)
                          .subspan(at(local.send_ptr[at(i)]),
                                   at(local.send_ptr[at(i) + 1] - local.send_ptr[at(i)]));
    for (std::int64_t k = local.row_ptr[at(row)]; k < local.row_ptr[at(row) + 1]; ++k) {
      const std::int32_t ghost = local.col[at(k)] - local.rows();
      if (ghost < 0) continue;
      const std::int32_t owner = local.ghost_owner[at(ghost)];
      const auto& other = plan.local[at(owner)];
      const auto mine = std::ranges::find(sent, owner, &Destination::pe);
      const std::int64_t back = local.ghost_row[at(ghost)];
      const auto first = other.col.begin() + other.row_ptr[at(back)];
      const auto last = other.col.begin() + other.row_ptr[at(back) + 1];
      if (mine == sent.end() || !std::binary_search(first, last, mine->index))
        refuse_one_way(local.global_row[at(row)]);
    }
  }
}

// One PE with rows in their natural order: everything is as it was.
template <class T>
HaloPlan<T> whole_plan(const CsrView<T>& a, RowArrays rows_are) {
  HaloPlan<T> plan;
  LocalSystem<T>& local = plan.local.emplace_back();
  local.interior = a.n;
  const auto numbers = std::views::iota(0, a.n);
  local.global_row.assign(numbers.begin(), numbers.end());
  local.row_ptr.assign(a.row_ptr.begin(), a.row_ptr.end());
  local.send_ptr.assign(1, 0);
  if (rows_are == RowArrays::given) {
    local.given_col = a.col.data();
    local.given_val = a.val.data();
    return plan;
  }
  local.col.resize(at(a.nnz()));
  local.val.resize(at(a.nnz()));
  for_row_chunks(plan, all_rows<T>, [&](int, RowRange rows) {
    const std::int64_t from = a.row_ptr[at(rows.begin)];
    const std::int64_t count = a.row_ptr[at(rows.end)] - from;
    std::copy_n(a.col.data() + from, count, local.col.data() + from);
    std::copy_n(a.val.data() + from, count, local.val.data() + from);
  });
  return plan;
}

}  // namespace

template <class T>
HaloPlan<T> make_halo_plan(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                           std::span<const std::int32_t> order, int pes, RowArrays rows_are) {
  check_arguments(matrix, part, order, pes);
  if (pes == 1 && order.empty()) return whole_plan(matrix, rows_are);
  HaloPlan<T> plan;
  plan.local.resize(at(pes));
  const auto local_row = number_rows(matrix, part, order, plan);
  in_parallel(pes, [&](int pe) {
    number_ghosts(matrix, part, local_row, pe, plan.local[at(pe)]);
    name_ghosts(plan, plan.local[at(pe)]);
    reserve_rows(matrix, plan.local[at(pe)]);
  });
  for_row_chunks(plan, all_rows<T>, [&](int pe, RowRange rows) {
    copy_rows(matrix, part, local_row, pe, rows, plan.local[at(pe)]);
  });
  in_parallel(pes, [&](int pe) {
    list_destinations(plan, pe, [&](std::int32_t row) {
      refuse_one_way(plan.local[at(pe)].global_row[at(row)]);
    });
  });
  for_row_chunks(plan, boundary_rows<T>,
                 [&](int pe, RowRange rows) { check_symmetry(plan, pe, rows); });
  for (LocalSystem<T>& local : plan.local) count_sent(local);
  return plan;
}

template <class T>
void take_values(const CsrView<T>& matrix, HaloPlan<T>& plan) {
  for (LocalSystem<T>& local : plan.local) local.val.resize(at(local.row_ptr.back()));
  for_row_chunks(plan, all_rows<T>, [&](int pe, RowRange rows) {
    LocalSystem<T>& local = plan.local[at(pe)];
    for (std::int32_t row = rows.begin; row < rows.end; ++row) {
      RowValues<T> values(matrix, local.global_row[at(row)]);
      for (std::int64_t k = local.row_ptr[at(row)]; k < local.row_ptr[at(row) + 1]; ++k)
        local.val[at(k)] = values.at_column(local.name_of(local.col[at(k)]));
    }
  });
}

template void take_values(const CsrView<float>&, HaloPlan<float>&);
template void take_values(const CsrView<double>&, HaloPlan<double>&);
template HaloPlan<float> make_halo_plan(const CsrView<float>&, std::span<const std::int32_t>,
                                        std::span<const std::int32_t>, int, RowArrays);
template HaloPlan<double> make_halo_plan(const CsrView<double>&, std::span<const std::int32_t>,
                                         std::span<const std::int32_t>, int, RowArrays);

}  // namespace cpufree
