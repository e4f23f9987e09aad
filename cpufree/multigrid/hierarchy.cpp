#include "cpufree/multigrid/hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "cpufree/multigrid/transfer.hpp"

namespace cpufree::multigrid {

namespace {

// Of a Galerkin product, for each nonzero of A: 7-point grids take 6.
constexpr double kMostMultiplications = 100.0;

using NaturalOrder = std::span<const std::int32_t>;

template <class T>
SparseMatrix copy_of(const CsrView<T>& a) {
  SparseMatrix copy;
  copy.columns = a.n;
  copy.row_ptr.assign(a.row_ptr.begin(), a.row_ptr.end());
  copy.col.resize(at(a.nnz()));
  copy.val.resize(at(a.nnz()));
  for_rows(a.n, [&](std::int32_t row) {
    for (std::int64_t k = copy.begin(row); k < copy.end(row); ++k) {
      copy.col[at(k)] = a.col[at(k)];
      copy.val[at(k)] = static_cast<double>(a.val[at(k)]);
    }
  });
  return copy;
}

std::vector<double> reciprocals(std::vector<double> s) {
  for (double& value : s) value = 1.0 / value;
  return s;
}

bool several(const std::vector<std::int32_t>& owner) {
  return std::ranges::adjacent_find(owner, std::ranges::not_equal_to()) != owner.end();
}

// Coarsens the last level. Returns why that is not worth while; "": there is another level.
// `constant`: the vector that the prolongator is to have in its range, of the levels' unknowns.
std::string coarsen(Hierarchy& h, std::vector<double>& constant, double theta,
                    std::span<const std::int32_t> order, const Options& options) {
  Level& fine = h.levels.back();
  const SparseMatrix& a = fine.matrix;
  const Strength strong(a, theta);
  const bool whole = h.is_whole(h.levels.size() - 1);
  const auto owner = whole ? std::vector<std::int32_t>(at(a.rows()), 0) : fine.owner;
  const StrongGraph graph = strong_graph(a, owner, strong);
  const Aggregates aggregates = aggregate(graph, a, order);
  if (aggregates.count == 0) return "no row has a strong coupling to another one";
  std::int32_t covered = 0;
  for (const char isolated : graph.isolated) covered += isolated == 0 ? 1 : 0;
  if (covered < options.least_ratio * aggregates.count)
    return "coarsening stalls: " + std::to_string(covered) + " rows make " +
           std::to_string(aggregates.count) + " aggregates";
  const auto diagonal = filtered_diagonal(a, constant, strong);
  fine.lambda = largest_eigenvalue(a);
  // Without weak entries the filtered matrix is the matrix.
  const double filtered =
      has_weak(a, strong) ? largest_eigenvalue(a, diagonal, strong) : fine.lambda;
  fine.prolongator = smoothed_prolongator(a, aggregates, constant, diagonal, strong, filtered);
  const double nonzeros = static_cast<double>(h.levels.front().matrix.nonzeros());
  auto product = galerkin_product(a, fine.prolongator, kMostMultiplications * nonzeros);
  if (!product || h.complexity() + static_cast<double>(product->nonzeros()) / nonzeros >
                      options.most_complexity) {
    fine.prolongator = {};
    return "coarser levels would be dense";
  }
  Level coarse;
  coarse.matrix = std::move(*product);
  const auto roots = inverse_roots(coarse.matrix);
  scale_both_sides(coarse.matrix, roots);
  scale_columns(fine.prolongator, roots);
  constant = reciprocals(roots);
  for (const std::int32_t root : aggregates.roots) coarse.owner.push_back(owner[at(root)]);
  if (!whole && coarse.matrix.rows() <= options.gathered && several(coarse.owner))
    h.gathered = h.levels.size();
  h.levels.push_back(std::move(coarse));
  return {};
}

}  // namespace

double Hierarchy::complexity() const {
  double sum = 0.0;
  for (const Level& level : levels) sum += static_cast<double>(level.matrix.nonzeros());
  return sum / static_cast<double>(std::max<std::int64_t>(1, levels.front().matrix.nonzeros()));
}

template <class T>
Hierarchy make_hierarchy(const CsrView<T>& a, std::span<const std::int32_t> owner,
                         std::span<const std::int32_t> order, const Options& options) {
  Hierarchy h;
  Level& first = h.levels.emplace_back();
  first.matrix = copy_of(a);
  first.owner.assign(owner.begin(), owner.end());
  h.scale = inverse_roots(first.matrix);
  scale_both_sides(first.matrix, h.scale);
  std::vector<double> constant = reciprocals(h.scale);
  double theta = options.theta;
  // Level 0 is never inverted: its rows are numbered as those of A are.
  while (h.why.empty() &&
         (h.levels.size() == 1 || h.levels.back().matrix.rows() > options.coarsest)) {
    h.why = coarsen(h, constant, theta, h.levels.size() == 1 ? order : NaturalOrder(), options);
    theta *= 0.5;
  }
  const Level& last = h.levels.back();
  if (h.levels.size() > 1 && last.matrix.rows() <= options.coarsest)
    h.inverse = dense_inverse(last.matrix);
  if (h.inverse.empty()) h.levels.back().lambda = largest_eigenvalue(h.levels.back().matrix);
  return h;
}

template Hierarchy make_hierarchy(const CsrView<float>&, std::span<const std::int32_t>,
                                  std::span<const std::int32_t>, const Options&);
template Hierarchy make_hierarchy(const CsrView<double>&, std::span<const std::int32_t>,
                                  std::span<const std::int32_t>, const Options&);

}  // namespace cpufree::multigrid
