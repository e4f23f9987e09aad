// The matrix on its way to the GPUs, and again with other values.
#include "cpufree/solvers/gpu/pe_memory.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/row_size.hpp"
#include "cpufree/solvers/gpu/upload.hpp"

namespace cpufree {

namespace {

// Where slices and tails begin.
template <class T>
void upload_slice_table(SlicesOnGpu<T>& pe, int device, const PeLayout& layout) {
  std::vector<WarpSlice> slices;
  std::vector<std::int64_t> tails;
  slices.reserve(at(layout.slices));
  for (const ShareLayout& share : layout.shares) {
    const WarpSliceShape& shape = share.shape;
    slices.insert(slices.end(), shape.slice.begin(), shape.slice.end());
    tails.insert(tails.end(), shape.tail_ptr.begin(), shape.tail_ptr.end());
  }
  pe.slices = {device, slices};
  pe.tail_ptr = {device, tails};
}

template <class T>
std::vector<T> dictionary_of(const PeLayout& layout) {
  std::vector<T> dictionary;
  for (const ShareLayout& share : layout.shares)
    for (const double value : share.shape.dictionary) dictionary.push_back(static_cast<T>(value));
  return dictionary;
}

// Columns and values of entries beyond the slices.
template <class T>
std::pair<std::vector<std::int32_t>, std::vector<T>> tails_of(const LocalSystem<T>& local,
                                                              const PeLayout& layout) {
  std::vector<std::int32_t> col(at(layout.tail_entries));
  std::vector<T> val(at(layout.tail_entries));
  for (const ShareLayout& share : layout.shares) {
    BlockColumns columns;
    fill_tails(source_of(local, layout, share, columns), share.shape,
               col.data() + share.first_tail_entry, val.data() + share.first_tail_entry);
  }
  return {std::move(col), std::move(val)};
}

// An array, or the values of one in the place of those that kernels know of.
template <class U>
void put(gpu::DeviceArray<U>& to, int device, const std::vector<U>& values) {
  if (to.data() == nullptr)
    to = {device, values};
  else
    to.rewrite(device, values);
}
template <class U>
void put(gpu::DeviceArray<U>& to, int device, gpu::DeviceArray<U> values) {
  require(to.data() == nullptr || to.size() == values.size(), "an array on a GPU keeps its size");
  if (to.data() == nullptr)
    to = std::move(values);
  else if (to.size() > 0)
    gpu::copy_to_device(device, to.data(), values.data(), to.size() * sizeof(U));
}

// Writes 1 / |a_ii| of the rows to inverse[0], inverse[1], ... (1 where a_ii is 0). Returns the
// largest sum_j |a_ij| / |a_ii| among them, which bounds the spectrum of D^-1 A.
template <class T>
double invert_diagonal(const LocalSystem<T>& local, RowRange rows, T* inverse) {
  double bound = 0.0;
  for (std::int32_t i = rows.begin; i < rows.end; ++i) {
    RowSize size;
    for (std::int64_t e = local.row_ptr[at(i)]; e < local.row_ptr[at(i) + 1]; ++e)
      size.add(static_cast<double>(local.values()[e]), local.columns()[e] == i);
    inverse[i - rows.begin] = static_cast<T>(size.inverse());
    bound = std::max(bound, size.bound());
  }
  return bound;
}

// Writes 1 / a_ii in the order of the private vectors; returns what bounds the spectrum.
template <class T>
double invert_diagonals(const GpuPlace& place, const HaloPlan<T>& plan,
                        const std::vector<PeLayout>& layouts, std::vector<std::vector<T>>& to) {
  for (const PeLayout& layout : layouts) to.emplace_back(at(layout.private_rows), T{1});
  const std::size_t blocks = layouts[0].shares.size();
  std::vector<double> bounds(layouts.size() * blocks, 0.0);
  in_parallel(static_cast<int>(bounds.size()), [&](int slot) {
    const std::size_t pe = at(slot) / blocks;
    const ShareLayout& share = layouts[pe].shares[at(slot) % blocks];
    T* inverse = to[pe].data() + share.first_private;
    for (const RowRange rows : {share.plan.boundary, share.plan.interior}) {
      bounds[at(slot)] = std::max(bounds[at(slot)], invert_diagonal(plan.local[pe], rows, inverse));
      inverse += rows.size();
    }
  });
  return place.most("bound of the spectrum", *std::ranges::max_element(bounds));
}

}  // namespace

template <class T>
void fill_slices(const std::vector<int>& devices, const HaloPlan<T>& plan,
                 const std::vector<PeLayout>& layouts, std::span<SlicesOnGpu<T>* const> slices) {
  std::vector<std::byte*> bytes;
  for (const SlicesOnGpu<T>* pe : slices) bytes.push_back(pe->bytes.data());
  upload_slices(plan, layouts, devices, bytes);
  in_parallel(static_cast<int>(slices.size()), [&](int k) {
    SlicesOnGpu<T>& pe = *slices[at(k)];
    const int device = devices[at(k)];
    const PeLayout& layout = layouts[at(k)];
    const auto [tail_col, tail_val] = tails_of(plan.local[at(k)], layout);
    if (pe.slices.data() == nullptr) {
      upload_slice_table(pe, device, layout);
      pe.tail_col = {device, tail_col};
    }
    put(pe.tail_val, device, tail_val);
    put(pe.dictionary, device, dictionary_of<T>(layout));
  });
}

template <class T>
void fill_slices(GpuLayouts<T>& rows, std::size_t k, const PeLayout& layout,
                 SlicesOnGpu<T>& slices) {
  const int device = rows.rows(k).device();
  if (slices.slices.data() == nullptr) {
    const std::size_t bytes = at(layout.units * kSliceUnit);
    slices.bytes = gpu::DeviceArray<std::byte>::uninitialised(device, bytes);
    upload_slice_table(slices, device, layout);
  }
  auto tails = rows.fill_slices(k, layout, slices.slices.data(), slices.bytes.data());
  put(slices.tail_col, device, std::move(tails.tail_col));
  put(slices.tail_val, device, std::move(tails.tail_val));
  put(slices.dictionary, device, dictionary_of<T>(layout));
}

template <class T>
double fill_from_host(const GpuPlace& place, const HaloPlan<T>& plan,
                      const std::vector<PeLayout>& layouts, PeMemories<T>& pes) {
  std::vector<std::vector<T>> inverse;
  const double bound = invert_diagonals(place, plan, layouts, inverse);
  std::vector<SlicesOnGpu<T>*> slices;
  for (PeMemory<T>& pe : pes) slices.push_back(&pe);
  fill_slices<T>(place.devices, plan, layouts, slices);
  in_parallel(static_cast<int>(pes.size()), [&](int k) {
    PeMemory<T>& pe = pes[at(k)];
    const int device = place.devices[at(k)];
    if (pe.global_row.data() == nullptr)
      pe.global_row = {device, private_rows(plan.local[at(k)], layouts[at(k)])};
    put(pe.vectors[private_index().inverse_diagonal], device, inverse[at(k)]);
  });
  return bound;
}

template <class T>
double fill_from_gpus(const GpuPlace& place, GpuLayouts<T>& rows,
                      const std::vector<PeLayout>& layouts, PeMemories<T>& pes) {
  std::vector<double> bounds(pes.size());
  in_parallel(static_cast<int>(pes.size()), [&](int k) {
    PeMemory<T>& pe = pes[at(k)];
    const int device = place.devices[at(k)];
    const PeLayout& layout = layouts[at(k)];
    if (pe.slices.data() == nullptr) upload_slice_table(pe, device, layout);
    auto beside = rows.fill(at(k), layout, pe.slices.data(), pe.bytes.data());
    bounds[at(k)] = beside.bound;
    put(pe.tail_col, device, std::move(beside.tail_col));
    put(pe.tail_val, device, std::move(beside.tail_val));
    put(pe.global_row, device, std::move(beside.global_row));
    put(pe.dictionary, device, dictionary_of<T>(layout));
    put(pe.vectors[private_index().inverse_diagonal], device, std::move(beside.inverse));
  });
  return *std::ranges::max_element(bounds);
}

#define CPUFREE_PE_MEMORY(T)                                                                    \
  template void fill_slices(const std::vector<int>&, const HaloPlan<T>&,                        \
                            const std::vector<PeLayout>&, std::span<SlicesOnGpu<T>* const>);    \
  template void fill_slices(GpuLayouts<T>&, std::size_t, const PeLayout&, SlicesOnGpu<T>&);     \
  template double fill_from_host(const GpuPlace&, const HaloPlan<T>&,                           \
                                 const std::vector<PeLayout>&, PeMemories<T>&);                 \
  template double fill_from_gpus(const GpuPlace&, GpuLayouts<T>&, const std::vector<PeLayout>&, \
                                 PeMemories<T>&);
CPUFREE_PE_MEMORY(float)
CPUFREE_PE_MEMORY(double)

}  // namespace cpufree
