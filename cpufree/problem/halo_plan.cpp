#include "cpufree/problem/halo_plan.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

// Messages are made only where they are needed: these checks run for every row.
[[noreturn]] void refuse_owner(std::size_t row, std::int32_t owner, int pes) {
  throw InvalidInput("row " + std::to_string(row) + " is assigned to PE " + std::to_string(owner) +
                     " of " + std::to_string(pes));
}
[[noreturn]] void refuse_order(std::int32_t row) {
  throw InvalidInput("the order of rows must be a permutation: row " + std::to_string(row) +
                     " is out of range or named twice");
}
[[noreturn]] void refuse_one_way(std::int32_t row) {
  throw InvalidInput("the pattern of the matrix is not symmetric: row " + std::to_string(row) +
                     " is coupled one way only");
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

// Numbers rows: global_row of every PE, and local_row of every row.
template <class T>
std::vector<std::int32_t> number_rows(const CsrView<T>& a, std::span<const std::int32_t> part,
                                      std::span<const std::int32_t> order, HaloPlan<T>& plan) {
  std::vector<std::vector<std::int32_t>> boundary(plan.local.size());
  for (std::int32_t k = 0; k < a.n; ++k) {
    const std::int32_t row = order.empty() ? k : order[at(k)];
    const std::size_t pe = at(part[at(row)]);
    const bool remote = plan.local.size() > 1 && has_remote_column(a, part, row);
    (remote ? boundary[pe] : plan.local[pe].global_row).push_back(row);
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

// Lists the ghosts of one PE, by owner and the owner's local row, and returns their original rows.
template <class T>
std::vector<std::int32_t> number_ghosts(const CsrView<T>& a, std::span<const std::int32_t> part,
                                        std::span<const std::int32_t> local_row, std::int32_t pe,
                                        LocalSystem<T>& local) {
  std::vector<std::int32_t> ghosts;
  for (std::int32_t i = local.interior; i < local.rows(); ++i) {
    const std::int32_t row = local.global_row[at(i)];
    for (std::int64_t k = a.row_ptr[at(row)]; k < a.row_ptr[at(row) + 1]; ++k)
      if (part[at(a.col[at(k)])] != pe) ghosts.push_back(a.col[at(k)]);
  }
  const auto key = [&](std::int32_t row) { return std::pair(part[at(row)], local_row[at(row)]); };
  std::ranges::sort(ghosts, {}, key);
  const auto repeated = std::ranges::unique(ghosts);
  ghosts.erase(repeated.begin(), repeated.end());
  local.ghosts = static_cast<std::int32_t>(ghosts.size());
  for (std::size_t g = 0; g < ghosts.size(); ++g) {
    const auto [owner, row] = key(ghosts[g]);
    local.ghost_owner.push_back(owner);
    local.ghost_row.push_back(row);
    if (local.neighbours.empty() || local.neighbours.back().pe != owner)
      local.neighbours.push_back({owner, 0, static_cast<std::int32_t>(g), 0});
    ++local.neighbours.back().received;
  }
  return ghosts;
}

// Copies one PE's rows, in local numbering, columns sorted.
template <class T>
void copy_rows(const CsrView<T>& a, std::span<const std::int32_t> part,
               std::span<const std::int32_t> local_row, std::int32_t pe, LocalSystem<T>& local) {
  const auto ghosts = number_ghosts(a, part, local_row, pe, local);
  const auto key = [&](std::int32_t row) { return std::pair(part[at(row)], local_row[at(row)]); };
  const auto local_col = [&](std::int32_t col) {
    if (part[at(col)] == pe) return local_row[at(col)];
    const auto found = std::ranges::lower_bound(ghosts, key(col), {}, key);
    return local.rows() + static_cast<std::int32_t>(found - ghosts.begin());
  };
  local.row_ptr.assign(at(local.rows()) + 1, 0);
  for (std::int32_t i = 0; i < local.rows(); ++i)
    local.row_ptr[at(i) + 1] = local.row_ptr[at(i)] + a.row_nnz(local.global_row[at(i)]);
  local.col.resize(at(local.row_ptr.back()));
  local.val.resize(at(local.row_ptr.back()));
  std::vector<std::pair<std::int32_t, T>> entries;
  for (std::int32_t i = 0; i < local.rows(); ++i) {
    const std::int64_t from = a.row_ptr[at(local.global_row[at(i)])];
    const std::int64_t to = local.row_ptr[at(i)];
    const std::int64_t count = local.row_ptr[at(i) + 1] - to;
    entries.clear();
    for (std::int64_t k = 0; k < count; ++k)
      entries.emplace_back(local_col(a.col[at(from + k)]), a.val[at(from + k)]);
    if (!std::ranges::is_sorted(entries, {}, &std::pair<std::int32_t, T>::first))
      std::ranges::sort(entries, {}, &std::pair<std::int32_t, T>::first);
    for (std::int64_t k = 0; k < count; ++k) {
      local.col[at(to + k)] = entries[at(k)].first;
      local.val[at(to + k)] = entries[at(k)].second;
    }
  }
}

// Turns everybody's ghosts into everybody's destinations.
template <class T>
void list_destinations(HaloPlan<T>& plan) {
  const auto pes = static_cast<std::int32_t>(plan.local.size());
  std::vector<std::vector<std::int64_t>> counts(at(pes));
  for (std::int32_t pe = 0; pe < pes; ++pe)
    counts[at(pe)].assign(at(plan.local[at(pe)].boundary()) + 1, 0);
  const auto each_ghost = [&](auto&& f) {  // f(owner, boundary index on the owner, Destination)
    for (std::int32_t pe = 0; pe < pes; ++pe) {
      const auto& local = plan.local[at(pe)];
      for (std::int32_t g = 0; g < local.ghosts; ++g) {
        const std::int32_t owner = local.ghost_owner[at(g)];
        const std::int32_t index = local.ghost_row[at(g)] - plan.local[at(owner)].interior;
        if (index < 0) refuse_one_way(plan.local[at(owner)].global_row[at(local.ghost_row[at(g)])]);
        f(owner, index, Destination{pe, local.rows() + g});
      }
    }
  };
  each_ghost([&](std::int32_t owner, std::int32_t index, Destination) {
    ++counts[at(owner)][at(index) + 1];
  });
  for (std::int32_t pe = 0; pe < pes; ++pe) {
    std::partial_sum(counts[at(pe)].begin(), counts[at(pe)].end(), counts[at(pe)].begin());
    plan.local[at(pe)].send_ptr = counts[at(pe)];
    plan.local[at(pe)].destinations.resize(at(counts[at(pe)].back()));
  }
  each_ghost([&](std::int32_t owner, std::int32_t index, Destination destination) {
    plan.local[at(owner)].destinations[at(counts[at(owner)][at(index)]++)] = destination;
  });
}

// Where row i of one PE reads row j of another, row j must read row i: the proofs of the channels
// rest on it.
template <class T>
void check_symmetry(const HaloPlan<T>& plan, std::int32_t pe) {
  const auto& local = plan.local[at(pe)];
  for (std::int32_t row = local.interior; row < local.rows(); ++row) {
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

template <class T>
void count_traffic(HaloPlan<T>& plan) {
  std::int64_t most = 0;
  std::int64_t all = 0;
  for (auto& local : plan.local) {
    for (const std::int32_t col : local.col) plan.edge_cut += col >= local.rows() ? 1 : 0;
    plan.halo_values += local.ghosts;
    most = std::max(most, local.row_ptr.back());
    all += local.row_ptr.back();
    for (const Destination& destination : local.destinations)
      ++std::ranges::lower_bound(local.neighbours, destination.pe, {}, &Neighbour::pe)->sent;
  }
  plan.edge_cut /= 2;
  const auto mean = static_cast<double>(all) / static_cast<double>(plan.local.size());
  plan.imbalance = all > 0 ? static_cast<double>(most) / mean : 1.0;
}

// One PE with rows in their natural order: everything is as it was.
template <class T>
HaloPlan<T> whole_plan(const CsrView<T>& a) {
  HaloPlan<T> plan;
  LocalSystem<T>& local = plan.local.emplace_back();
  local.interior = a.n;
  local.global_row.resize(at(a.n));
  std::iota(local.global_row.begin(), local.global_row.end(), 0);
  local.row_ptr.assign(a.row_ptr.begin(), a.row_ptr.end());
  local.col.assign(a.col.begin(), a.col.end());
  local.val.assign(a.val.begin(), a.val.end());
  local.send_ptr.assign(1, 0);
  return plan;
}

}  // namespace

template <class T>
HaloPlan<T> make_halo_plan(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                           std::span<const std::int32_t> order, int pes) {
  check_arguments(matrix, part, order, pes);
  if (pes == 1 && order.empty()) return whole_plan(matrix);
  HaloPlan<T> plan;
  plan.local.resize(at(pes));
  const auto local_row = number_rows(matrix, part, order, plan);
  in_parallel(pes, [&](int pe) { copy_rows(matrix, part, local_row, pe, plan.local[at(pe)]); });
  list_destinations(plan);
  in_parallel(pes, [&](int pe) { check_symmetry(plan, pe); });
  count_traffic(plan);
  return plan;
}

template HaloPlan<float> make_halo_plan(const CsrView<float>&, std::span<const std::int32_t>,
                                        std::span<const std::int32_t>, int);
template HaloPlan<double> make_halo_plan(const CsrView<double>&, std::span<const std::int32_t>,
                                         std::span<const std::int32_t>, int);

}  // namespace cpufree
