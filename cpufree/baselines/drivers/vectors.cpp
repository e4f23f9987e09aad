#include "cpufree/baselines/drivers/vectors.hpp"

#include <chrono>
#include <optional>

#include "cpufree/base/error.hpp"
#include "cpufree/baselines/nccl_library.hpp"
#include "cpufree/gpu/graph.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree::baselines {

namespace {

constexpr double kLimit = 60.0;  // seconds
constexpr int kWarmUp = 10;
constexpr int kOfGraph = 20;  // all-reduces that a graph has

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

class VectorSums {
 public:
  explicit VectorSums(const VectorSumRun& run)
      : run_(run), library_(load_collectives(run.library)), comms_(run.devices.size(), nullptr) {
    for (const int device : run.devices) {
      streams_.emplace_back(device);
      events_.emplace_back(device);
      vectors_.emplace_back(device, at(run.count) * value_bytes());
    }
    expect(
        library_.init_all(comms_.data(), static_cast<int>(run.devices.size()), run.devices.data()),
        "ncclCommInitAll");
  }
  ~VectorSums() {
    for (CollComm comm : comms_)
      if (comm != nullptr) static_cast<void>(library_.destroy(comm));
  }
  VectorSums(const VectorSums&) = delete;
  VectorSums& operator=(const VectorSums&) = delete;

  double seconds() {
    check_sum();
    std::optional<gpu::Graph> graph;
    if (run_.graph)
      graph = gpu::Graph::record(streams_[0], [&] {
        join(0);
        for (int k = 0; k < kOfGraph; ++k) sum();
        join_back(0);
      });
    const int launches = run_.graph ? (run_.repeats + kOfGraph - 1) / kOfGraph : run_.repeats;
    const auto go = [&](int times) {
      for (int k = 0; k < times; ++k) graph ? graph->launch(streams_[0]) : sum();
      for (const gpu::Stream& stream : streams_) stream.drain(gpu::Deadline(kLimit), "all-reduces");
    };
    go(run_.graph ? 1 : kWarmUp);
    const auto start = std::chrono::steady_clock::now();
    go(launches);
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
    return all.count() / (launches * (run_.graph ? kOfGraph : 1));
  }

 private:
  std::size_t value_bytes() const { return run_.single ? sizeof(float) : sizeof(double); }
  void expect(int status, const char* call) const {
    if (status != 0)
      throw EngineError(std::string(call) + ": " + library_.error_text(status) +
                        "; NCCL_DEBUG=WARN in the environment makes NCCL say more");
  }

  // Other streams take part in what is recorded on stream `first`.
  void join(std::size_t first) const {
    const gpu::OnDevice here(streams_[first].device());
    streams_[first].record(events_[first]);
    for (std::size_t k = 0; k < streams_.size(); ++k)
      if (k != first) streams_[k].wait_for(events_[first]);
  }
  void join_back(std::size_t first) const {
    for (std::size_t k = 0; k < streams_.size(); ++k) {
      if (k == first) continue;
      const gpu::OnDevice here(streams_[k].device());
      streams_[k].record(events_[k]);
      streams_[first].wait_for(events_[k]);
    }
  }

  void sum() const {
    expect(library_.group_start(), "ncclGroupStart");
    for (std::size_t k = 0; k < streams_.size(); ++k) {
      const gpu::OnDevice here(streams_[k].device());
      expect(library_.all_reduce(vectors_[k].data(), vectors_[k].data(), at(run_.count),
                                 run_.single ? kCollFloat : kCollDouble, kCollSum, comms_[k],
                                 streams_[k]),
             "ncclAllReduce");
    }
    expect(library_.group_end(), "ncclGroupEnd");
  }

  // Vectors of which the sum is zero, so that none grows.
  template <class T>
  void check_as() {
    const auto last = static_cast<T>(streams_.size() - 1);
    for (std::size_t k = 0; k < streams_.size(); ++k) {
      const std::vector<T> values(at(run_.count), k == 0 ? last : T{-1});
      gpu::copy_to_device(streams_[k].device(), vectors_[k].data(), values.data(),
                          values.size() * sizeof(T));
    }
    sum();
    for (const gpu::Stream& stream : streams_) stream.drain(gpu::Deadline(kLimit), "an all-reduce");
    std::vector<T> values(at(run_.count));
    gpu::copy_to_host(values.data(), vectors_.back().data(), values.size() * sizeof(T));
    for (const T value : values)
      if (value != T{0}) throw EngineError("the collective library gave a wrong sum");
  }
  void check_sum() { run_.single ? check_as<float>() : check_as<double>(); }

  VectorSumRun run_;
  CollLibrary library_;
  std::vector<gpu::Stream> streams_;
  std::vector<gpu::Event> events_;
  std::vector<gpu::DeviceArray<std::byte>> vectors_;
  std::vector<CollComm> comms_;
};

}  // namespace

double sum_vectors(const VectorSumRun& run) {
  require(!run.devices.empty() && run.count >= 1 && run.repeats >= 1,
          "an all-reduce has GPUs, values and repeats");
  return VectorSums(run).seconds();
}

}  // namespace cpufree::baselines
