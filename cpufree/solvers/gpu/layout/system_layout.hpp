// How a matrix lies on the GPUs of a System: decided from rows that the host has, or from what GPUs
// tell of rows that they have. Either way it is the same, to the last bit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpufree/base/laps.hpp"
#include "cpufree/solvers/gpu/layout/layouts.hpp"
#include "cpufree/solvers/gpu/plan/host_layout.hpp"

namespace cpufree {

// Whether the GPUs have room to lay a matrix out. PE k has rows [cuts[k], cuts[k + 1]).
template <class T>
bool have_room(const GpuPlace& place, const GivenCsr<T>& matrix,
               std::span<const std::int64_t> cuts);

// Rows on their GPUs, as they are in the matrix, and what is found in them.
template <class T>
struct SentRows {
  std::vector<GpuRows<T>> rows;
  FoundInRows found;
};

// Sends rows to their GPUs and has these look at them, at all entries if `inspect`.
template <class T>
SentRows<T> send_to_gpus(const GpuPlace& place, const GivenCsr<T>& matrix,
                         std::span<const std::int64_t> cuts, bool inspect, LapTimer& timer);

// Rows on their GPUs, in the numbers of the PEs.
template <class T>
struct ArrivedRows {
  FoundInRows found;
  HaloPlan<T> plan;  // of number_rows
  GpuLayouts<T> layouts;
};

// Gives rows without a flaw the numbers of the PEs.
template <class T>
ArrivedRows<T> number_on_gpus(SentRows<T> sent, LapTimer& timer);

template <class T>
struct SystemLayout : HostLayout<T> {
  // Rows that GPUs have renumbered for halos of blocks: HalosOnGpus::order.
  std::vector<gpu::DeviceArray<std::int32_t>> order;
};

// Takes the plan of the rows, and leaves the rest.
template <class T>
SystemLayout<T> lay_out_by_gpus(const GpuPlace& place, ArrivedRows<T>& rows);

// How other values of the same pattern would lie in a new system: those of old.plan or, unless it
// is null, of `rows`, which get the order of the old ones. None: not as the old ones do.
template <class T>
std::optional<std::vector<PeLayout>> lay_out_again(const GpuPlace& place,
                                                   const SystemLayout<T>& old,
                                                   GpuLayouts<T>* rows = nullptr);

}  // namespace cpufree
