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

constexpr std::size_t kPart = std::size_t{1} << 18;  // bytes
constexpr std::size_t kMostWorkers = 12;             // of a device: more find the bus busy
constexpr std::size_t kTurns = 2;                    // buffers of a worker, used in turn

// The pieces for one device, taken by several workers.
struct StagingQueue {
  std::vector<StagedCopy> pieces;
  std::atomic<std::size_t> next{0};
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

class Staging::Worker {
 public:
  Worker(int device, std::byte* buffers)
      : stream_(device), buffers_(buffers), there_{gpu::Event(device), gpu::Event(device)} {}
  // Copies that are under way use the buffers.
  ~Worker() { stream_.settle(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void send(StagingQueue& queue) {
    std::size_t turn = 0;
    for (std::size_t k = queue.next++; k < queue.pieces.size(); k = queue.next++, ++turn) {
      const StagedCopy& piece = queue.pieces[k];
      there_[turn % kTurns].wait();  // of an event that was never recorded: at once
      std::memcpy(buffer(turn), piece.from, piece.bytes);
      begin(turn, piece.to, buffer(turn), piece.bytes);
    }
    stream_.wait();
  }

  void fetch(StagingQueue& queue) {
    std::array<const StagedCopy*, kTurns> coming{};
    const auto take = [&](std::size_t turn) {
      const StagedCopy* const piece = std::exchange(coming[turn % kTurns], nullptr);
      if (piece == nullptr) return;
      there_[turn % kTurns].wait();
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
  std::byte* buffer(std::size_t turn) const { return buffers_ + turn % kTurns * kPart; }
  void begin(std::size_t turn, void* to, const void* from, std::size_t bytes) {
    gpu::copy(to, from, bytes, stream_, " between host and GPU");
    stream_.record(there_[turn % kTurns]);
  }

  gpu::Stream stream_;
  std::byte* buffers_;
  std::array<gpu::Event, kTurns> there_;
};

Staging::Staging() = default;
Staging::~Staging() = default;
Staging::Staging(Staging&&) noexcept = default;

Staging::Workers& Staging::workers_of(int device, std::size_t count) {
  Workers& workers = workers_[device];
  if (workers.each.size() < count) {
    workers.each.clear();
    workers.buffers = gpu::PinnedArray<std::byte>(count * kTurns * kPart);
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
  };
  auto queues = queues_of(copies);
  std::vector<Job> jobs;
  for (auto& [device, queue] : queues) {
    const std::size_t count = std::clamp<std::size_t>(at(available_cores()) / queues.size(), 1,
                                                      std::min(queue.pieces.size(), kMostWorkers));
    Workers& workers = workers_of(device, count);
    for (std::size_t k = 0; k < count; ++k)
      jobs.push_back(
          {device, &queue, &workers.each[k], workers.buffers.data() + k * kTurns * kPart});
  }
  const auto caller = std::this_thread::get_id();
  in_parallel(static_cast<int>(jobs.size()), [&](int k) {
    const Job& job = jobs[at(k)];
    std::optional<gpu::OnDevice> here;
    if (std::this_thread::get_id() == caller)
      here.emplace(job.device);
    else
      gpu::stay_on(job.device);
    if (!*job.worker) *job.worker = std::make_unique<Worker>(job.device, job.buffers);
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
