#include "cpufree/multigrid/gpu/hierarchy.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "cpufree/multigrid/host/multigrid_layout.hpp"
#include "cpufree/multigrid/transfer.hpp"

namespace cpufree {

namespace {

namespace setup = multigrid::setup;
using gpu::DeviceArray;

multigrid::SparseMatrix fetched(const MatrixOnGpu& a) {
  multigrid::SparseMatrix made;
  made.columns = a.columns;
  const auto bring = [](auto& to, const auto& from) {
    to.resize(from.size());
    gpu::copy_to_host(to.data(), from.data(), from.size() * sizeof(to[0]));
  };
  bring(made.row_ptr, a.ptr), bring(made.col, a.col), bring(made.val, a.val);
  return made;
}

class Setup {
 public:
  // `bytes`: of the matrix.
  Setup(HierarchyOnGpu& h, int device, double bytes, const multigrid::Options& options)
      : h_(h),
        options_(options),
        steps_(device, bytes),
        products_(device, bytes),
        theta_(options.theta) {
    h_.kept = std::make_unique<Scratch>(device, 2.0 * bytes);
  }

  template <class T>
  void begin(const GivenRows<T>& a, const std::vector<std::int32_t>& owner,
             const std::vector<std::int32_t>& order) {
    LevelOnGpu& first = h_.levels.emplace_back();
    if (!owner.empty()) first.owner = {steps_.stream(), owner};
    if (!order.empty()) order_ = {steps_.stream(), order};
    MatrixOnGpu& made = first.matrix;
    made.rows = a.rows;
    made.nonzeros = a.nonzeros;
    made.columns = static_cast<std::int32_t>(a.rows);
    made.ptr = DeviceArray<std::int64_t>::borrow(a.ptr, at(a.rows) + 1);
    made.col = DeviceArray<std::int32_t>::borrow(a.col, at(a.nonzeros));
    made.val = h_.kept->array<double>(a.nonzeros);
    scale(made, values_of(a.val));
    h_.scale = std::move(roots_);
  }

  // Coarsens the last level. Returns why that is not worth while; "": there is another level.
  std::string coarsen() {
    const auto mark = steps_.scratch().mark();
    std::string why = try_to_coarsen();
    steps_.scratch().release(mark);
    return why;
  }
  void solve_last() {
    LevelOnGpu& last = fine();
    // Level 0 is never inverted: its rows are numbered as those of A are.
    if (h_.levels.size() > 1 && last.matrix.rows <= options_.coarsest) {
      multigrid::NearNullSpace near;
      const auto constant = fetch(steps_.stream(), constant_.data(), at(last.matrix.rows));
      near.vectors.assign(constant.begin(), constant.end());
      h_.inverse = multigrid::dense_inverse(fetched(last.matrix), near);
    }
    if (h_.inverse.empty()) last.lambda = steps_.largest_eigenvalue(last.matrix);
    steps_.stream().wait();
  }

 private:
  LevelOnGpu& fine() { return h_.levels.back(); }
  bool whole() const { return h_.gathered > 0 && h_.levels.size() > h_.gathered; }
  const std::int32_t* owners() {
    return whole() || fine().owner.size() == 0 ? nullptr : fine().owner.data();
  }
  const std::int32_t* order() const {
    return h_.levels.size() > 1 || order_.size() == 0 ? nullptr : order_.data();
  }
  double complexity() const {
    double sum = 0.0;
    for (const LevelOnGpu& level : h_.levels) sum += static_cast<double>(level.matrix.nonzeros);
    return sum / static_cast<double>(std::max<std::int64_t>(1, h_.levels.front().matrix.nonzeros));
  }

  // Scales a matrix to a diagonal of ones. The constant, scaled, is what the next level represents.
  void scale(MatrixOnGpu& a, setup::Values from) {
    roots_ = h_.kept->array<double>(a.rows);
    constant_ = h_.kept->array<double>(a.rows);
    threshold_ = h_.kept->array<double>(a.rows);
    steps_.launch(setup::InvertRoots{a.rows, a.ptr.data(), a.col.data(), from, roots_.data()},
                  a.rows);
    steps_.launch(setup::ScaleRows{a.rows, a.ptr.data(), a.col.data(), from, roots_.data(), theta_,
                                   a.val.data(), threshold_.data()},
                  a.rows);
    steps_.launch(setup::InvertScale{a.rows, roots_.data(), constant_.data()}, a.rows);
  }

