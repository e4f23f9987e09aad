#include "cpufree/multigrid/gpu/setup_steps.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "cpufree/multigrid/aggregation.hpp"
#include "cpufree/multigrid/strength.hpp"

namespace cpufree {

namespace {

namespace setup = multigrid::setup;
using multigrid::Key;

// Rounds of a search for an independent set that are queued before the host looks whether rows are
// left; more than are needed do nothing.
constexpr int kRounds = 4;
// Most places of a table in far memory, and bytes of all.
constexpr std::int32_t kMostPlaces = 1 << 16;
constexpr std::int64_t kFarBytes = std::int64_t{1} << 28;

// Goes on with the rows of a list, by warps.
void take_list(setup::MultiplyRows& kernel, const gpu::DeviceArray<std::int32_t>& list) {
  kernel.count = static_cast<std::int64_t>(list.size());
  kernel.list = list.data();
  kernel.row_lanes = static_cast<int>(kTeamItems);
}

}  // namespace

void SetupSteps::scan(const std::int32_t* numbers, std::int64_t count, std::int64_t* to) {
  const auto mark = scratch_.mark();
  auto* const sums = scratch_.take<std::int64_t>(static_cast<std::int64_t>(scan_sums(count)));
  scan_numbers<double>(stream_, numbers, count, sums, to);
  scratch_.release(mark);
}

StrongOnGpu SetupSteps::find_strong(const MatrixOnGpu& a, const std::int32_t* owner,
                                    const double* threshold, Scratch& kept) {
  StrongOnGpu strong;
  auto* const bits = kept.take<std::uint8_t>(multigrid::byte_of_row(a.rows + 1, a.nonzeros));
  auto* const count = scratch_.take<std::int32_t>(a.rows);
  auto* const isolated = scratch_.take<std::int32_t>(a.rows);
  auto* const ptr = scratch_.take<std::int64_t>(a.rows + 1);
  auto* const weak = zeros<std::uint32_t>(1);
  launch(setup::FindStrong{a.view(), owner, threshold, bits, count, isolated, weak}, a.rows);
  scan(count, a.rows, ptr);
  auto* const col = scratch_.take<std::int32_t>(one(ptr + a.rows));
  strong.bits = {bits};
  strong.isolated = isolated;
  strong.graph = {a.rows, ptr, col};
  launch(setup::ListStrong{a.view(), owner, strong.bits, ptr, col}, a.rows);
  strong.some_weak = one(weak) != 0;
  return strong;
}

void SetupSteps::find_set(const StrongOnGpu& strong, bool first, std::int32_t* root_of, Key* own,
                          std::int32_t* candidate) {
  const std::int64_t rows = strong.graph.rows;
  const auto mark = scratch_.mark();
  auto* const near = scratch_.take<Key>(rows);
  auto* const left = scratch_.take<std::uint32_t>(1);
  launch(setup::BeginSet{rows, first, strong.isolated, root_of, own, near, candidate}, rows);
  do {
    for (int round = 0; round < kRounds; ++round) {
      gpu::clear(left, sizeof(*left), stream_);
      launch(setup::SpreadKeys{strong.graph, candidate, own, near}, rows);
      launch(setup::DecideKeys{strong.graph, near, own, left}, summing_threads(rows));
    }
  } while (one(left) != 0);
  scratch_.release(mark);
}

AggregatesOnGpu SetupSteps::aggregate(const MatrixOnGpu& a, const StrongOnGpu& strong,
                                      const std::int32_t* owner, const std::int32_t* order,
                                      Scratch& kept) {
  const std::int64_t rows = a.rows;
  AggregatesOnGpu made;
  auto* const of_row = kept.take<std::int32_t>(rows);
  auto* const covered = zeros<std::uint32_t>(1);
  const auto mark = scratch_.mark();
  auto* const root_of = scratch_.take<std::int32_t>(rows);
  auto* const joined = scratch_.take<std::int32_t>(rows);
  auto* const candidate = scratch_.take<std::int32_t>(rows);
  auto* const own = scratch_.take<Key>(rows);
  for (const std::int32_t least : {0, multigrid::kLeastLeftOver}) {
    find_set(strong, least == 0, root_of, own, candidate);
    launch(setup::JoinRoots{strong.graph, candidate, own, least, root_of}, rows);
  }
  launch(setup::JoinStrongest{a.view(), owner, strong.bits, strong.isolated, root_of, joined},
         rows);
  auto* const mark_of = candidate;
  launch(setup::MarkRoots{rows, order, joined, mark_of}, rows);
  auto* const before = scratch_.take<std::int64_t>(rows + 1);
  scan(mark_of, rows, before);
  made.count = static_cast<std::int32_t>(one(before + rows));
  if (owner != nullptr) made.owner = kept.array<std::int32_t>(made.count);
  auto* const number = root_of;  // which is no longer needed
  launch(setup::NumberRoots{rows, order, mark_of, before, owner, number, made.owner.data()}, rows);
  launch(setup::NumberAggregates{rows, joined, number, of_row, covered}, summing_threads(rows));
  made.covered = one(covered);
  made.of_row = of_row;
  scratch_.release(mark);
  return made;
}

double SetupSteps::largest_eigenvalue(const MatrixOnGpu& a, setup::Bits strong,
                                      const double* root) {
  constexpr int kSteps = multigrid::kLanczosSteps;
  const auto mark = scratch_.mark();
  auto* const v = scratch_.take<double>(a.rows);
  auto* const before = scratch_.take<double>(a.rows);
  auto* const w = scratch_.take<double>(a.rows);
  constexpr std::int64_t kSums = 2 * kSteps + 1;
  auto* const sums = zeros<std::uint64_t>(kSums * setup::kSumParts);
  const auto sum = [&](int k) { return setup::PartedSum{sums + k * setup::kSumParts}; };
  const int lanes = lanes_of_rows(a.rows, a.nonzeros);
  const std::int64_t items = summing_threads(a.rows), of_rows = summing_threads(a.rows * lanes);
  launch(setup::BeginLanczos{a.rows, v, before, sum(0)}, items);
  for (int step = 0; step < kSteps; ++step) {
    const auto square = sum(2 * step), product = sum(2 * step + 1), next = sum(2 * step + 2);
    launch(setup::MultiplyLanczos{a.view(), strong, root, v, w, square, product, lanes}, of_rows);
    launch(setup::StepLanczos{a.rows, step == 0, v, before, w, square, product, next}, items);
  }
  const auto parts = fetch(stream_, sums, at(kSums * setup::kSumParts));
  const auto all = [&](int k) {
    const auto first = parts.begin() + k * setup::kSumParts;
    return std::accumulate(first, first + setup::kSumParts, std::uint64_t{0});
  };
  multigrid::LanczosSums found;
  for (int k = 0; k <= kSteps; ++k) found.square[at(k)] = all(2 * k);
  for (int k = 0; k < kSteps; ++k) found.product[at(k)] = all(2 * k + 1);
  scratch_.release(mark);
  return found.largest(static_cast<std::int32_t>(a.rows));
}

// For some rows, of which `bound` bounds the columns.
std::int32_t SetupSteps::places_of_far_tables(const std::int32_t* rows, std::int64_t count,
                                              const std::int32_t* bound, std::int64_t all) {
  const auto list = fetch(stream_, rows, at(count));
  const auto bounds = fetch(stream_, bound, at(all));
  std::int32_t most = 0;
  for (const std::int32_t row : list) most = std::max(most, bounds[at(row)]);
  const std::int32_t places = setup::places_for(most, kMostPlaces);
  if (places < 2 * std::int64_t{most}) throw RowTooLong();
  return places;
}

setup::FarTables SetupSteps::far_tables(std::int32_t places, std::int64_t rows) {
  setup::FarTables far;
  far.places = places;
  far.teams = std::clamp<std::int64_t>(kFarBytes / (12 * std::int64_t{places}), 1, rows);
  far.columns = scratch_.take<std::uint32_t>(far.teams * far.places);
  far.sums = scratch_.take<double>(far.teams * far.places);
  return far;
}

gpu::DeviceArray<std::int32_t> SetupSteps::listed(const setup::MultiplyRows& kernel,
                                                  Scratch& kept) {
  const std::int64_t count = one(kernel.long_count);
  if (count == 0) return {};
  auto list = kept.array<std::int32_t>(count);
  gpu::copy(list.data(), kernel.long_rows, at(count) * sizeof(std::int32_t), stream_);
  gpu::clear(kernel.long_count, sizeof(*kernel.long_count), stream_);
  return list;
}

bool SetupSteps::plan(const setup::Factors& factors, int lanes, std::int32_t columns, double most,
                      double room, Scratch& kept, ProductOnGpu& product) {
  const std::int64_t rows = product.rows = factors.a.count;
  product.columns = columns;
  product.lanes = lanes;
  const auto mark = scratch_.mark();
  setup::MultiplyRows kernel;
  kernel.of = factors;
  kernel.count = rows;
  kernel.row_lanes = lanes;
  auto* const bound = scratch_.take<std::int32_t>(rows);
  kernel.bound = bound;
  kernel.length = scratch_.take<std::int32_t>(rows);
  kernel.long_rows = scratch_.take<std::int32_t>(rows);
  auto* const counts = zeros<std::uint64_t>(2);
  kernel.long_count = reinterpret_cast<std::uint32_t*>(counts + 1);
  launch(setup::CountProducts{factors, columns, bound, counts}, summing_threads(rows));
  if (most < std::numeric_limits<double>::infinity() && static_cast<double>(one(counts)) > most) {
    scratch_.release(mark);
    return false;
  }
  launch(kernel, rows * lanes);
  auto list = listed(kernel, kept);
  if (lanes < kTeamItems && list.size() > 0) {
    product.wide_rows = std::move(list);
    take_list(kernel, product.wide_rows);
    launch(kernel, kernel.count * kTeamItems);
    list = listed(kernel, kept);
  }
  if (list.size() > 0) {
    product.long_rows = std::move(list);
    take_list(kernel, product.long_rows);
    product.places = places_of_far_tables(kernel.list, kernel.count, bound, rows);
    kernel.far = far_tables(product.places, kernel.count);
    launch(kernel, kernel.far.teams * kTeamItems);
  }
  product.ptr = kept.array<std::int64_t>(rows + 1);
  scan(kernel.length, rows, product.ptr.data());
  product.nonzeros = one(product.ptr.data() + rows);
  scratch_.release(mark);
  return static_cast<double>(product.nonzeros) <= room;
}

void SetupSteps::multiply(const setup::Factors& factors, Scratch& memory, ProductOnGpu& product) {
  if (product.col.size() == 0 && product.nonzeros > 0) {
    product.col = memory.array<std::int32_t>(product.nonzeros);
    product.val = memory.array<double>(product.nonzeros);
  }
  setup::MultiplyRows kernel;
  kernel.of = factors;
  kernel.count = product.rows;
  kernel.row_lanes = product.lanes;
  kernel.to = product.view();
  kernel.to_col = product.col.data();
  launch(kernel, product.rows * product.lanes);
  if (product.wide_rows.size() > 0) {
    take_list(kernel, product.wide_rows);
    launch(kernel, kernel.count * kTeamItems);
  }
  if (product.long_rows.size() == 0) return;
  const auto mark = scratch_.mark();
  take_list(kernel, product.long_rows);
  kernel.far = far_tables(product.places, kernel.count);
  launch(kernel, kernel.far.teams * kTeamItems);
  scratch_.release(mark);
}

void SetupSteps::transpose(const MatrixOnGpu& a, Scratch& kept, MatrixOnGpu& made) {
  const int lanes = lanes_of_rows(a.columns, a.nonzeros);
  if (made.ptr.size() > 0)
    return launch(setup::TransposeValues{a.view(), made.view(), lanes}, made.rows * lanes);
  const auto mark = scratch_.mark();
  made.rows = a.columns;
  made.columns = static_cast<std::int32_t>(a.rows);
  made.nonzeros = a.nonzeros;
  made.ptr = kept.array<std::int64_t>(made.rows + 1);
  made.col = kept.array<std::int32_t>(made.nonzeros);
  made.val = kept.array<double>(made.nonzeros);
  auto* const count = zeros<std::uint32_t>(made.rows);
  launch(setup::CountColumns{a.col.data(), a.nonzeros, count}, a.nonzeros);
  scan(reinterpret_cast<const std::int32_t*>(count), made.rows, made.ptr.data());
  gpu::clear(count, at(made.rows) * sizeof(*count), stream_);
  auto* const col = scratch_.take<std::int32_t>(made.nonzeros);
  auto* const val = scratch_.take<double>(made.nonzeros);
  launch(setup::SpreadColumns{a.view(), made.ptr.data(), count, col, val}, a.rows);
  setup::PlaceRows sort;
  sort.from = {made.rows, made.ptr.data(), col, val};
  sort.count = made.rows;
  sort.ptr = made.ptr.data();
  sort.col = made.col.data();
  sort.val = made.val.data();
  sort.row_lanes = lanes;
  launch(sort, made.rows * lanes);
  scratch_.release(mark);
}

void SetupSteps::invert(const MatrixOnGpu& a, const double* vector, Scratch& kept,
                        MatrixOnGpu& inverse) {
  const std::int64_t n = a.rows;
  if (inverse.rows == 0) {
    inverse.rows = n, inverse.nonzeros = n * n, inverse.columns = a.columns;
    inverse.ptr = kept.array<std::int64_t>(n + 1);
    inverse.col = kept.array<std::int32_t>(n * n);
    inverse.val = kept.array<double>(n * n);
  }
  const auto mark = scratch_.mark();
  setup::DenseBlock block;
  block.rows = n;
  block.matrix = scratch_.take<double>(n * n);
  block.inverse = scratch_.take<double>(setup::kInverseBlock * setup::kInverseBlock);
  block.right = scratch_.take<double>(setup::kInverseBlock * n);
  block.left = scratch_.take<double>(setup::kInverseBlock * n);
  const double factor = weight_of_null_vector(a, vector);
  launch(setup::SpreadDense{a.view(), vector, factor, block.matrix}, n * kTeamItems);
  for (; block.first < n; block.first += block.size) {
    block.size = static_cast<int>(std::min<std::int64_t>(setup::kInverseBlock, n - block.first));
    launch(setup::InvertBlock{block, multigrid::kSingular}, kTeamItems);
    launch(setup::SetBlockAside{block}, block.size * n);
    launch(setup::EliminateBlock{block}, n * n);
  }
  launch(setup::PlaceInverse{n, block.matrix, vector, factor, inverse.ptr.data(),
                             inverse.col.data(), inverse.val.data()},
         n * n);
  scratch_.release(mark);
}

// 1 / |v|^2 where A maps v to 0; else 0.
double SetupSteps::weight_of_null_vector(const MatrixOnGpu& a, const double* vector) {
  const auto mark = scratch_.mark();
  auto* const product = scratch_.take<double>(a.rows);
  launch(setup::MultiplyVector{a.view(), vector, product}, a.rows);
  const auto of = fetch(stream_, vector, at(a.rows)), made = fetch(stream_, product, at(a.rows));
  scratch_.release(mark);
  const double square = std::inner_product(of.begin(), of.end(), of.begin(), 0.0);
  double most = 0.0;
  for (const double value : made) most = std::max(most, std::abs(value));
  return most <= multigrid::kNull * std::sqrt(square) ? 1.0 / square : 0.0;
}

}  // namespace cpufree
