#include "cpufree/multigrid/gpu/hierarchy.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "cpufree/multigrid/host/multigrid_layout.hpp"

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
  Setup(HierarchyOnGpu& h, int device, double bytes, const multigrid::Options& options,
        LapTimer* timer)
      : h_(h),
        options_(options),
        timer_(timer),
        steps_(device, bytes),
        products_(device),
        theta_(options.theta) {
    if (!h_.kept) h_.kept = std::make_unique<Scratch>(device, 2.0 * bytes);
  }

  template <class T>
  void begin(const GivenRows<T>& a, const std::vector<std::int32_t>& owner,
             const std::vector<std::int32_t>& order) {
    LevelOnGpu& first = h_.levels.emplace_back();
    if (!owner.empty()) first.owner = {steps_.stream(), owner};
    if (!order.empty()) order_ = {steps_.stream(), order};
    first.matrix.rows = a.rows;
    first.matrix.nonzeros = a.nonzeros;
    first.matrix.columns = static_cast<std::int32_t>(a.rows);
    first.matrix.val = h_.kept->array<double>(a.nonzeros);
    take(a);
  }
  // Level 0 of values that lie here.
  template <class T>
  void take(const GivenRows<T>& a) {
    LevelOnGpu& first = h_.levels.front();
    first.matrix.ptr = DeviceArray<std::int64_t>::borrow(a.ptr, at(a.rows) + 1);
    first.matrix.col = DeviceArray<std::int32_t>::borrow(a.col, at(a.nonzeros));
    scale(first, values_of(a.val));
    lap("multigrid");
  }

  // Coarsens the last level. Returns why that is not worth while; "": there is another level.
  std::string coarsen() {
    const auto mark = steps_.scratch().mark();
    std::string why = try_to_coarsen();
    steps_.scratch().release(mark);
    return why;
  }
  // The same as it has been done for another matrix.
  void repeat() {
    for (std::size_t l = 0; l + 1 < h_.levels.size(); ++l) {
      const auto mark = steps_.scratch().mark();
      add_numbers(h_.levels[l], h_.levels[l + 1].matrix, kAny, kAny);
      scale_next(h_.levels[l], h_.levels[l + 1]);
      steps_.scratch().release(mark);
    }
  }
  void solve_last() {
    LevelOnGpu& last = fine();
    // Level 0 is never inverted: its rows are numbered as those of A are.
    if (h_.levels.size() > 1 && last.matrix.rows <= options_.coarsest)
      steps_.invert(last.matrix, last.constant.data(), *h_.kept, h_.inverse);
    else
      last.lambda = steps_.largest_eigenvalue(last.matrix);
    steps_.stream().wait("the coarsest level of multigrid");
    lap("multigrid_coarsest");
  }

 private:
  // Of what has been queued since the lap before.
  void lap(const char* name) const {
    if (timer_ == nullptr) return;
    steps_.stream().wait(name);
    timer_->lap(name);
  }
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
  void scale(LevelOnGpu& level, setup::Values from) {
    MatrixOnGpu& a = level.matrix;
    for (auto* array : {&level.roots, &level.constant, &level.threshold})
      if (array->size() == 0) *array = h_.kept->array<double>(a.rows);
    double* const roots = level.roots.data();
    steps_.launch(setup::InvertRoots{a.rows, a.ptr.data(), a.col.data(), from, roots}, a.rows);
    steps_.launch(setup::ScaleRows{a.rows, a.ptr.data(), a.col.data(), from, roots, theta_,
                                   a.val.data(), level.threshold.data()},
                  a.rows);
    steps_.launch(setup::InvertScale{a.rows, roots, level.constant.data()}, a.rows);
  }

  std::string try_to_coarsen() {
    LevelOnGpu& from = fine();
    from.strong = steps_.find_strong(from.matrix, owners(), from.threshold.data(), *h_.kept);
    lap("multigrid_strength");
    AggregatesOnGpu made = steps_.aggregate(from.matrix, from.strong, owners(), order(), *h_.kept);
    lap("multigrid_aggregates");
    theta_ *= 0.5;
    if (made.count == 0) return "no row has a strong coupling to another one";
    if (static_cast<double>(made.covered) < options_.least_ratio * made.count)
      return "coarsening stalls: " + std::to_string(made.covered) + " rows make " +
             std::to_string(made.count) + " unknowns";
    LevelOnGpu coarse;
    coarse.owner = std::move(made.owner);
    from.aggregates = std::move(made);
    const double nonzeros = static_cast<double>(h_.levels.front().matrix.nonzeros);
    const double room = (options_.most_complexity - complexity()) * nonzeros;
    if (!add_numbers(from, coarse.matrix, multigrid::kMostMultiplications * nonzeros, room)) {
      from.prolongator = {}, from.restriction = {};
      return "coarser levels would be dense";
    }
    scale_next(from, coarse);
    if (!whole() && coarse.matrix.rows <= options_.gathered && several(coarse.owner))
      h_.gathered = h_.levels.size();
    h_.levels.push_back(std::move(coarse));
    return {};
  }

  // The largest eigenvalue, the prolongator, its transpose and R A P, of which patterns are found
  // where they are not known. False: R A P takes more multiplications or has more nonzeros than it
  // may.
  bool add_numbers(LevelOnGpu& level, ProductOnGpu& product, double most, double room) {
    level.lambda = steps_.largest_eigenvalue(level.matrix);
    const setup::Factors smoothing = factors_of_prolongator(level);
    lap("multigrid_eigenvalues");
    multiply(smoothing, level.matrix, level.aggregates.count, kAny, kAny, *h_.kept,
             level.prolongator);
    steps_.transpose(level.prolongator, *h_.kept, level.restriction);
    setup::Factors of;
    of.a = level.matrix.view(), of.b = level.prolongator.view();
    ProductOnGpu& first = level.matrix_by_coarse;
    const auto mark = products_.mark();
    bool made =
        multiply(of, level.prolongator, level.prolongator.columns, most, kAny, products_, first);
    of.a = level.restriction.view(), of.b = first.view();
    made = made && multiply(of, first, level.prolongator.columns, most, room, *h_.kept, product);
    first.col = {}, first.val = {};
    products_.release(mark);
    lap("multigrid_products");
    return made;
  }
  // `rows`: the matrix whose rows are added up.
  bool multiply(const setup::Factors& of, const MatrixOnGpu& rows, std::int32_t columns,
                double most, double room, Scratch& memory, ProductOnGpu& product) {
    if (product.ptr.size() == 0) {
      const int lanes = lanes_of_rows(rows.rows, rows.nonzeros);
      if (!steps_.plan(of, lanes, columns, most, room, *h_.kept, product)) return false;
    }
    steps_.multiply(of, memory, product);
    return true;
  }
  setup::Factors factors_of_prolongator(const LevelOnGpu& level) {
    const MatrixOnGpu& a = level.matrix;
    const StrongOnGpu& strong = level.strong;
    auto* const diagonal = steps_.scratch().take<double>(a.rows);
    auto* const root = steps_.scratch().take<double>(a.rows);
    steps_.launch(
        setup::FilterDiagonal{a.view(), strong.bits, level.constant.data(), diagonal, root},
        a.rows);
    // Without weak entries the filtered matrix is the matrix.
    const double lambda =
        strong.some_weak ? steps_.largest_eigenvalue(a, strong.bits, root) : level.lambda;
    setup::Factors of;
    of.a = a.view();
    of.aggregate = level.aggregates.of_row;
    of.constant = level.constant.data();
    of.strong = strong.bits;
    of.diagonal = diagonal;
    of.omega = 4.0 / (3.0 * lambda);
    return of;
  }
  void scale_next(LevelOnGpu& level, LevelOnGpu& next) {
    scale(next, values_of(next.matrix.val.data()));
    const MatrixOnGpu &p = level.prolongator, &r = level.restriction;
    steps_.launch(setup::ScaleColumns{p.nonzeros, p.col.data(), p.val.data(), next.roots.data()},
                  p.nonzeros);
    steps_.launch(setup::ScaleEachRow{r.view(), next.roots.data()}, r.rows);
  }
  static bool several(const DeviceArray<std::int32_t>& owner) {
    if (owner.size() == 0) return false;
    const auto all = owner.download();
    return std::ranges::adjacent_find(all, std::ranges::not_equal_to()) != all.end();
  }

  static constexpr double kAny = std::numeric_limits<double>::infinity();
  HierarchyOnGpu& h_;
  const multigrid::Options& options_;
  LapTimer* timer_;
  SetupSteps steps_;
  Scratch products_;  // A P
  DeviceArray<std::int32_t> order_;
  double theta_;
};

}  // namespace

