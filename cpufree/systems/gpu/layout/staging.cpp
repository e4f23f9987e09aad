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

constexpr std::size_t kPart = std::size_t{1} << 18;  // bytes
constexpr std::size_t kMostStagers = 12;             // of a device: more find the bus busy
constexpr std::size_t kTurns = 2;                    // buffers of a worker, used in turn

// The pieces for one device, taken by several workers.
struct StagingQueue {
  std::vector<StagedCopy> pieces;
  std::atomic<std::size_t> next{0};
};

class Stager {
 public:
  Stager(int device, std::byte* buffers)
      : stream_(device), buffers_(buffers), sent_{gpu::Event(device), gpu::Event(device)} {}
  // Copies that are under way read the buffers.
  ~Stager() { stream_.settle(); }
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  void work(StagingQueue& queue) {
    std::size_t turn = 0;
    for (std::size_t k = queue.next++; k < queue.pieces.size(); k = queue.next++, ++turn) {
      const StagedCopy& piece = queue.pieces[k];
      std::byte* const buffer = buffers_ + turn % kTurns * kPart;
      gpu::Event& sent = sent_[turn % kTurns];
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
  std::array<gpu::Event, kTurns> sent_;
};

// Those of each device, in pieces.
std::map<int, StagingQueue> queues_of(const std::vector<StagedCopy>& copies) {
  std::map<int, StagingQueue> queues;
  for (const StagedCopy& copy : copies)
    for (std::size_t done = 0; done < copy.bytes; done += kPart)
      queues[copy.device].pieces.push_back({copy.device, static_cast<std::byte*>(copy.to) + done,
                                            static_cast<const std::byte*>(copy.from) + done,
                                            std::min(kPart, copy.bytes - done)});
  return queues;
}

}  // namespace

void copy_staged(const std::vector<StagedCopy>& copies) {
  auto queues = queues_of(copies);
  if (queues.empty()) return;
  std::vector<StagingQueue*> of_devices;
  std::vector<int> devices;
  std::size_t most = 0;
  for (auto& [device, queue] : queues) {
    devices.push_back(device);
    of_devices.push_back(&queue);
    most = std::max(most, queue.pieces.size());
  }
  const std::size_t each = std::clamp<std::size_t>(at(available_cores()) / devices.size(), 1,
                                                   std::min(most, kMostStagers));
  const std::size_t workers = each * devices.size();
  const gpu::PinnedArray<std::byte> pinned(workers * kTurns * kPart);
  const auto caller = std::this_thread::get_id();
  in_parallel(static_cast<int>(workers), [&](int k) {
    const std::size_t place = at(k) % devices.size();
    std::optional<gpu::OnDevice> here;
    if (std::this_thread::get_id() == caller)
      here.emplace(devices[place]);
    else
      gpu::stay_on(devices[place]);
    Stager(devices[place], pinned.data() + at(k) * kTurns * kPart).work(*of_devices[place]);
  });
}

}  // namespace cpufree
