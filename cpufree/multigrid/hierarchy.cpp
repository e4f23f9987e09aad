#include "cpufree/multigrid/hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "cpufree/multigrid/galerkin.hpp"
#include "cpufree/multigrid/nodes.hpp"
#include "cpufree/multigrid/transfer.hpp"

namespace cpufree::multigrid {

namespace {

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

// Vectors of unknowns that are 1 / s times the ones before.
void scale_vectors(NearNullSpace& near, const std::vector<double>& s) {
  const std::size_t modes = at(near.modes);
  for (std::size_t i = 0; i < s.size(); ++i)
    for (std::size_t m = 0; m < modes; ++m) near.vectors[i * modes + m] /= s[i];
}

// The first vector, which the filtered matrix keeps.
PageVector<double> first_of(const NearNullSpace& near) {
  if (near.modes == 1) return near.vectors;
  PageVector<double> first(near.vectors.size() / at(near.modes));
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = near.vectors[i * at(near.modes)];
  return first;
}

bool several(const std::vector<std::int32_t>& owner) {
  return std::ranges::adjacent_find(owner, std::ranges::not_equal_to()) != owner.end();
}

// One number for each node, that of its first row, from one for each row.
std::vector<std::int32_t> of_nodes(const std::vector<std::int32_t>& of_row, const Groups& nodes) {
  std::vector<std::int32_t> result;
  for (std::int32_t n = 0; n < nodes.count(); ++n)
    result.push_back(nodes.of(n).empty() ? 0 : of_row[at(nodes.of(n).front())]);
  return result;
}

// Of `width` values for each aggregate those of its columns.
std::vector<double> of_columns(const std::vector<double>& values,
                               const std::vector<std::int32_t>& first, std::int32_t width) {
  std::vector<double> result;
  result.reserve(at(first.back()));
  for (std::size_t c = 0; c + 1 < first.size(); ++c) {
    const auto from = values.begin() + static_cast<std::int64_t>(c) * width;
    result.insert(result.end(), from, from + (first[c + 1] - first[c]));
  }
  return result;
}

// The nodes in the sequence of their rows.
std::vector<std::int32_t> order_of_nodes(std::span<const std::int32_t> order,
                                         const NearNullSpace& near) {
  std::vector<std::int32_t> result;
  std::vector<char> seen(at(near.nodes), 0);
  for (const std::int32_t row : order)
    if (std::exchange(seen[at(near.node[at(row)])], char{1}) == 0)
      result.push_back(near.node[at(row)]);
  return result;
}

class Setup {
 public:
  Setup(Hierarchy& h, const Options& options, NearNullSpace near)
      : h_(h), options_(options), near_(std::move(near)), theta_(options.theta) {
    if (!near_.node.empty()) {
      rows_ = rows_by_group(near_.node, near_.nodes);
      blocks_ = blocks_of(fine().matrix, near_.node, rows_);
    } else if (near_.modes > 1) {
      rows_ = Groups::of_single_rows(fine().matrix.rows());
    }
  }

  // Coarsens the last level. Returns why that is not worth while; "": there is another level.
  std::string coarsen(std::span<const std::int32_t> order) {
    Coarsening made = near_.node.empty() ? coarsening_of_rows(order) : coarsening_of_nodes(order);
    theta_ *= 0.5;
    if (made.aggregates.count == 0) return "no row has a strong coupling to another one";
    Tentative t = tentative(made.aggregates);
    const auto covered = std::ranges::count_if(t.of_row, [](std::int32_t c) { return c >= 0; });
    if (static_cast<double>(covered) < options_.least_ratio * t.columns())
      return "coarsening stalls: " + std::to_string(covered) + " rows make " +
             std::to_string(t.columns()) + " unknowns";
    const double nonzeros = static_cast<double>(h_.levels.front().matrix.nonzeros());
    const double room = (options_.most_complexity - h_.complexity()) * nonzeros;
    if (!add_level(made, std::move(t), kMostMultiplications * nonzeros, room))
      return "coarser levels would be dense";
    h_.coarsenings.push_back(std::move(made));
    return {};
  }
  // The same as it has been done for another matrix.
  void repeat(Coarsening made) {
    Tentative t = tentative(made.aggregates);
    constexpr double kAny = std::numeric_limits<double>::infinity();
    add_level(made, std::move(t), kAny, kAny);
    h_.coarsenings.push_back(std::move(made));
  }

  // What the last level has to represent.
  const NearNullSpace& near() const { return near_; }

 private:
  Level& fine() { return h_.levels.back(); }
  bool whole() const { return h_.is_whole(h_.levels.size() - 1); }
  std::vector<std::int32_t> owners() {
    return whole() ? std::vector<std::int32_t>(fine().owner.size(), 0) : fine().owner;
  }