std::vector<LevelReport> report_of(const HierarchyOnGpu& hierarchy) {
  std::vector<LevelReport> reports;
  for (const LevelOnGpu& level : hierarchy.levels)
    reports.push_back({level.matrix.rows, level.matrix.nonzeros, level.prolongator.nonzeros});
  reports.back().inverted = hierarchy.inverse.rows > 0;
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
  made.scale = scale().download();
  made.gathered = gathered;
  made.inverse = inverse.val.download();
  made.why = why;
  return made;
}

template <class T>
std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(int device, const GivenRows<T>& a,
                                                    const std::vector<std::int32_t>& owner,
                                                    const std::vector<std::int32_t>& order,
                                                    const multigrid::Options& options,
                                                    LapTimer* timer) {
  const gpu::OnDevice here(device);
  HierarchyOnGpu h;
  Setup making(h, device, 12.0 * static_cast<double>(a.nonzeros), options, timer);
  try {
    making.begin(a, owner, order);
    while (h.why.empty() &&
           (h.levels.size() == 1 || h.levels.back().matrix.rows > options.coarsest))
      h.why = making.coarsen();
    making.solve_last();
  } catch (const RowTooLong&) {
    return std::nullopt;
  } catch (const OutOfMemory&) {
    // Products on the way may be far larger than the levels, as where coarse ones would be dense:
    // the host has room for them, and says what the levels take.
    return std::nullopt;
  }
  return h;
}