  std::string try_to_coarsen() {
    const MatrixOnGpu& a = fine().matrix;
    const StrongOnGpu strong = steps_.find_strong(a, owners(), threshold_.data());
    AggregatesOnGpu made = steps_.aggregate(a, strong, owners(), order(), *h_.kept);
    theta_ *= 0.5;
    if (made.count == 0) return "no row has a strong coupling to another one";
    if (static_cast<double>(made.covered) < options_.least_ratio * made.count)
      return "coarsening stalls: " + std::to_string(made.covered) + " rows make " +
             std::to_string(made.count) + " unknowns";
    const double nonzeros = static_cast<double>(h_.levels.front().matrix.nonzeros);
    const double room = (options_.most_complexity - complexity()) * nonzeros;
    if (!add_level(strong, made, multigrid::kMostMultiplications * nonzeros, room))
      return "coarser levels would be dense";
    return {};
  }

  MatrixOnGpu prolongator(const StrongOnGpu& strong, const AggregatesOnGpu& made) {
    const MatrixOnGpu& a = fine().matrix;
    auto* const diagonal = steps_.scratch().take<double>(a.rows);
    auto* const root = steps_.scratch().take<double>(a.rows);
    steps_.launch(setup::FilterDiagonal{a.view(), strong.bits, constant_.data(), diagonal, root},
                  a.rows);
    // Without weak entries the filtered matrix is the matrix.
    const double lambda =
        strong.some_weak ? steps_.largest_eigenvalue(a, strong.bits, root) : fine().lambda;
    setup::Factors of;
    of.a = a.view();
    of.aggregate = made.of_row;
    of.constant = constant_.data();
    of.strong = strong.bits;
    of.diagonal = diagonal;
    of.omega = 4.0 / (3.0 * lambda);
    return *steps_.multiply(of, made.count, kAny, kAny, *h_.kept);
  }
  // R A P, R the transpose of P.
  std::optional<MatrixOnGpu> galerkin_product(const MatrixOnGpu& a, const MatrixOnGpu& p,
                                              const MatrixOnGpu& r, double most, double room) {
    setup::Factors of;
    of.a = a.view(), of.b = p.view();
    const auto mark = products_.mark();
    const auto ap = steps_.multiply(of, p.columns, most, kAny, products_);
    if (!ap) return std::nullopt;
    of.a = r.view(), of.b = ap->view();
    auto product = steps_.multiply(of, p.columns, most, room, *h_.kept);
    products_.release(mark);
    return product;
  }

  // False: the product takes more multiplications or has more nonzeros than it may.
  bool add_level(const StrongOnGpu& strong, AggregatesOnGpu& made, double most, double room) {
    fine().lambda = steps_.largest_eigenvalue(fine().matrix);
    MatrixOnGpu p = prolongator(strong, made);
    MatrixOnGpu r = steps_.transpose(p, *h_.kept);
    auto product = galerkin_product(fine().matrix, p, r, most, room);
    if (!product) return false;
    LevelOnGpu coarse;
    coarse.matrix = *std::move(product);
    scale(coarse.matrix, values_of(coarse.matrix.val.data()));
    steps_.launch(setup::ScaleColumns{p.nonzeros, p.col.data(), p.val.data(), roots_.data()},
                  p.nonzeros);
    steps_.launch(setup::ScaleEachRow{r.view(), roots_.data()}, r.rows);
    coarse.owner = std::move(made.owner);
    fine().prolongator = std::move(p);
    fine().restriction = std::move(r);
    if (!whole() && coarse.matrix.rows <= options_.gathered && several(coarse.owner))
      h_.gathered = h_.levels.size();
    h_.levels.push_back(std::move(coarse));
    return true;
  }
  static bool several(const DeviceArray<std::int32_t>& owner) {
    if (owner.size() == 0) return false;
    const auto all = owner.download();
    return std::ranges::adjacent_find(all, std::ranges::not_equal_to()) != all.end();
  }

