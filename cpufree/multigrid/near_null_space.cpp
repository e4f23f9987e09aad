#include "cpufree/multigrid/near_null_space.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "cpufree/base/error.hpp"

namespace cpufree::multigrid {

namespace {

// What is left of a vector that the ones before it span in an aggregate, relative.
constexpr double kDependent = 1e-6;

using Triangle = std::array<std::array<double, kMostModes>, kMostModes>;

// Makes the vectors orthonormal in the rows of an aggregate (Gram-Schmidt, each twice), in place.
// Returns how many are left; vectors = result times `r`.
std::int32_t orthonormalise(std::span<const std::int32_t> rows, std::int32_t modes, double* vectors,
                            Triangle& r) {
  const auto entry = [&](std::int32_t row, std::int32_t mode) -> double& {
    return vectors[at(row) * at(modes) + at(mode)];
  };
  const auto dot = [&](std::int32_t a, std::int32_t b) {
    double sum = 0.0;
    for (const std::int32_t row : rows) sum += entry(row, a) * entry(row, b);
    return sum;
  };
  std::int32_t rank = 0;
  for (std::int32_t mode = 0; mode < modes; ++mode) {
    const double size = std::sqrt(dot(mode, mode));
    for (int pass = 0; pass < 2; ++pass)
      for (std::int32_t q = 0; q < rank; ++q) {
        const double part = dot(q, mode);
        r[at(q)][at(mode)] += part;
        for (const std::int32_t row : rows) entry(row, mode) -= part * entry(row, q);
      }
    const double left = std::sqrt(dot(mode, mode));
    if (!(left > kDependent * size) || rank == std::ssize(rows)) continue;
    r[at(rank)][at(mode)] = left;
    for (const std::int32_t row : rows) entry(row, rank) = entry(row, mode) / left;
    ++rank;
  }
  return rank;
}

}  // namespace

NearNullSpace NearNullSpace::constant(std::int32_t rows) {
  NearNullSpace near;
  near.vectors.assign(at(rows), 1.0);
  return near;
}

NearNullSpace NearNullSpace::of(std::span<const double> vectors, std::int32_t modes,
                                std::span<const std::int32_t> node) {
  require(modes >= 1 && modes <= kMostModes, "near_nullspace has 1 to 6 vectors");
  require(std::ranges::all_of(vectors, [](double v) { return std::isfinite(v); }),
          "the vectors of near_nullspace must be finite");
  NearNullSpace near;
  near.modes = modes;
  near.vectors.assign(vectors.begin(), vectors.end());
  near.node.assign(node.begin(), node.end());
  if (node.empty()) return near;
  require(node.size() * at(modes) == vectors.size(), "node has one number for each row");
  const auto [least, most] = std::ranges::minmax(node);
  require(least >= 0 && most < std::ssize(node),
          "numbers of nodes run from 0, and there are no more nodes than rows");
  near.nodes = most + 1;
  return near;
}

std::vector<std::int32_t> with_whole_nodes(std::span<const std::int32_t> part,
                                           std::span<const std::int32_t> node) {
  require(part.size() == node.size(), "part and node have one number for each row");
  if (node.empty()) return {};
  std::vector<std::int32_t> owner(at(std::ranges::max(node)) + 1, -1), whole(part.size());
  for (std::size_t row = 0; row < part.size(); ++row) {
    std::int32_t& of_node = owner[at(node[row])];
    if (of_node < 0) of_node = part[row];
    whole[row] = of_node;
  }
  return whole;
}

Groups Groups::of_single_rows(std::int32_t rows) {
  Groups groups;
  groups.first.resize(at(rows) + 1);
  std::iota(groups.first.begin(), groups.first.end(), 0);
  groups.row.assign(groups.first.begin(), groups.first.end() - 1);
  return groups;
}

Groups rows_by_group(std::span<const std::int32_t> group, std::int32_t count) {
  Groups groups;
  groups.first.assign(at(count) + 1, 0);
  for (const std::int32_t g : group)
    if (g >= 0) ++groups.first[at(g) + 1];
  std::partial_sum(groups.first.begin(), groups.first.end(), groups.first.begin());
  groups.row.resize(at(groups.first.back()));
  std::vector<std::int32_t> next(groups.first.begin(), groups.first.end() - 1);
  for (std::size_t row = 0; row < group.size(); ++row)
    if (group[row] >= 0) groups.row[at(next[at(group[row])]++)] = static_cast<std::int32_t>(row);
  return groups;
}

Tentative tentative_prolongator(const NearNullSpace& near, std::vector<std::int32_t> of_row,
                                std::int32_t aggregates) {
  const std::size_t modes = at(near.modes);
  Tentative t;
  t.of_row = std::move(of_row);
  t.values = near.vectors;
  t.first.assign(at(aggregates) + 1, 0);
  t.coarse.modes = near.modes;
  if (modes == 1) {
    std::iota(t.first.begin(), t.first.end(), 0);
    t.coarse.vectors.assign(at(aggregates), 1.0);
    return t;
  }
  const Groups rows = rows_by_group(t.of_row, aggregates);
  std::vector<Triangle> r(at(aggregates), Triangle{});
  for_rows(aggregates, [&](std::int32_t c) {
    t.first[at(c) + 1] = orthonormalise(rows.of(c), near.modes, t.values.data(), r[at(c)]);
  });
  std::partial_sum(t.first.begin(), t.first.end(), t.first.begin());
  t.coarse.vectors.resize(at(t.columns()) * modes);
  t.coarse.node.resize(at(t.columns()));
  t.coarse.nodes = aggregates;
  for_rows(aggregates, [&](std::int32_t c) {
    for (std::int32_t q = t.first[at(c)]; q < t.first[at(c) + 1]; ++q) {
      t.coarse.node[at(q)] = c;
      for (std::size_t m = 0; m < modes; ++m)
        t.coarse.vectors[at(q) * modes + m] = r[at(c)][at(q - t.first[at(c)])][m];
    }
  });
  return t;
}

}  // namespace cpufree::multigrid