template <class T>
GatheredRows<T> gather_rows(const std::vector<GpuRows<T>>& rows) {
  const int device = rows.front().device();
  const gpu::OnDevice here(device);
  const gpu::Stream stream(device);
  std::int64_t n = 0, nonzeros = 0;
  for (const GpuRows<T>& mine : rows) n += mine.rows, nonzeros += mine.nnz;
  GatheredRows<T> all{device, DeviceArray<std::int64_t>::uninitialised(device, at(n) + 1),
                      DeviceArray<std::int32_t>::uninitialised(device, at(nonzeros)),
                      DeviceArray<T>::uninitialised(device, at(nonzeros))};
  std::int64_t before = 0;
  for (const GpuRows<T>& mine : rows) {
    const auto bring = [&](auto* to, const auto* from, std::int64_t count) {
      gpu::copy_across(to, device, from, mine.device(), at(count) * sizeof(*to), stream,
                       " of the matrix");
    };
    std::int64_t* const ptr = all.ptr.data() + mine.first;
    const std::int64_t begins = mine.rows + std::int64_t{1};
    bring(ptr, mine.ptr.data(), begins);
    launch_layout(setup::ShiftBegins{begins, ptr, before}, begins, stream);
    bring(all.col.data() + before, mine.col.data(), mine.nnz);
    bring(all.val.data() + before, mine.val.data(), mine.nnz);
    before += mine.nnz;
  }
  stream.wait("rows of other GPUs");
  return all;
}

template <class T>
std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(const GatheredRows<T>& a,
                                                    const GpuLayouts<T>& numbered, int pes,
                                                    const multigrid::Options& options,
                                                    LapTimer* timer) {
  std::vector<std::int32_t> owner, order;
  for (int k = 0; k < pes; ++k) {
    const GpuRows<T>& mine = numbered.rows(at(k));
    const auto names = fetch(mine.stream, mine.names(), at(mine.rows));
    order.insert(order.end(), names.begin(), names.end());
    owner.insert(owner.end(), names.size(), k);
  }
  const auto n = static_cast<std::int64_t>(owner.size());
  const auto nonzeros = static_cast<std::int64_t>(a.col.size());
  return make_hierarchy_on_gpu<T>(a.device, {n, nonzeros, a.ptr.data(), a.col.data(), a.val.data()},
                                  owner, order, options, timer);
}

template <class T>
void remake_hierarchy_on_gpu(int device, const GivenRows<T>& a, const multigrid::Options& options,
                             HierarchyOnGpu& hierarchy, LapTimer* timer) {
  const gpu::OnDevice here(device);
  Setup making(hierarchy, device, 12.0 * static_cast<double>(a.nonzeros), options, timer);
  making.take(a);
  making.repeat();
  making.solve_last();
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

#define CPUFREE_HIERARCHY_ON_GPU(T)                                                             \
  template std::optional<multigrid::Hierarchy> hierarchy_by_gpu(                                \
      const GpuPlace&, const CsrView<T>&, const HaloPlan<T>&, const multigrid::Options&);       \
  template std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(                                 \
      int, const GivenRows<T>&, const std::vector<std::int32_t>&,                               \
      const std::vector<std::int32_t>&, const multigrid::Options&, LapTimer*);                  \
  template GatheredRows<T> gather_rows(const std::vector<GpuRows<T>>&);                         \
  template std::optional<HierarchyOnGpu> make_hierarchy_on_gpu(                                 \
      const GatheredRows<T>&, const GpuLayouts<T>&, int, const multigrid::Options&, LapTimer*); \
  template void remake_hierarchy_on_gpu(int, const GivenRows<T>&, const multigrid::Options&,    \
                                        HierarchyOnGpu&, LapTimer*);
CPUFREE_HIERARCHY_ON_GPU(float)
CPUFREE_HIERARCHY_ON_GPU(double)

}  // namespace cpufree
