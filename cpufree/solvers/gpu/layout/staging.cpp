#include "cpufree/solvers/gpu/layout/staging.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/gpu/event.hpp"

namespace cpufree {

namespace {

// Bytes of a piece. The driver takes copies one after the other, and 8 us for each, beside what the
// threads do: 700 MB arrive at 18 GB/s in pieces of a quarter of a megabyte, at 41 GB/s in those of
// one, at 48 GB/s in those of four, by 12 threads (one H200). But pinning takes 0.6 ms a megabyte.
constexpr std::size_t kLeastPart = std::size_t{1} << 18, kMostPart = std::size_t{1} << 20;
constexpr std::size_t kMostWorkers = 12;  // of a device: more find the bus busy
constexpr std::size_t kTurns = 2;         // buffers of a worker, used in turn

// The pieces for one device, taken by several workers.
struct StagingQueue {
  std::size_t workers = 1;
  std::size_t part = kLeastPart;  // bytes of a piece, at most
  std::vector<StagedCopy> pieces;
  std::atomic<std::size_t> next{0};
};

// Those of each device, in pieces.
std::map<int, StagingQueue> queues_of(const std::vector<StagedCopy>& copies) {
  std::map<int, std::size_t> bytes;
  for (const StagedCopy& copy : copies) bytes[copy.device] += copy.bytes;
  std::map<int, StagingQueue> queues;
  for (const auto& [device, all] : bytes) {
    StagingQueue& queue = queues[device];
    queue.workers = std::clamp<std::size_t>(at(available_cores()) / bytes.size(), 1, kMostWorkers);
    // Some pieces for each worker, of whole pages.
    queue.part = std::clamp(all / (kTurns * queue.workers) / 4096 * 4096, kLeastPart, kMostPart);
  }
  for (const StagedCopy& copy : copies) {
    StagingQueue& queue = queues[copy.device];
    for (std::size_t done = 0; done < copy.bytes; done += queue.part)
      queue.pieces.push_back({copy.device, static_cast<std::byte*>(copy.to) + done,
                              static_cast<const std::byte*>(copy.from) + done,
                              std::min(queue.part, copy.bytes - done)});
  }
  for (auto& [device, queue] : queues)
    queue.workers = std::min(queue.workers, std::max<std::size_t>(queue.pieces.size(), 1));
  return queues;
}

}  // namespace

class Staging::Worker {
 public:
  Worker(int device, std::byte* buffers, std::size_t room)
      : stream_(device),
        buffers_(buffers),
        room_(room),
        there_{gpu::Event(device), gpu::Event(device)} {}
  // Copies that are under way use the buffers.
  ~Worker() { stream_.settle(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  static constexpr const char* kWhat = "a copy of a matrix or a vector";

  void send(StagingQueue& queue) {
    std::size_t turn = 0;
    for (std::size_t k = queue.next++; k < queue.pieces.size(); k = queue.next++, ++turn) {
      const StagedCopy& piece = queue.pieces[k];
      there_[turn % kTurns].wait(stream_.device(),
                                 kWhat);  // of an event that was never recorded: at once
      std::memcpy(buffer(turn), piece.from, piece.bytes);
      begin(turn, piece.to, buffer(turn), piece.bytes);
    }
    stream_.wait(kWhat);
  }

  void fetch(StagingQueue& queue) {
    std::array<const StagedCopy*, kTurns> coming{};
    const auto take = [&](std::size_t turn) {
      const StagedCopy* const piece = std::exchange(coming[turn % kTurns], nullptr);
      if (piece == nullptr) return;
      there_[turn % kTurns].wait(stream_.device(), kWhat);
      std::memcpy(piece->to, buffer(turn), piece->bytes);
    };
    std::size_t turn = 0;
    for (std::size_t k = queue.next++; k < queue.pieces.size(); k = queue.next++, ++turn) {
      take(turn);
      coming[turn % kTurns] = &queue.pieces[k];
      begin(turn, buffer(turn), queue.pieces[k].from, queue.pieces[k].bytes);
    }
    for (std::size_t last = turn + kTurns; turn < last; ++turn) take(turn);
  }

 private:
  std::byte* buffer(std::size_t turn) const { return buffers_ + turn % kTurns * room_; }
  void begin(std::size_t turn, void* to, const void* from, std::size_t bytes) {
    gpu::copy(to, from, bytes, stream_, " between host and GPU");
    stream_.record(there_[turn % kTurns]);
  }

  gpu::Stream stream_;
  std::byte* buffers_;
  std::size_t room_;  // bytes of each
  std::array<gpu::Event, kTurns> there_;
};

Staging::Staging() = default;
Staging::~Staging() = default;
Staging::Staging(Staging&&) noexcept = default;

Staging::Workers& Staging::workers_of(int device, std::size_t count, std::size_t part) {
  Workers& workers = workers_[device];
  if (workers.each.size() < count || workers.part < part) {
    count = std::max(count, workers.each.size());
    workers.part = std::max(workers.part, part);
    workers.each.clear();
    workers.buffers = {};  // before there are others
    workers.buffers = gpu::PinnedArray<std::byte>(count * kTurns * workers.part);
    workers.each.resize(count);
  }
  return workers;
}

void Staging::run(const std::vector<StagedCopy>& copies, bool to_device) {
  struct Job {
    int device;
    StagingQueue* queue;
    std::unique_ptr<Worker>* worker;
    std::byte* buffers;
    std::size_t room;
  };
  auto queues = queues_of(copies);
  std::vector<Job> jobs;
  for (auto& [device, queue] : queues) {
    Workers& workers = workers_of(device, queue.workers, queue.part);
    for (std::size_t k = 0; k < queue.workers; ++k)
      jobs.push_back({device, &queue, &workers.each[k],
                      workers.buffers.data() + k * kTurns * workers.part, workers.part});
  }
  const auto caller = std::this_thread::get_id();
  in_parallel(static_cast<int>(jobs.size()), [&](int k) {
    const Job& job = jobs[at(k)];
    std::optional<gpu::OnDevice> here;
    if (std::this_thread::get_id() == caller)
      here.emplace(job.device);
    else
      gpu::stay_on(job.device);
    if (!*job.worker) *job.worker = std::make_unique<Worker>(job.device, job.buffers, job.room);
    to_device ? (*job.worker)->send(*job.queue) : (*job.worker)->fetch(*job.queue);
  });
}

namespace {
// Calls f(staging) with the one that set-ups share, or another one.
template <class F>
void with_shared(F&& f) {
  static std::mutex busy;
  static Staging& shared = *new Staging;  // never freed: CUDA ends before statics do
  Staging other;
  const std::unique_lock alone(busy, std::try_to_lock);
  f(alone ? shared : other);
}
}  // namespace

void send_staged(const std::vector<StagedCopy>& copies) {
  with_shared([&](Staging& staging) { staging.send(copies); });
}
void fetch_staged(const std::vector<StagedCopy>& copies) {
  with_shared([&](Staging& staging) { staging.fetch(copies); });
}

}  // namespace cpufree
