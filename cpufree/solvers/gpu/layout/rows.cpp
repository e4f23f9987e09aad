#include "cpufree/solvers/gpu/layout/rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/layout/staging.hpp"
#include "cpufree/solvers/gpu/plan/host_layout.hpp"

namespace cpufree {

namespace {

using gpu::DeviceArray;
using gpu::OnDevice;

// Calls f(k, rows of PE k), each with its GPU current, side by side.
template <class T, class F>
void for_each_pe(std::vector<GpuRows<T>>& rows, F&& f) {
  in_parallel(static_cast<int>(rows.size()), [&](int k) {
    const OnDevice here(rows[at(k)].device());
    f(at(k), rows[at(k)]);
  });
}

// Rows that lie on a GPU already, `ptr` excepted: as they are, if it is the right one.
template <class T>
void take_from_gpu(const GivenCsr<T>& matrix, GpuRows<T>& rows, std::int64_t before) {
  if (matrix.device == rows.device()) {
    rows.col = DeviceArray<std::int32_t>::borrow(const_cast<std::int32_t*>(matrix.col) + before,
                                                 at(rows.nnz));
    rows.val = DeviceArray<T>::borrow(const_cast<T*>(matrix.val) + before, at(rows.nnz));
    return;
  }
  const auto bring = [&](auto* to, const auto* from) {
    gpu::copy_across(to, rows.device(), from, matrix.device, at(rows.nnz) * sizeof(*to),
                     rows.stream, " of the matrix");
  };
  rows.col = DeviceArray<std::int32_t>::uninitialised(rows.device(), at(rows.nnz));
  rows.val = DeviceArray<T>::uninitialised(rows.device(), at(rows.nnz));
  bring(rows.col.data(), matrix.col + before);
  bring(rows.val.data(), matrix.val + before);
}

}  // namespace

template <class T>
gpu::DeviceArray<std::int64_t> scan_numbers(const gpu::Stream& stream, const std::int32_t* numbers,
                                            std::int64_t count) {
  const OnDevice here(stream.device());
  const auto chunks = DeviceArray<std::int64_t>::uninitialised(stream.device(), scan_sums(count));
  auto to = DeviceArray<std::int64_t>::uninitialised(stream.device(), at(count) + 1);
  scan_numbers<T>(stream, numbers, count, chunks.data(), to.data());
  stream.wait("sums of the lengths of rows");
  return to;
}

template <class T>
void scan_numbers(const gpu::Stream& stream, const std::int32_t* numbers, std::int64_t count,
                  std::int64_t* sums, std::int64_t* to) {
  if (count == 0) return gpu::clear(to, sizeof(*to), stream);
  const auto chunks = static_cast<std::int64_t>(scan_sums(count));
  launch_layout(layout::SumNumbers<T>{numbers, count, sums}, chunks * kTeamItems, stream);
  launch_layout(layout::ScanSums<T>{chunks, sums, to + count}, kTeamItems, stream);
  launch_layout(layout::ScanNumbers<T>{numbers, count, sums, to}, chunks * kTeamItems, stream);
}

template <class T>
std::int64_t begin_of(const GivenCsr<T>& matrix, std::int64_t row) {
  const std::size_t size = matrix.wide ? sizeof(std::int64_t) : sizeof(std::int32_t);
  const auto* const from = static_cast<const std::byte*>(matrix.row_ptr) + at(row) * size;
  std::int64_t wide = 0;
  std::int32_t narrow = 0;
  void* const to = matrix.wide ? static_cast<void*>(&wide) : static_cast<void*>(&narrow);
  if (matrix.device < 0)
    std::memcpy(to, from, size);
  else
    gpu::copy_to_host(to, from, size);
  return matrix.wide ? wide : narrow;
}

template <class T>
std::vector<GpuRows<T>> send_rows(const GivenCsr<T>& matrix, std::span<const std::int64_t> cuts,
                                  const std::vector<int>& devices) {
  std::vector<GpuRows<T>> all;
  std::vector<StagedCopy> copies;
  const std::int64_t size = matrix.wide ? 8 : 4;
  // Where rows begin, as they are, and in memory of this where they are not on their GPU.
  std::vector<const void*> begins;
  std::vector<DeviceArray<std::byte>> given(devices.size());
  for (std::size_t k = 0; k < devices.size(); ++k) {
    GpuRows<T>& mine = all.emplace_back(devices[k]);
    mine.first = cuts[k];
    mine.rows = static_cast<std::int32_t>(cuts[k + 1] - cuts[k]);
    const std::int64_t before = begin_of(matrix, cuts[k]);
    mine.nnz = begin_of(matrix, cuts[k + 1]) - before;
    mine.sound = mine.nnz >= 0;
    if (!mine.sound) return all;
    const auto* const from = static_cast<const std::byte*>(matrix.row_ptr) + cuts[k] * size;
    const std::size_t bytes = at((mine.rows + std::int64_t{1}) * size);
    begins.push_back(from);
    if (matrix.device != devices[k])
      begins[k] = (given[k] = DeviceArray<std::byte>::uninitialised(devices[k], bytes)).data();
    if (matrix.device >= 0) {
      const OnDevice here(devices[k]);
      if (matrix.device != devices[k])
        gpu::copy_across(given[k].data(), devices[k], from, matrix.device, bytes, mine.stream);
      take_from_gpu(matrix, mine, before);
      continue;
    }
    mine.col = DeviceArray<std::int32_t>::uninitialised(devices[k], at(mine.nnz));
    mine.val = DeviceArray<T>::uninitialised(devices[k], at(mine.nnz));
    copies.push_back({devices[k], given[k].data(), from, bytes});
    copies.push_back({devices[k], mine.col.data(), matrix.col + before, at(mine.nnz) * 4});
    copies.push_back({devices[k], mine.val.data(), matrix.val + before, at(mine.nnz) * sizeof(T)});
  }
  send_staged(copies);
  for_each_pe(all, [&](std::size_t k, GpuRows<T>& mine) {
    mine.facts = {mine.device(), std::size_t{1}};
    mine.ptr = DeviceArray<std::int64_t>::uninitialised(mine.device(), at(mine.rows) + 1);
    launch_layout(layout::RebaseRows<T>{begins[k], matrix.wide, mine.rows + std::int64_t{1},
                                        mine.ptr.data(), mine.facts.data()},
                  mine.rows + std::int64_t{1}, mine.stream);
    mine.sound = fetch(mine.stream, mine.facts.data(), 1)[0].unsound == 0;
  });
  return all;
}

template <class T>
FoundInRows check_rows(std::vector<GpuRows<T>>& rows, bool all) {
  FoundInRows seen;
  const auto all_sound = [&] { return std::ranges::all_of(rows, &GpuRows<T>::sound); };
  if (!all_sound()) {
    seen.flaw = "indptr decreases";
    return seen;
  }
  layout::CheckMirrors<T> mirrors;
  static_assert(kMostPesOfLayout == layout::kMostParts);
  require(rows.size() <= at(layout::kMostParts), "too many PEs for a layout by GPUs");
  const std::int64_t all_rows = rows.back().first + rows.back().rows;
  for_each_pe(rows, [&](std::size_t, GpuRows<T>& mine) {
    launch_layout(layout::CheckRows<T>{mine.part(), all_rows, mine.facts.data()},
                  summing_threads(mine.rows), mine.stream);
    mine.sound = fetch(mine.stream, mine.facts.data(), 1)[0].unsound == 0;
  });
  if (!all_sound()) {
    seen.flaw =
        "the columns of each row must increase strictly, from 0 to the number of rows less 1";
    return seen;
  }
  for (std::size_t k = 0; k < rows.size(); ++k) mirrors.part[k] = rows[k].part();
  mirrors.parts = static_cast<int>(rows.size());
  mirrors.all = all;
  std::vector<layout::Facts> found(rows.size());
  for_each_pe(rows, [&](std::size_t k, GpuRows<T>& mine) {
    layout::CheckMirrors<T> kernel = mirrors;
    kernel.own = static_cast<int>(k);
    kernel.facts = mine.facts.data();
    if (all || rows.size() > 1) launch_layout(kernel, mine.rows, mine.stream);
    found[k] = fetch(mine.stream, mine.facts.data(), 1)[0];
  });
  std::uint64_t above = 0, below = 0, distance = 0;
  std::int64_t nonzeros = 0;
  for (const GpuRows<T>& mine : rows) nonzeros += mine.nnz;
  for (const layout::Facts& facts : found) {
    EntryReport& e = seen.entries;
    e.finite = e.finite && facts.not_finite == 0;
    e.positive_diagonal = e.positive_diagonal && facts.bad_diagonal == 0;
    e.symmetric = e.symmetric && facts.asymmetric == 0;
    e.mirrored = e.mirrored && facts.unmirrored == 0;
    e.asymmetry = std::max(e.asymmetry, std::bit_cast<double>(facts.asymmetry));
    above += facts.above;
    below += facts.below;
    distance += facts.distance;
    seen.pattern += facts.pattern;
  }
  if (nonzeros > 0) seen.distance = static_cast<double>(distance) / static_cast<double>(nonzeros);
  EntryReport& e = seen.entries;
  if (all) e.mirrored = e.mirrored && above == below;
  if (!e.mirrored)
    seen.flaw = "the pattern of the matrix is not symmetric";
  else if (all && !(e.finite && e.positive_diagonal))
    seen.flaw = "entries of the matrix are not finite, or its diagonal is not positive";
  return seen;
}

#define CPUFREE_ROWS(T)                                                                            \
  template std::int64_t begin_of(const GivenCsr<T>&, std::int64_t);                                \
  template gpu::DeviceArray<std::int64_t> scan_numbers<T>(const gpu::Stream&, const std::int32_t*, \
                                                          std::int64_t);                           \
  template void scan_numbers<T>(const gpu::Stream&, const std::int32_t*, std::int64_t,             \
                                std::int64_t*, std::int64_t*);                                     \
  template std::vector<GpuRows<T>> send_rows(const GivenCsr<T>&, std::span<const std::int64_t>,    \
                                             const std::vector<int>&);                             \
  template FoundInRows check_rows(std::vector<GpuRows<T>>&, bool);
CPUFREE_ROWS(float)
CPUFREE_ROWS(double)

}  // namespace cpufree
