#include "cpufree/solvers/gpu/upload.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

// Units of a chunk: large enough for the bus, small enough that the pinned buffers of all workers
// together are quickly had; and those of a slice by itself that buffers are made for.
constexpr std::int64_t kChunk = (std::int64_t{1} << 18) / kSliceUnit;
constexpr std::int64_t kLargeSlice = 4 * kChunk;
constexpr std::size_t kBuffers = 2;  // of a worker: one is written while the other is on its way
// Of a PE: together they fill slices about as fast as the bus takes them.
constexpr std::size_t kMostWorkers = 16;
constexpr std::size_t kLeastChunks = 4;  // of a worker: its stream has to be made, too

// The chunks of one PE, taken by several workers.
struct Queue {
  std::vector<Chunk> chunks;
  std::atomic<std::size_t> next{0};
};

// One core's work for one PE.
template <class T>
class Worker {
 public:
  // `buffers`: kBuffers of `capacity` units each, pinned.
  Worker(const LocalSystem<T>& local, const PeLayout& layout, std::byte* to, int device,
         std::byte* buffers, std::int64_t capacity)
      : local_(local),
        layout_(layout),
        to_(to),
        capacity_(capacity),
        stream_(device),
        buffers_(buffers),
        sent_{gpu::Event(device), gpu::Event(device)} {}
  // Copies that are under way read the buffers.
  ~Worker() { stream_.settle(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  static constexpr const char* kWhat = "slices on their way to it";

  void work(Queue& queue) {
    for (std::size_t k = queue.next++; k < queue.chunks.size(); k = queue.next++)
      if (queue.chunks[k].units > capacity_)
        send_large(queue.chunks[k]);
      else
        send(queue.chunks[k]);
    stream_.wait(kWhat);
  }

 private:
  void send(const Chunk& chunk) {
    const std::size_t turn = turn_++ % kBuffers;
    std::byte* const buffer = buffers_ + turn * at(capacity_ * kSliceUnit);
    sent_[turn].wait(stream_.device(), kWhat);  // of an event that was never recorded: at once
    fill(chunk, buffer);
    copy(chunk, buffer);
    stream_.record(sent_[turn]);
  }

  // A slice with very long rows, which no buffer holds.
  void send_large(const Chunk& chunk) {
    std::vector<std::byte> buffer(at(chunk.units * kSliceUnit));
    fill(chunk, buffer.data());
    copy(chunk, buffer.data());
    stream_.wait(kWhat);
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
  std::byte* buffers_;
  std::array<gpu::Event, kBuffers> sent_;
  std::size_t turn_ = 0;
};

}  // namespace

template <class T>
void upload_slices(const HaloPlan<T>& plan, const std::vector<PeLayout>& layouts,
                   const std::vector<int>& devices, const std::vector<std::byte*>& slices) {
  const std::size_t pes = layouts.size();
  std::vector<Queue> queues(pes);
  std::size_t most = 0;
  std::int64_t capacity = 1;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    queues[pe].chunks = cut_into_chunks(layouts[pe], kChunk);
    most = std::max(most, queues[pe].chunks.size());
    for (const Chunk& chunk : queues[pe].chunks)
      if (chunk.units <= kLargeSlice) capacity = std::max(capacity, chunk.units);
  }
  // Workers of PE 0, 1, ..., 0, 1, ...: each PE has one at least.
  const std::size_t for_each_pe = std::clamp<std::size_t>(
      std::min(at(available_cores()) / pes, most / kLeastChunks), 1, kMostWorkers);
  const std::size_t workers = pes * for_each_pe;
  // One allocation: the driver pins memory for one thread at a time, and takes its time for each.
  const std::size_t own = kBuffers * at(capacity * kSliceUnit);
  const gpu::PinnedArray<std::byte> pinned(workers * own);
  const auto caller = std::this_thread::get_id();
  in_parallel(static_cast<int>(workers), [&](int k) {
    const std::size_t pe = at(k) % pes;
    Queue& queue = queues[pe];
    if (queue.next >= queue.chunks.size()) return;
    std::optional<gpu::OnDevice> here;
    if (std::this_thread::get_id() == caller)
      here.emplace(devices[pe]);
    else
      gpu::stay_on(devices[pe]);
    Worker<T>(plan.local[pe], layouts[pe], slices[pe], devices[pe], pinned.data() + at(k) * own,
              capacity)
        .work(queue);
  });
}

template void upload_slices(const HaloPlan<float>&, const std::vector<PeLayout>&,
                            const std::vector<int>&, const std::vector<std::byte*>&);
template void upload_slices(const HaloPlan<double>&, const std::vector<PeLayout>&,
                            const std::vector<int>&, const std::vector<std::byte*>&);

}  // namespace cpufree