  static constexpr double kAny = std::numeric_limits<double>::infinity();
  HierarchyOnGpu& h_;
  const multigrid::Options& options_;
  SetupSteps steps_;
  Scratch products_;  // A P
  DeviceArray<std::int32_t> order_;
  DeviceArray<double> roots_, constant_, threshold_;  // of the last level
  double theta_;
};

}  // namespace

std::vector<LevelReport> report_of(const HierarchyOnGpu& hierarchy) {
  std::vector<LevelReport> reports;
  for (const LevelOnGpu& level : hierarchy.levels)
    reports.push_back({level.matrix.rows, level.matrix.nonzeros, level.prolongator.nonzeros});
  reports.back().inverted = !hierarchy.inverse.empty();
  return reports;
}

multigrid::Hierarchy HierarchyOnGpu::download() const {
  multigrid::Hierarchy made;
  for (const LevelOnGpu& level : levels) {
    multigrid::Level& to = made.levels.emplace_back();
    to.matrix = fetched(level.matrix);
    if (&level != &levels.back()) to.prolongator = fetched(level.prolongator);
    to.owner = level.owner.download();
    if (to.owner.empty()) to.owner.assign(at(level.matrix.rows), 0);
    to.lambda = level.lambda;
  }
  made.scale = scale.download();
  made.gathered = gathered;
  made.inverse = inverse;
  made.why = why;
  return made;
}

template <class T>
std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(int device, const GivenRows<T>& a,
                                                    const std::vector<std::int32_t>& owner,
                                                    const std::vector<std::int32_t>& order,
                                                    const multigrid::Options& options) {
  const gpu::OnDevice here(device);
  HierarchyOnGpu h;
  Setup making(h, device, 12.0 * static_cast<double>(a.nonzeros), options);
  try {
    making.begin(a, owner, order);
    while (h.why.empty() &&
           (h.levels.size() == 1 || h.levels.back().matrix.rows > options.coarsest))
      h.why = making.coarsen();
    making.solve_last();
  } catch (const RowTooLong&) {
    return std::nullopt;
  }
  return h;
}

bool gpu_makes_hierarchy(const GpuPlace& place, std::int64_t nonzeros) {
  // Below, the host has made it before so many kernels have been started one after the other.
  constexpr std::int64_t kLeast = 100'000;
  const SystemSpec& spec = place.spec;
  return spec.factors.multigrid() && place.team() == nullptr && !spec.factors.near &&
         !spec.factors.prolongators && (spec.layout > 0 || (spec.layout < 0 && nonzeros >= kLeast));
}

template <class T>
std::optional<multigrid::Hierarchy> hierarchy_by_gpu(const GpuPlace& place,
                                                     const CsrView<T>& matrix,
                                                     const HaloPlan<T>& plan,
                                                     const multigrid::Options& options) {
  std::vector<std::int32_t> owner, order;
  list_rows(plan, owner, order);
  const std::vector<int> first{place.devices.front()};
  try {
    const auto rows =
        send_rows(GivenCsr<T>::of(matrix), std::vector<std::int64_t>{0, matrix.n}, first);
    const GpuRows<T>& mine = rows.front();
    const auto made = make_hierarchy_on_gpu<T>(
        mine.device(), {mine.rows, mine.nnz, mine.ptr.data(), mine.col.data(), mine.val.data()},
        owner, order, options);
    if (made) return made->download();
  } catch (const OutOfMemory&) {
  }
  return std::nullopt;
}

template std::optional<multigrid::Hierarchy> hierarchy_by_gpu(const GpuPlace&,
                                                              const CsrView<float>&,
                                                              const HaloPlan<float>&,
                                                              const multigrid::Options&);
template std::optional<multigrid::Hierarchy> hierarchy_by_gpu(const GpuPlace&,
                                                              const CsrView<double>&,
                                                              const HaloPlan<double>&,
                                                              const multigrid::Options&);
template std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(int, const GivenRows<float>&,
                                                             const std::vector<std::int32_t>&,
                                                             const std::vector<std::int32_t>&,
                                                             const multigrid::Options&);
template std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(int, const GivenRows<double>&,
                                                             const std::vector<std::int32_t>&,
                                                             const std::vector<std::int32_t>&,
                                                             const multigrid::Options&);

}  // namespace cpufree
