#include "cpufree/systems/gpu/layout/staging.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;  // bytes
constexpr std::size_t kMostWorkers = 12;              // of a device: more find the bus busy
constexpr std::size_t kBuffers = 2;  // of a worker: one is filled while the other is on its way

// The pieces for one device, taken by several workers.
struct Queue {
  std::vector<StagedCopy> pieces;
  std::atomic<std::size_t> next{0};
};

class Worker {
 public:
  Worker(int device, std::byte* buffers)
      : stream_(device), buffers_(buffers), sent_{gpu::Event(device), gpu::Event(device)} {}
  // Copies that are under way read the buffers.
  ~Worker() { stream_.settle(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void work(Queue& queue) {
    std::size_t turn = 0;
    for (std::size_t k = queue.next++; k < queue.pieces.size(); k = queue.next++, ++turn) {
      const StagedCopy& piece = queue.pieces[k];
      std::byte* const buffer = buffers_ + turn % kBuffers * kPiece;
      gpu::Event& sent = sent_[turn % kBuffers];
      sent.wait();  // of an event that was never recorded: at once
      std::memcpy(buffer, piece.from, piece.bytes);
      gpu::copy(piece.to, buffer, piece.bytes, stream_, " of the matrix");
      stream_.record(sent);
    }
    stream_.wait();
  }

 private:
  gpu::Stream stream_;
  std::byte* buffers_;
  std::array<gpu::Event, kBuffers> sent_;
};

// Those of each device, in pieces.
std::map<int, Queue> queues_of(const std::vector<StagedCopy>& copies) {
  std::map<int, Queue> queues;
  for (const StagedCopy& copy : copies)
    for (std::size_t done = 0; done < copy.bytes; done += kPiece)
      queues[copy.device].pieces.push_back({copy.device, static_cast<std::byte*>(copy.to) + done,
                                            static_cast<const std::byte*>(copy.from) + done,
                                            std::min(kPiece, copy.bytes - done)});
  return queues;
}

}  // namespace

void copy_staged(const std::vector<StagedCopy>& copies) {
  auto queues = queues_of(copies);
  if (queues.empty()) return;
  std::vector<Queue*> of_devices;
  std::vector<int> devices;
  std::size_t most = 0;
  for (auto& [device, queue] : queues) {
    devices.push_back(device);
    of_devices.push_back(&queue);
    most = std::max(most, queue.pieces.size());
  }
  const std::size_t each = std::clamp<std::size_t>(at(available_cores()) / devices.size(), 1,
                                                   std::min(most, kMostWorkers));
  const std::size_t workers = each * devices.size();
  const gpu::PinnedArray<std::byte> pinned(workers * kBuffers * kPiece);
  const auto caller = std::this_thread::get_id();
  in_parallel(static_cast<int>(workers), [&](int k) {
    const std::size_t place = at(k) % devices.size();
    std::optional<gpu::OnDevice> here;
    if (std::this_thread::get_id() == caller)
      here.emplace(devices[place]);
    else
      gpu::stay_on(devices[place]);
    Worker(devices[place], pinned.data() + at(k) * kBuffers * kPiece).work(*of_devices[place]);
  });
}

}  // namespace cpufree