  Coarsening coarsening_of_rows(std::span<const std::int32_t> order) {
    const SparseMatrix& a = fine().matrix;
    Coarsening made{Strength(a, theta_), {}, {}, {}};
    made.aggregates = aggregate(strong_graph(a, owners(), made.strong), a, order);
    return made;
  }
  Coarsening coarsening_of_nodes(std::span<const std::int32_t> order) {
    const SparseMatrix a = node_matrix(blocks_);
    const Strength strong(a, theta_);
    // Bricks have 26 neighbours: aggregates of a few nodes, with six columns each, would be many.
    const auto degree = static_cast<std::int32_t>(a.nonzeros() / std::max(1, a.rows()));
    return {{},
            aggregate(strong_graph(a, of_nodes(owners(), rows_), strong), a,
                      order_of_nodes(order, near_), std::max(kLeastLeftOver, degree / 2)),
            {},
            {}};
  }
  Tentative tentative(const Aggregates& of) {
    std::vector<std::int32_t> of_row = of.of_row;
    if (!near_.node.empty()) {
      of_row.resize(near_.node.size());
      for (std::size_t i = 0; i < of_row.size(); ++i) of_row[i] = of.of_row[at(near_.node[i])];
    }
    return tentative_prolongator(near_, std::move(of_row), of.count);
  }

  BlockMatrix prolongator(const Coarsening& made, const Tentative& t) {
    const SparseMatrix& a = fine().matrix;
    const SparsePattern* const known =
        made.prolongator.row_ptr.empty() ? nullptr : &made.prolongator;
    fine().lambda = largest_eigenvalue(a);
    if (!near_.node.empty())
      return smoothed_prolongator(blocks_.view(), made.aggregates,
                                  blocks_of(t, rows_, blocks_.height), near_.modes, fine().lambda,
                                  nullptr, {}, known);
    const auto diagonal = filtered_diagonal(a, first_of(near_), made.strong);
    // Without weak entries the filtered matrix is the matrix.
    const double filtered =
        made.strong.has_weak() ? largest_eigenvalue(a, diagonal, made.strong) : fine().lambda;
    return smoothed_prolongator(view_of(a), made.aggregates, t.values, near_.modes, filtered,
                                &made.strong, diagonal, known);
  }
  // False: the product takes more multiplications or has more nonzeros than it may.
  bool add_level(Coarsening& made, Tentative t, double multiplications, double room) {
    BlockMatrix p = prolongator(made, t);
    if (made.prolongator.row_ptr.empty()) made.prolongator = SparsePattern::of(p.entries);
    auto product = galerkin_product(near_.node.empty() ? view_of(fine().matrix) : blocks_.view(),
                                    p.view(), multiplications, made.upper);
    if (!product) return false;
    const auto roots = inverse_roots(*product);
    scale_both_sides(*product, roots);
    scale_columns(p, roots);
    Level coarse;
    Groups below = rows_by_group(t.coarse.node, made.aggregates.count);
    if (!t.coarse.node.empty()) blocks_ = *product;
    coarse.matrix = rows_of(*std::move(product), below, t.first);
    if (static_cast<double>(coarse.matrix.nonzeros()) > room) return false;
    fine().prolongator = rows_of(std::move(p), rows_, t.first);
    coarse.owner = coarse_owners(t);
    near_ = std::move(t.coarse);
    scale_vectors(near_, of_columns(roots, t.first, near_.modes));
    rows_ = std::move(below);
    if (!whole() && coarse.matrix.rows() <= options_.gathered && several(coarse.owner))
      h_.gathered = h_.levels.size();
    h_.levels.push_back(std::move(coarse));
    return true;
  }
  std::vector<std::int32_t> coarse_owners(const Tentative& t) {
    const auto owner = owners();
    std::vector<std::int32_t> of_columns(at(t.columns()), 0);
    for (std::size_t i = 0; i < owner.size(); ++i)
      if (const std::int32_t c = t.of_row[i]; c >= 0)
        for (std::int32_t q = t.first[at(c)]; q < t.first[at(c) + 1]; ++q)
          of_columns[at(q)] = owner[i];
    return of_columns;
  }

