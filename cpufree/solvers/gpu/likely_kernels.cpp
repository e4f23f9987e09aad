#include "cpufree/solvers/gpu/likely_kernels.hpp"

#include <algorithm>
#include <set>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/slices/slice_entries.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace cpufree {

namespace {

// Entries of a row from which on it is likely one of a mesh whose nodes have three unknowns each.
constexpr std::int64_t kEntriesOfMeshes = 30;

// What is looked at of a matrix, to see whether its values have a dictionary.
constexpr std::int64_t kLookedAt = 4096;
constexpr std::size_t kFewValues = 16;
constexpr double kVectors = 6.0;   // that a solve by prcg keeps on chip
constexpr double kPadding = 1.15;  // entries of slices over nonzeros

}  // namespace

template <class T>
KernelsWanted likely_kernels(const GpuPlace& place, const CsrView<T>& matrix) {
  const std::int64_t step = std::max<std::int64_t>(1, matrix.nnz() / kLookedAt);
  std::set<T> values;
  for (std::int64_t k = 0; k < matrix.nnz() && values.size() <= kFewValues; k += step)
    if (const T value = matrix.val[at(k)]; value == value)
      values.insert(value);  // NaN has no order
  const bool runs = matrix.nnz() >= kEntriesOfMeshes * matrix.n;
  const double bytes = static_cast<double>(matrix.nnz()) * (sizeof(T) + 2.0) +
                       kVectors * static_cast<double>(matrix.n) * sizeof(T);
  const int blocks = multiprocessors_of_pe(place.devices);
  const bool halos = place.spec.halo < 0 && may_have_block_halos(place.spec, matrix.nnz());
  const bool small = halos && !place.spec.single_values &&
                     bytes <= place.spec.machine.solver_block_bytes * blocks * place.own.all;
  const bool coded = !small && values.size() <= kFewValues;
  SliceKinds kinds = coded ? kCodedValues : kPlainValues;
  if (!coded && place.spec.single_values) kinds |= kSingleValues;
  if (runs) kinds |= kRuns;
  if (!runs || halos) kinds |= kSingles;
  if (small) kinds |= runs ? kSimpleRuns : kSimpleColumns;
  const double slices = kPadding * static_cast<double>(matrix.nnz()) * (coded ? 3 : sizeof(T) + 2);
  const bool light = coded && matrix.nnz() <= kChunkWidth * matrix.n;
  return {.kinds = kinds,
          .on_chip = small && matrix.nnz() >= 2 * kChunkWidth * matrix.n,
          .devices = place.devices,
          .streams = !light && slices > place.spec.machine.solver_cached_bytes * place.own.all};
}

template KernelsWanted likely_kernels(const GpuPlace&, const CsrView<float>&);
template KernelsWanted likely_kernels(const GpuPlace&, const CsrView<double>&);

}  // namespace cpufree
