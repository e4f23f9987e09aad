// Systems whose matrices are laid out by the GPUs: rows go there as the caller has them.
#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition.hpp"
#include "cpufree/systems/gpu/devices.hpp"
#include "cpufree/systems/gpu/kernels/table.hpp"
#include "cpufree/systems/gpu/system.hpp"

namespace cpufree {

namespace {

using gpu::OnDevice;

// Nonzeros from which on it is worth the kernels.
constexpr std::int64_t kLeastNonzeros = 4'000'000;
// Entries of a row from which on it is likely one of a mesh whose nodes have three unknowns each.
constexpr std::int64_t kEntriesOfMeshes = 30;

// Where each PE's rows begin, and the last one's end; none where they are not consecutive.
std::vector<std::int64_t> cuts_of(std::span<const std::int64_t> row_ptr,
                                  std::span<const std::int32_t> part, int pes) {
  std::vector<std::int64_t> cuts{0};
  const auto rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
  if (part.empty()) {
    for (const RowRange& range : split_rows(row_ptr, {0, static_cast<std::int32_t>(rows)}, pes))
      cuts.push_back(range.end);
    return cuts;
  }
  const bool valid = static_cast<std::int64_t>(part.size()) == rows && part.front() >= 0 &&
                     part.back() < pes && std::ranges::is_sorted(part);
  if (!valid) return {};
  for (int pe = 1; pe <= pes; ++pe)
    cuts.push_back(std::ranges::lower_bound(part, pe) - part.begin());
  return cuts;
}

// Whether a device has room for rows with so many nonzeros, twice, for what is made of them, and
// for vectors.
bool has_room(int device, std::int64_t rows, std::int64_t nonzeros, std::size_t value_bytes) {
  const OnDevice here(device);
  const double bytes = 3.5 * static_cast<double>(nonzeros) * static_cast<double>(4 + value_bytes) +
                       128.0 * static_cast<double>(rows);
  return bytes < static_cast<double>(gpu::memory_info().free);
}

// The same bytes in another array of as many.
template <class U>
void overwrite(const gpu::DeviceArray<U>& to, const gpu::DeviceArray<U>& from, int device) {
  require(to.size() == from.size(), "an array on a GPU keeps its size");
  if (to.size() > 0) gpu::copy_to_device(device, to.data(), from.data(), to.size() * sizeof(U));
}

template <class T>
std::vector<T> dictionary_of(const PeLayout& layout) {
  std::vector<T> dictionary;
  for (const ShareLayout& share : layout.shares)
    for (const double value : share.shape.dictionary) dictionary.push_back(static_cast<T>(value));
  return dictionary;
}

}  // namespace

// None: the host lays the matrix out.
template <class T>
std::vector<std::int64_t> GpuSystem<T>::cuts_for_gpus(const CsrView<T>& matrix,
                                                      std::span<const std::int32_t> part,
                                                      std::span<const std::int32_t> order,
                                                      const SystemSpec& spec) const {
  const bool can = !team_ && order.empty() && !factor_spec_.any() && nodes_.count() == 1 &&
                   matrix.n > 0 && spec.pes <= layout::kMostParts &&
                   !may_have_block_halos(spec, matrix.nnz());
  if (!can || spec.layout == 0 || (spec.layout < 0 && matrix.nnz() < kLeastNonzeros)) return {};
  auto cuts = cuts_of(matrix.row_ptr, part, spec.pes);
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const std::int64_t nonzeros = matrix.row_ptr[at(cuts[k + 1])] - matrix.row_ptr[at(cuts[k])];
    const auto sharing = std::ranges::count(devices_, devices_[k]);
    if (!has_room(devices_[k], sharing * (cuts[k + 1] - cuts[k]), sharing * nonzeros, sizeof(T)))
      return {};
  }
  return cuts;
}

template <class T>
GpuSystem<T>::GpuSystem(const GivenCsr<T>& matrix, const SystemSpec& spec)
    : GpuSystem(matrix.n, matrix.n, spec) {
  require(spec.pes == 1, "a matrix on a GPU is laid out for one PE");
  require_made_of_rows(spec);
  timer_.lap("choice");
  cuts_ = {0, matrix.n};
  set_up_on_gpus([&] { return send_rows(matrix, cuts_, devices_); }, false, spec);
}

template <class T>
void GpuSystem<T>::require_made_of_rows(const SystemSpec& spec) const {
  require(!team_ && nodes_.count() == 1, "GPUs of one process lay a matrix out");
  require(!factor_spec_.any() && spec.halo != 2,
          "preconditioners with factors, and halos of blocks, are made of matrices on the host");
}

// rows(): brings them to the GPUs. `runs_likely`: columns are expected to come in runs.
template <class T>
template <class F>
void GpuSystem<T>::set_up_on_gpus(F&& rows, bool runs_likely, const SystemSpec& spec) {
  const gpu_p2p::DeviceLocks locks(devices_);
  try {
    gpu_p2p::connect(devices_);
    // Kernels of the default solve compile beside those that lay the matrix out.
    compile_ahead_for<T>(SolveSpec{}, {runs_likely, false, devices_});
    HaloPlan<T> plan = plan_on_gpus(rows(), spec);
    build(plan, {}, spec);
  } catch (...) {
    made_.reset();
    device_.reset();  // while the devices are still ours
    throw;
  }
}