  Hierarchy& h_;
  const Options& options_;
  NearNullSpace near_;  // of the last level
  // Of the last level, where rows are not nodes.
  Groups rows_;  // of each node
  BlockMatrix blocks_;
  double theta_;
};

template <class T>
NearNullSpace begin(Hierarchy& h, const CsrView<T>& a, std::span<const std::int32_t> owner,
                    const NearNullSpace* near) {
  Level& first = h.levels.emplace_back();
  first.matrix = copy_of(a);
  first.owner.assign(owner.begin(), owner.end());
  h.scale = inverse_roots(first.matrix);
  scale_both_sides(first.matrix, h.scale);
  NearNullSpace scaled = near == nullptr ? NearNullSpace::constant(a.n) : *near;
  scale_vectors(scaled, h.scale);
  return scaled;
}

void solve_last(Hierarchy& h, const Options& options, const NearNullSpace& near = {}) {
  Level& last = h.levels.back();
  // Level 0 is never inverted: its rows are numbered as those of A are.
  if (h.levels.size() > 1 && last.matrix.rows() <= options.coarsest)
    h.inverse = dense_inverse(last.matrix, near);
  if (h.inverse.empty()) last.lambda = largest_eigenvalue(last.matrix);
}

}  // namespace

double Hierarchy::complexity() const {
  double sum = 0.0;
  for (const Level& level : levels) sum += static_cast<double>(level.matrix.nonzeros());
  return sum / static_cast<double>(std::max<std::int64_t>(1, levels.front().matrix.nonzeros()));
}

template <class T>
Hierarchy make_hierarchy(const CsrView<T>& a, std::span<const std::int32_t> owner,
                         std::span<const std::int32_t> order, const Options& options,
                         const NearNullSpace* near) {
  Hierarchy h;
  Setup setup(h, options, begin(h, a, owner, near));
  std::vector<std::int32_t> natural(at(a.n));
  std::iota(natural.begin(), natural.end(), 0);
  while (h.why.empty() &&
         (h.levels.size() == 1 || h.levels.back().matrix.rows() > options.coarsest)) {
    const std::span all(natural);
    const bool given = h.levels.size() == 1 && !order.empty();
    h.why = setup.coarsen(given ? order : all.first(at(h.levels.back().matrix.rows())));
  }
  solve_last(h, options, setup.near());
  return h;
}

template <class T>
Hierarchy remake_hierarchy(const CsrView<T>& a, std::span<const std::int32_t> owner,
                           std::vector<Coarsening> coarsenings, const Options& options,
                           const NearNullSpace* near) {
  Hierarchy h;
  Setup setup(h, options, begin(h, a, owner, near));
  for (Coarsening& made : coarsenings) setup.repeat(std::move(made));
  solve_last(h, options, setup.near());
  return h;
}

template <class T>
Hierarchy hierarchy_of_prolongators(const CsrView<T>& a, std::span<const SparseMatrix> prolongators,
                                    const Options& options) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  Hierarchy h;
  const std::vector<std::int32_t> owner(at(a.n), 0);
  begin(h, a, owner, nullptr);
  std::vector<double> scale = h.scale;
  for (const SparseMatrix& given : prolongators) {
    Level& fine = h.levels.back();
    fine.lambda = largest_eigenvalue(fine.matrix);
    BlockMatrix p{1, 1, given};
    for_rows(given.rows(), [&](std::int32_t row) {
      for (std::int64_t k = given.begin(row); k < given.end(row); ++k)
        p.entries.val[at(k)] /= scale[at(row)];
    });
    Level coarse;
    SparsePattern upper;
    coarse.matrix =
        std::move(galerkin_product(view_of(fine.matrix), p.view(), kAny, upper)->entries);
    scale = inverse_roots(coarse.matrix);
    scale_both_sides(coarse.matrix, scale);
    scale_columns(p, scale);
    fine.prolongator = std::move(p.entries);
    coarse.owner.assign(at(coarse.matrix.rows()), 0);
    h.levels.push_back(std::move(coarse));
  }
  solve_last(h, options);
  if (const auto rows = h.levels.back().matrix.rows(); rows > options.coarsest)
    h.why = "the last one that is given has " + std::to_string(rows) + " rows";
  return h;
}

#define CPUFREE_HIERARCHY(T)                                                                     \
  template Hierarchy make_hierarchy(const CsrView<T>&, std::span<const std::int32_t>,            \
                                    std::span<const std::int32_t>, const Options&,               \
                                    const NearNullSpace*);                                       \
  template Hierarchy remake_hierarchy(const CsrView<T>&, std::span<const std::int32_t>,          \
                                      std::vector<Coarsening>, const Options&,                   \
                                      const NearNullSpace*);                                     \
  template Hierarchy hierarchy_of_prolongators(const CsrView<T>&, std::span<const SparseMatrix>, \
                                               const Options&);
CPUFREE_HIERARCHY(float)
CPUFREE_HIERARCHY(double)

}  // namespace cpufree::multigrid
