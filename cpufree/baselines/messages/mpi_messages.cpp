#include "cpufree/baselines/messages/mpi_messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/baselines/comm/mpi_calls.hpp"

namespace cpufree::baselines {

namespace {

constexpr int kTag = 1;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double value_of(int rank) { return 1.5 + rank; }

class HostMessageMemory final : public MessageMemory {
 public:
  explicit HostMessageMemory(std::int64_t bytes)
      : source_(at(bytes / 8), 0.0), target_(at(bytes / 8), 0.0) {}
  char* source() override { return reinterpret_cast<char*>(source_.data()); }
  char* target() override { return reinterpret_cast<char*>(target_.data()); }
  void before_send(std::int64_t, std::int64_t) override {}
  void after_receive(std::int64_t, std::int64_t) override {}
  void fill(double value) override { std::ranges::fill(source_, value); }
  void take(double* values, std::int64_t count) override {
    std::copy_n(target_.begin(), count, values);
    std::fill_n(target_.begin(), count, 0.0);
  }

 private:
  std::vector<double> source_, target_;
};

}  // namespace

std::unique_ptr<MessageMemory> make_host_message_memory(std::int64_t bytes) {
  return std::make_unique<HostMessageMemory>(bytes);
}

MpiMessages::MpiMessages(const std::string& kind, const std::vector<int>& gpus, std::int64_t bytes)
    : bytes_(bytes) {
  int started = 0, size = 0;
  check_mpi(MPI_Initialized(&started), "MPI_Initialized");
  if (started == 0) check_mpi(MPI_Init(nullptr, nullptr), "MPI_Init");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  require(size == 2, "messages of MPI go between 2 processes, not " + std::to_string(size));
  require(bytes_ >= 8 && bytes_ % 8 == 0, "messages of MPI have room for multiples of 8 bytes");
  require(kind == "host" || gpus.size() == 2, "messages between GPUs need two of them");
  if (kind == "direct" && mpi_gpu_aware() != GpuAware::yes)
    throw Unsupported("this MPI does not say that it takes addresses of GPU memory");
  memory_ = make_message_memory(kind, gpus.empty() ? 0 : gpus[at(rank_)], bytes_);
  memory_->fill(value_of(rank_));
}

std::string MpiMessages::broadcast(std::string text) {
  auto length = static_cast<int>(text.size());
  check_mpi(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  text.resize(at(length));
  check_mpi(MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return text;
}

void MpiMessages::finish() { check_mpi(MPI_Finalize(), "MPI_Finalize"); }

void MpiMessages::abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

std::vector<double> MpiMessages::times(const std::string& mode, std::int64_t bytes, int messages,
                                       int warm_ups, int repeats) {
  require(mode == "single" || mode == "window" || mode == "send",
          "messages of MPI are not measured in mode '" + mode + "'");
  require(messages >= 1 && warm_ups >= 0 && repeats >= 1,
          "messages and repeats of a way are 1 at least");
  require(bytes >= 8 && bytes % 8 == 0 && bytes * messages <= bytes_,
          "messages of " + std::to_string(bytes) + " bytes, " + std::to_string(messages) +
              " of them, do not fit into the memory of the way");
  for (int k = 0; k < warm_ups; ++k) static_cast<void>(once(mode, bytes, messages));
  std::vector<double> seconds;
  for (int k = 0; k < repeats; ++k) seconds.push_back(once(mode, bytes, messages));
  check_values(rank_ == 1 ? bytes * messages : mode == "single" ? bytes : 8);
  return seconds;
}

// One after the other: a send has ended when its values may be changed.
double MpiMessages::once(const std::string& mode, std::int64_t bytes, int messages) {
  const std::int64_t answer = mode == "single" ? bytes : 8;
  check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
  const auto begin = Clock::now();
  if (rank_ == 1) {
    for (int k = 0; k < messages; ++k) receive(k * bytes, bytes);
    send(0, answer);
    return 0.0;
  }
  for (int k = 0; k < messages; ++k) send(k * bytes, bytes);
  const double sent = since(begin);
  receive(0, answer);
  if (mode == "send") return sent;
  return mode == "single" ? since(begin) / 2 : since(begin);
}

void MpiMessages::send(std::int64_t place, std::int64_t bytes) {
  memory_->before_send(place, bytes);
  check_mpi(MPI_Send(memory_->source() + place, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, kTag,
                     MPI_COMM_WORLD),
            "MPI_Send");
}

void MpiMessages::receive(std::int64_t place, std::int64_t bytes) {
  check_mpi(MPI_Recv(memory_->target() + place, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, kTag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
  memory_->after_receive(place, bytes);
}

void MpiMessages::check_values(std::int64_t bytes) {
  std::vector<double> found(at(bytes / 8));
  memory_->take(found.data(), bytes / 8);
  const double right = value_of(1 - rank_);
  for (std::size_t k = 0; k < found.size(); ++k)
    if (found[k] != right)
      throw EngineError("a message of MPI: value " + std::to_string(k) + " arrived as " +
                        std::to_string(found[k]) + ", not as " + std::to_string(right));
}

}  // namespace cpufree::baselines