template <class T>
void GpuSystem<T>::set_up_sent(const CsrView<T>& matrix, std::vector<std::int64_t> cuts,
                               const SystemSpec& spec) {
  cuts_ = std::move(cuts);
  const bool runs_likely = matrix.nnz() >= kEntriesOfMeshes * matrix.n;
  set_up_on_gpus([&] { return send_rows(GivenCsr<T>::of(matrix), cuts_, devices_); }, runs_likely,
                 spec);
}

// Looks at the rows, which have arrived, and gives them the PEs' numbers.
template <class T>
HaloPlan<T> GpuSystem<T>::plan_on_gpus(std::vector<GpuRows<T>> rows, const SystemSpec& spec) {
  timer_.lap("send");
  const FoundInRows found = check_rows(rows, spec.inspect);
  pattern_ = found.pattern;
  const EntryReport& e = found.entries;
  require(e.mirrored, "the pattern of the matrix is not symmetric");
  require(!spec.inspect || (e.finite && e.positive_diagonal),
          "entries of the matrix are not finite, or its diagonal is not positive");
  if (spec.inspect) entries_ = e;
  mean_distance_ = found.distance;
  timer_.lap("inspect");
  HaloPlan<T> plan = number_rows(rows);
  made_ = std::make_unique<GpuLayouts<T>>(std::move(rows), spec.cut != 0);
  timer_.lap("plan");
  return plan;
}

// Brings the rest of what belongs to the PEs to their GPUs, and makes the slices there.
template <class T>
void GpuSystem<T>::upload_made(const HaloPlan<T>& plan, const std::vector<PeLayout>& layouts,
                               const Sharing& sharing) {
  device_ = std::make_unique<Device>(devices_, blocks_);
  auto slices = room_for_slices(layouts, devices_);
  for (std::size_t k = 0; k < slices.size(); ++k) device_->pes[k].bytes = std::move(slices[k]);
  fill_made(layouts);
  timer_.lap("upload");
  finish_report(layouts);
  device_->heaps = std::make_unique<GpuHeaps>(devices_, heap_.bytes);
  timer_.lap("memory");
  in_parallel(static_cast<int>(devices_.size()), [&](int k) {
    upload_links(at(k), plan.local[at(k)], layouts[at(k)], sharing.sources[at(k)]);
  });
  make_transfer();
}

// Fills the memory of all PEs: new arrays, or those that kernels know of already.
template <class T>
void GpuSystem<T>::fill_made(const std::vector<PeLayout>& layouts) {
  std::vector<double> bounds(layouts.size());
  in_parallel(static_cast<int>(layouts.size()), [&](int k) {
    Pe& pe = device_->pes[at(k)];
    const int device = devices_[at(k)];
    const PeLayout& layout = layouts[at(k)];
    const bool anew = pe.slices.data() == nullptr;
    if (anew) upload_slice_table(pe, device, layout);
    auto beside = made_->fill(at(k), layout, pe.slices.data(), pe.bytes.data());
    bounds[at(k)] = beside.bound;
    Array<T>& inverse = pe.vectors[index_.inverse_diagonal];
    if (anew) {
      pe.tail_col = std::move(beside.tail_col);
      pe.tail_val = std::move(beside.tail_val);
      pe.global_row = std::move(beside.global_row);
      pe.dictionary = {device, dictionary_of<T>(layout)};
      inverse = std::move(beside.inverse);
    } else {
      overwrite(pe.tail_col, beside.tail_col, device);
      overwrite(pe.tail_val, beside.tail_val, device);
      pe.dictionary.rewrite(device, dictionary_of<T>(layout));
      overwrite(inverse, beside.inverse, device);
    }
  });
  lambda_bound_ = *std::ranges::max_element(bounds);
}

template <class T>
bool GpuSystem<T>::update_made(const CsrView<T>& matrix) {
  timer_ = {};
  const std::uint64_t pattern = std::exchange(pattern_, 0);
  SystemSpec spec = kept_->spec;
  spec.inspect = false;
  plan_on_gpus(send_rows(GivenCsr<T>::of(matrix), cuts_, devices_), spec);
  const bool same = std::exchange(pattern_, pattern) == pattern;
  require(same, "update takes a matrix of the same pattern: entries are at other places");
  auto layouts = lay_out_again();
  timer_.lap("layout");
  if (!layouts) return false;
  usable_ = false;
  fill_made(*layouts);
  kept_->layouts = *std::move(layouts);
  usable_ = true;
  timer_.lap("upload");
  report_.seconds = timer_.laps();
  return true;
}

template <class T>
std::vector<std::vector<std::byte>> GpuSystem<T>::matrix_arrays(std::size_t k) const {
  const Pe& pe = device_->pes[k];
  std::vector<std::vector<std::byte>> all;
  const auto add = [&](const auto& array) {
    const auto values = array.download();
    const auto* const first = reinterpret_cast<const std::byte*>(values.data());
    all.emplace_back(first, first + values.size() * sizeof(values[0]));
  };
  add(pe.bytes);
  add(pe.slices);
  add(pe.tail_ptr);
  add(pe.tail_col);
  add(pe.tail_val);
  add(pe.dictionary);
  add(pe.feed);
  add(pe.feed_first);
  add(pe.partners);
  add(pe.send_ptr);
  add(pe.destinations);
  add(pe.source);
  add(pe.global_row);
  add(pe.vectors[index_.inverse_diagonal]);
  return all;
}

template class GpuSystem<float>;
template class GpuSystem<double>;

}  // namespace cpufree
