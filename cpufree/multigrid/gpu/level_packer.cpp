#include "cpufree/multigrid/gpu/level_packer.hpp"

#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/multigrid/host/multigrid_layout.hpp"

namespace cpufree {

namespace {
namespace setup = multigrid::setup;
using gpu::DeviceArray;

}  // namespace

template <class T>
LevelOrder LevelPacker::order_of(const GpuRows<T>& a) {
  LevelOrder order;
  if (a.names() == nullptr) return order;
  order.row = kept_.array<std::int32_t>(a.rows);
  order.number = kept_.array<std::int32_t>(a.rows);
  gpu::copy(order.row.data(), a.names(), at(a.rows) * sizeof(std::int32_t), steps_.stream());
  steps_.launch(setup::InvertList{a.names(), a.rows, order.number.data()}, a.rows);
  return order;
}

LevelOrder LevelPacker::order_of(const MatrixOnGpu& matrix, const MatrixOnGpu& restriction) {
  LevelOrder order{kept_.array<std::int32_t>(matrix.rows), kept_.array<std::int32_t>(matrix.rows)};
  steps_.launch(setup::OrderByLength{matrix.rows, kLevelWindow, matrix.ptr.data(),
                                     restriction.ptr.data(), order.row.data(), order.number.data()},
                matrix.rows);
  return order;
}

template <class T>
GpuRows<float> LevelPacker::placed_first(const GpuRows<T>& a, const std::int32_t* names,
                                         const double* scale) {
  auto* const scaled = steps_.scratch().take<double>(a.nnz);
  steps_.launch(setup::ScaleNamedRows{a.rows, a.ptr.data(), a.col.data(), values_of(a.val.data()),
                                      names, scale, scaled},
                a.rows);
  return placed({{a.rows, a.ptr.data(), a.col.data(), scaled}, a.nnz, a.columns});
}

template <class T>
void LevelPacker::pack_first(const GpuRows<T>& a, const double* scale, const PeLayout& of_a,
                             PackedOnGpu to) {
  const auto mark = steps_.scratch().mark();
  Plans plans = plans_of(of_a);
  std::vector<Plans> of_pes{std::move(plans)};
  for (BlockPlan& plan : of_pes.front()) plan.await_local.clear();
  HaloPlan<T> alone;
  alone.local.emplace_back();
  await_everybody(alone, of_pes, static_cast<std::int32_t>(of_pes.front().size()));
  pack(placed_first(a, a.names(), scale), of_pes.front(), to);
  steps_.scratch().release(mark);
}

template <class T>
DeviceArray<T> LevelPacker::private_scale(const GpuRows<T>& a, const PeLayout& of_a,
                                          const double* scale) {
  std::vector<layout::PrivateRange> ranges;
  for (const ShareLayout& share : of_a.shares)
    ranges.push_back({share.first_private, share.plan.boundary, share.plan.interior});
  const DeviceArray<layout::PrivateRange> there{steps_.stream(), ranges};
  auto made = DeviceArray<T>::uninitialised(device_, at(of_a.private_rows));
  setup::PlaceScale kernel;
  kernel.ranges = there.data();
  kernel.blocks = static_cast<int>(ranges.size());
  kernel.count = of_a.private_rows;
  kernel.name = a.names();
  kernel.scale = scale;
  if constexpr (sizeof(T) == sizeof(double))
    kernel.wide = made.data();
  else
    kernel.narrow = made.data();
  steps_.launch(kernel, kernel.count);
  steps_.stream().wait("what scales the vectors of multigrid");
  return made;
}

void LevelPacker::pack(const MatrixOnGpu& matrix, const LevelOrder& rows, const LevelOrder& columns,
                       const Plans& plans, PackedOnGpu to) {
  const auto mark = steps_.scratch().mark();
  const auto numbers = [](const DeviceArray<std::int32_t>& of) {
    return of.size() == 0 ? nullptr : of.data();
  };
  pack(placed({matrix.view(), matrix.nonzeros, matrix.columns, numbers(rows.row),
               numbers(columns.number)}),
       plans, to);
  steps_.scratch().release(mark);
}

GpuRows<float> LevelPacker::placed(const Given& given) {
  const setup::Rows& from = given.rows;
  const std::int64_t count = from.count;
  GpuRows<float> mine(device_);
  mine.rows = mine.interior = static_cast<std::int32_t>(count);
  mine.nnz = given.nonzeros;
  mine.columns = given.columns;
  mine.ptr = steps_.scratch().array<std::int64_t>(count + 1);
  mine.col = steps_.scratch().array<std::int32_t>(given.nonzeros);
  mine.val = steps_.scratch().array<float>(given.nonzeros);
  if (given.list == nullptr) {
    gpu::copy(mine.ptr.data(), from.ptr, mine.ptr.size() * sizeof(std::int64_t), steps_.stream());
  } else {
    auto* const length = steps_.scratch().take<std::int32_t>(count);
    steps_.launch(setup::LengthsOf{from.ptr, given.list, count, length, given.first}, count);
    steps_.scan(length, count, mine.ptr.data());
  }
  setup::PlaceRowsInSingle place;
  place.from = from;
  place.count = count;
  place.list = given.list;
  place.number = given.number;
  place.first = given.first;
  place.ptr = mine.ptr.data();
  place.col = mine.col.data();
  place.val = mine.val.data();
  place.missing = steps_.zeros<std::uint32_t>(1);
  place.row_lanes = lanes_of_rows(count, given.nonzeros);
  steps_.launch(place, count * place.row_lanes);
  // The host waits: these rows have a stream of their own.
  if (steps_.one(place.missing) != 0)
    throw EngineError("a level of multigrid reads a row that no PE sends");
  return mine;
}

void LevelPacker::pack(GpuRows<float> rows, const Plans& plans, PackedOnGpu to) {
  std::vector<GpuRows<float>> all;
  all.push_back(std::move(rows));
  GpuLayouts<float> layouts(std::move(all));
  if (to.layout.shares.empty()) {
    HaloPlan<float> alone;
    alone.local.emplace_back();
    std::vector<Plans> of_pes{plans};
    if (plans.empty()) of_pes = layouts.block_plans(alone, blocks_, Awaited::everybody);
    to.layout = std::move(layouts.lay_out(std::move(of_pes), options_of_levels(threads_)).front());
  }
  fill_slices(layouts, 0, to.layout, to.slices);
}

#define CPUFREE_LEVEL_PACKER(T)                                                             \
  template LevelOrder LevelPacker::order_of(const GpuRows<T>&);                             \
  template GpuRows<float> LevelPacker::placed_first(const GpuRows<T>&, const std::int32_t*, \
                                                    const double*);                         \
  template void LevelPacker::pack_first(const GpuRows<T>&, const double*, const PeLayout&,  \
                                        PackedOnGpu);                                       \
  template DeviceArray<T> LevelPacker::private_scale(const GpuRows<T>&, const PeLayout&,    \
                                                     const double*);
CPUFREE_LEVEL_PACKER(float)
CPUFREE_LEVEL_PACKER(double)

}  // namespace cpufree
