// Brings what belongs to the PEs of this process to their GPUs.
#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/systems/gpu/system.hpp"

namespace cpufree {

// Everything of one PE but the bytes of the matrix.
template <class T>
void GpuSystem<T>::upload_pe(std::size_t k, const LocalSystem<T>& local, const PeLayout& layout,
                             const std::vector<std::int32_t>& sources,
                             const std::vector<T>& inverse) {
  const int device = devices_[k];
  Pe& pe = device_->pes[k];
  upload_slice_table(pe, device, layout);
  upload_shapes(pe, device, local, layout);
  pe.global_row = {device, private_rows(local, layout)};
  pe.vectors[index_.inverse_diagonal] = {device, inverse};
  upload_links(k, local, layout, sources);
  if (nodes_.count() > 1) pe.remote = RemoteTables(device, nodes_, far_[k]);
}

// What it sends and receives, and its blocks' shares.
template <class T>
void GpuSystem<T>::upload_links(std::size_t k, const LocalSystem<T>& local, const PeLayout& layout,
                                const std::vector<std::int32_t>& sources) {
  const int device = devices_[k];
  Pe& pe = device_->pes[k];
  pe.rows = local.rows();
  pe.interior = local.interior;
  pe.private_rows = layout.private_rows;
  pe.send_ptr = {device, local.send_ptr};
  pe.destinations = {device, local.destinations};
  pe.source = {device, sources};
  upload_shares(k, layout);
}

// Where slices and tails begin.
template <class T>
void GpuSystem<T>::upload_slice_table(Pe& pe, int device, const PeLayout& layout) {
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

// What goes with the bytes of the matrix.
template <class T>
void GpuSystem<T>::upload_shapes(Pe& pe, int device, const LocalSystem<T>& local,
                                 const PeLayout& layout) {
  const BesideSlices beside = beside_slices(local, layout);
  pe.tail_col = {device, beside.tail_col};
  pe.tail_val = {device, beside.tail_val};
  pe.dictionary = {device, beside.dictionary};
}

template <class T>
auto GpuSystem<T>::beside_slices(const LocalSystem<T>& local, const PeLayout& layout)
    -> BesideSlices {
  BesideSlices beside;
  beside.tail_col.resize(at(layout.tail_entries));
  beside.tail_val.resize(at(layout.tail_entries));
  for (const ShareLayout& share : layout.shares) {
    for (const double value : share.shape.dictionary)
      beside.dictionary.push_back(static_cast<T>(value));
    BlockColumns columns;
    fill_tails(source_of(local, layout, share, columns), share.shape,
               beside.tail_col.data() + share.first_tail_entry,
               beside.tail_val.data() + share.first_tail_entry);
  }
  return beside;
}

// The chunks of the blocks' shares, for their rings. Returns where each block's begin.
template <class T>
std::vector<std::size_t> GpuSystem<T>::upload_feeds(Pe& pe, int device, const PeLayout& layout) {
  std::vector<FeedItem> items;
  std::vector<std::uint32_t> first;
  std::vector<std::size_t> begin;
  std::vector<SliceFeed> feeds(layout.shares.size());
  in_parallel(static_cast<int>(feeds.size()), [&](int b) {
    const ShareLayout& share = layout.shares[at(b)];
    feeds[at(b)] =
        feed_of<T>(share.shape, {share.interior, share.boundary}, threads_ / gpu_p2p::kWarp);
  });
  for (const SliceFeed& feed : feeds) {
    begin.push_back(items.size());
    items.insert(items.end(), feed.items.begin(), feed.items.end());
    first.insert(first.end(), feed.first.begin(), feed.first.end());
  }
  pe.feed = {device, items};
  pe.feed_first = {device, first};
  return begin;
}

// The blocks' views of their shares.
template <class T>
void GpuSystem<T>::upload_shares(std::size_t k, const PeLayout& layout) {
  const int device = devices_[k];
  Pe& pe = device_->pes[k];
  std::vector<std::int32_t> partners;
  for (const ShareLayout& share : layout.shares)
    for (const auto* list :
         {&share.plan.notify, &share.plan.await, &share.plan.await_local, &share.plan.reads})
      partners.insert(partners.end(), list->begin(), list->end());
  pe.partners = {device, partners};
  const std::int32_t* next = pe.partners.data();
  const auto take = [&](const std::vector<std::int32_t>& list, const std::int32_t*& where,
                        std::int32_t& count) {
    where = next;
    count = static_cast<std::int32_t>(list.size());
    next += list.size();
  };
  const std::vector<std::size_t> feeds = upload_feeds(pe, device, layout);
  std::vector<BlockShare<Matrix>> views;
  std::int32_t remote = 0;  // rows that other PEs read, of the blocks before
  for (const ShareLayout& share : layout.shares) {
    const BlockPlan& plan = share.plan;
    BlockShare<Matrix> view;
    view.matrix.size = share.shape.size();
    view.matrix.bytes = pe.bytes.data() + share.first_unit * kSliceUnit;
    view.matrix.slice = pe.slices.data() + share.first_slice;
    view.matrix.tail_ptr = pe.tail_ptr.data() + share.first_tail;
    view.matrix.tail_col = pe.tail_col.data() + share.first_tail_entry;
    view.matrix.tail_val = pe.tail_val.data() + share.first_tail_entry;
    if (view.matrix.size.values > 0)
      view.matrix.dictionary = pe.dictionary.data() + share.first_value;
    view.matrix.ring.bytes = view.matrix.bytes;
    view.matrix.ring.heads = reinterpret_cast<const std::byte*>(view.matrix.slice);
    view.matrix.ring.items = pe.feed.data() + feeds[views.size()];
    view.matrix.ring.first =
        pe.feed_first.data() + views.size() * at(threads_ / gpu_p2p::kWarp + 1);
    const auto rows_of = [](const LaneRows& rows, std::int32_t start) {
      return typename Matrix::Rows{rows.begin, rows.end, start, rows.lanes_log2, rows.thin};
    };
    view.interior = rows_of(share.interior, 0);
    view.boundary = rows_of(share.boundary, share.interior.slices());
    view.board.flags = heap_.flags.at(heap_of(k));
    take(plan.notify, view.board.notify, view.board.notify_count);
    take(plan.await, view.board.await, view.board.await_count);
    take(plan.await_local, view.board.await_local, view.board.await_local_count);
    view.first_private = share.first_private;
    view.boundary_shift = plan.boundary.begin;
    view.interior_shift = plan.interior.begin - plan.boundary.size();
    view.first_packet = plan.first_packet;
    view.first_operand = share.first_operand;
    take(plan.reads, view.reads, view.read_count);
    view.remote_end = block_halos_ ? plan.boundary.begin + plan.remote : plan.boundary.end;
    view.send_shift = block_halos_ ? plan.boundary.begin - remote : pe.interior;
    remote += plan.remote;
    views.push_back(view);
  }
  pe.shares = {device, views};
}

// 1 / a_ii in the order of the private vectors, for all PEs.
template <class T>
std::vector<std::vector<T>> GpuSystem<T>::invert_diagonals(const HaloPlan<T>& plan,
                                                           const std::vector<PeLayout>& layouts) {
  std::vector<std::vector<T>> inverse;
  for (const PeLayout& layout : layouts) inverse.emplace_back(at(layout.private_rows), T{1});
  std::vector<double> bounds(layouts.size() * at(blocks_), 0.0);
  in_parallel(static_cast<int>(bounds.size()), [&](int slot) {
    const std::size_t pe = at(slot / blocks_);
    const ShareLayout& share = layouts[pe].shares[at(slot % blocks_)];
    T* to = inverse[pe].data() + share.first_private;
    for (const RowRange range : {share.plan.boundary, share.plan.interior}) {
      bounds[at(slot)] = std::max(bounds[at(slot)], invert_diagonal(plan.local[pe], range, to));
      to += range.size();
    }
  });
  lambda_bound_ = *std::ranges::max_element(bounds);
  if (team_) lambda_bound_ = most(*team_, "bound of the spectrum", lambda_bound_);
  return inverse;
}

template class GpuSystem<float>;
template class GpuSystem<double>;

}  // namespace cpufree
