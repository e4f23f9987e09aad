#include "cpufree/systems/gpu/upload.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

// Units of a chunk: large enough for the bus, small enough that the pinned buffers of all cores
// together are quickly had.
constexpr std::int64_t kChunk = (std::int64_t{3} << 18) / kSliceUnit;
constexpr int kBuffers = 2;  // of a worker: one is written while the other is on its way

// The chunks of one PE, taken by several workers.
struct Queue {
  std::vector<Chunk> chunks;
  std::atomic<std::size_t> next{0};
};

// One core's work for one PE.
template <class T>
class Worker {
 public:
  Worker(const LocalSystem<T>& local, const PeLayout& layout, std::byte* to, int device,
         std::int64_t capacity)
      : local_(local), layout_(layout), to_(to), capacity_(capacity), stream_(device) {
    for (int k = 0; k < kBuffers; ++k) {
      buffers_.emplace_back(at(capacity * kSliceUnit));
      sent_.emplace_back(device);
    }
  }
  // Copies that are under way read the buffers.
  ~Worker() { stream_.settle(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void work(Queue& queue) {
    for (std::size_t k = queue.next++; k < queue.chunks.size(); k = queue.next++)
      if (queue.chunks[k].units > capacity_)
        send_large(queue.chunks[k]);
      else
        send(queue.chunks[k]);
    stream_.wait();
  }

 private:
  void send(const Chunk& chunk) {
    const std::size_t buffer = turn_++ % kBuffers;
    sent_[buffer].wait();  // of an event that was never recorded: at once
    fill(chunk, buffers_[buffer].data());
    copy(chunk, buffers_[buffer].data());
    stream_.record(sent_[buffer]);
  }

  // A slice with very long rows, which no buffer holds.
  void send_large(const Chunk& chunk) {
    std::vector<std::byte> buffer(at(chunk.units * kSliceUnit));
    fill(chunk, buffer.data());
    copy(chunk, buffer.data());
    stream_.wait();
  }

  void fill(const Chunk& chunk, std::byte* to) const {
    const ShareLayout& share = layout_.shares[chunk.share];
    BlockColumns columns;
    fill_warp_slices(source_of(local_, layout_, share, columns), share.shape, chunk.first,
                     chunk.end, to);
  }

  void copy(const Chunk& chunk, const std::byte* from) const {
    gpu::copy(to_ + chunk.first_unit * kSliceUnit, from, at(chunk.units * kSliceUnit), stream_,
              " of the matrix");
  }

  const LocalSystem<T>& local_;
  const PeLayout& layout_;
  std::byte* to_;
  std::int64_t capacity_;
  gpu::Stream stream_;
  std::vector<gpu::PinnedArray<std::byte>> buffers_;
  std::vector<gpu::Event> sent_;
  std::size_t turn_ = 0;
};

}  // namespace

std::vector<gpu::DeviceArray<std::byte>> room_for_slices(const std::vector<PeLayout>& layouts,
                                                         const std::vector<int>& devices) {
  std::vector<gpu::DeviceArray<std::byte>> slices;
  for (std::size_t pe = 0; pe < layouts.size(); ++pe)
    slices.push_back(gpu::DeviceArray<std::byte>::uninitialised(
        devices[pe], at(layouts[pe].units * kSliceUnit)));
  return slices;
}

template <class T>
void upload_slices(const HaloPlan<T>& plan, const std::vector<PeLayout>& layouts,
                   const std::vector<int>& devices, const std::vector<std::byte*>& slices) {
  const std::size_t pes = layouts.size();
  std::vector<Queue> queues(pes);
  std::size_t most = 0;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    queues[pe].chunks = cut_into_chunks(layouts[pe], kChunk);
    most = std::max(most, queues[pe].chunks.size());
  }
  // Workers of PE 0, 1, ..., 0, 1, ...: each PE has one at least, and no more than it has chunks.
  const std::size_t for_each_pe =
      std::clamp<std::size_t>(at(available_cores()) / pes, 1, std::max<std::size_t>(most, 1));
  const auto caller = std::this_thread::get_id();
  in_parallel(static_cast<int>(pes * for_each_pe), [&](int k) {
    const std::size_t pe = at(k) % pes;
    Queue& queue = queues[pe];
    if (queue.next >= queue.chunks.size()) return;
    std::optional<gpu::OnDevice> here;
    if (std::this_thread::get_id() == caller)
      here.emplace(devices[pe]);
    else
      gpu::stay_on(devices[pe]);
    const std::int64_t capacity = std::min(kChunk, layouts[pe].units);
    Worker<T>(plan.local[pe], layouts[pe], slices[pe], devices[pe], capacity).work(queue);
  });
}

template void upload_slices(const HaloPlan<float>&, const std::vector<PeLayout>&,
                            const std::vector<int>&, const std::vector<std::byte*>&);
template void upload_slices(const HaloPlan<double>&, const std::vector<PeLayout>&,
                            const std::vector<int>&, const std::vector<std::byte*>&);

}  // namespace cpufree
