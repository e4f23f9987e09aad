// Devices, memory, streams, events and graphs of the baselines, owned. All waits are bounded.
#pragma once

#include <gpu_names.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree::baselines {

// Throws EngineError that names the call and what the runtime says of it.
inline void check(gpuError_t status, const char* call) {
  if (status == gpuSuccess) return;
  static_cast<void>(gpuGetLastError());  // told here, and not again elsewhere
  throw EngineError(std::string(call) + ": " + gpuGetErrorString(status));
}

// Makes `device` current; puts the one before back.
class OnDevice {
 public:
  explicit OnDevice(int device) : device_(device) {
    check(gpuGetDevice(&before_), "gpuGetDevice");
    if (device_ != before_) check(gpuSetDevice(device), "gpuSetDevice");
  }
  ~OnDevice() {
    if (device_ != before_) static_cast<void>(gpuSetDevice(before_));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int device_;
  int before_ = 0;
};

// The end of a wait.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds), start_(Clock::now()) {}
  double seconds() const { return seconds_; }
  bool over() const {
    return std::chrono::duration<double>(Clock::now() - start_).count() > seconds_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_;
  Clock::time_point start_;
};

// A wait of the host outlasted its bound: what had been launched may never end.
class Stuck : public EngineError {
 public:
  using EngineError::EngineError;
};
[[noreturn]] inline void give_up(const Deadline& deadline, const std::string& what) {
  throw Stuck("the host waited longer than " + std::to_string(deadline.seconds()) + " s for " +
              what + "; a GPU or a peer does not answer. If it was merely slow, raise wait_limit");
}

class Event {
 public:
  explicit Event(int device, bool timed = false) {
    const OnDevice here(device);
    check(timed ? gpuEventCreate(&event_) : gpuEventCreateUntimed(&event_), "gpuEventCreate");
  }
  ~Event() {
    if (event_ != nullptr) static_cast<void>(gpuEventDestroy(event_));
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  operator gpuEvent_t() const { return event_; }

  void wait(const Deadline& deadline, const char* what) const {
    gpuError_t status = gpuSuccess;
    for (unsigned look = 1; (status = gpuEventQuery(event_)) == gpuErrorNotReady; ++look)
      if (look % 64 == 0 && deadline.over()) give_up(deadline, what);
    check(status, what);
  }

 private:
  gpuEvent_t event_ = nullptr;
};

// A stream that waits for no other one, of a device that is current when it is used.
class Stream {
 public:
  explicit Stream(int device, bool urgent = false) : device_(device) {
    const OnDevice here(device);
    check(gpuMultiprocessors(&multiprocessors_, device), "gpuMultiprocessors");
    check(urgent ? gpuStreamCreateUrgent(&stream_) : gpuStreamCreate(&stream_), "gpuStreamCreate");
  }
  ~Stream() {
    if (stream_ != nullptr) static_cast<void>(gpuStreamDestroy(stream_));
  }
  Stream(Stream&& other) noexcept
      : device_(other.device_),
        multiprocessors_(other.multiprocessors_),
        stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  operator gpuStream_t() const { return stream_; }
  int device() const { return device_; }
  int multiprocessors() const { return multiprocessors_; }

  void record(const Event& event) const { check(gpuEventRecord(event, stream_), "gpuEventRecord"); }
  void wait_for(const Event& event) const {
    check(gpuStreamWaitEvent(stream_, event, 0), "gpuStreamWaitEvent");
  }
  // The host waits until all of it is done.
  void drain(const Deadline& deadline, const char* what) const {
    gpuError_t status = gpuSuccess;
    for (unsigned look = 1; (status = gpuStreamQuery(stream_)) == gpuErrorNotReady; ++look)
      if (look % 64 == 0 && deadline.over()) give_up(deadline, what);
    check(status, what);
  }

 private:
  int device_;
  int multiprocessors_ = 1;
  gpuStream_t stream_ = nullptr;
};

inline constexpr double kCopyLimit = 600.0;  // seconds for set-up copies, far beyond any

// An array on one device.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // Zeros.
  DeviceArray(const Stream& stream, std::size_t count) : DeviceArray(allocate(stream, count)) {
    clear(stream);
    stream.drain(Deadline(kCopyLimit), "clearing memory");
  }
  template <class V>
    requires requires(const V& values) { values.data(); }
  DeviceArray(const Stream& stream, const V& values)
      : DeviceArray(allocate(stream, values.size())) {
    upload(stream, values.data(), values.size());
    stream.drain(Deadline(kCopyLimit), "a copy to the GPU");
  }

  // Memory of the GPU that somebody else keeps.
  static DeviceArray borrow(T* values, std::size_t count) {
    DeviceArray array;
    array.data_ = {values, Free{false}};
    array.count_ = count;
    return array;
  }

  T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }

  void clear(const Stream& stream) const {
    const OnDevice here(stream.device());
    check(gpuMemsetAsync(data_.get(), 0, count_ * sizeof(T), stream), "gpuMemsetAsync");
  }
  // In the order of the stream; `values` must stay until it is drained.
  void upload(const Stream& stream, const T* values, std::size_t count) const {
    if (count == 0) return;
    const OnDevice here(stream.device());
    check(gpuMemcpyAsync(data_.get(), values, count * sizeof(T), gpuMemcpyDefault, stream),
          "gpuMemcpyAsync");
  }
  void download(const Stream& stream, T* values, std::size_t count) const {
    if (count == 0) return;
    const OnDevice here(stream.device());
    check(gpuMemcpyAsync(values, data_.get(), count * sizeof(T), gpuMemcpyDefault, stream),
          "gpuMemcpyAsync");
    stream.drain(Deadline(kCopyLimit), "a copy from the GPU");
  }

 private:
  struct Free {
    bool mine = true;
    void operator()(T* p) const {
      if (mine) static_cast<void>(gpuFree(p));
    }
  };
  static DeviceArray allocate(const Stream& stream, std::size_t count) {
    const OnDevice here(stream.device());
    const std::size_t bytes = (count == 0 ? 1 : count) * sizeof(T);
    void* p = nullptr;
    const gpuError_t status = gpuMalloc(&p, bytes);
    if (status == gpuErrorMemoryAllocation) {
      static_cast<void>(gpuGetLastError());
      throw OutOfMemory("GPU " + std::to_string(stream.device()) + " has no room for " +
                        std::to_string(bytes) +
                        " bytes more; use more GPUs, or free what else is on this one");
    }
    check(status, "gpuMalloc");
    DeviceArray array;
    array.data_.reset(static_cast<T*>(p));
    array.count_ = count;
    return array;
  }

  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

// Pinned host memory that kernels reach at the same address; zeroed.
template <class T>
class PinnedArray {
 public:
  PinnedArray() = default;
  explicit PinnedArray(std::size_t count) : count_(count) {
    void* p = nullptr;
    const std::size_t bytes = (count == 0 ? 1 : count) * sizeof(T);
    const gpuError_t status = gpuHostAlloc(&p, bytes);
    if (status == gpuErrorMemoryAllocation) {
      static_cast<void>(gpuGetLastError());
      throw OutOfMemory("the host has no room for " + std::to_string(bytes) +
                        " bytes of pinned memory; free some, or raise the limit (ulimit -l)");
    }
    check(status, "gpuHostAlloc");
    data_.reset(static_cast<T*>(p));
    for (std::size_t i = 0; i < count; ++i) data_.get()[i] = T{};
  }
  T* data() const { return data_.get(); }
  T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return count_; }

 private:
  struct Free {
    void operator()(T* p) const { static_cast<void>(gpuFreeHost(p)); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

// What was recorded, ready to be launched again and again.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept
      : graph_(std::exchange(other.graph_, nullptr)), exec_(std::exchange(other.exec_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(exec_, other.exec_);
    return *this;
  }
  ~Graph() {
    if (exec_ != nullptr) static_cast<void>(gpuGraphExecDestroy(exec_));
    if (graph_ != nullptr) static_cast<void>(gpuGraphDestroy(graph_));
  }

  // What `work` does on `stream`, and on streams that wait for it and are waited for again.
  template <class F>
  static Graph record(const Stream& stream, F&& work) {
    const OnDevice here(stream.device());
    Graph graph;
    check(gpuStreamBeginCapture(stream), "gpuStreamBeginCapture");
    end_after(stream, graph.graph_, work);
    graph.prepare(stream);
    return graph;
  }

  // The same as the body of a loop, which a kernel of it ends by `set_loop(handle, false)`. There
  // is one graph for each stream, all recorded together: work(handles).
  template <class F>
  static std::vector<Graph> record_loops(const std::vector<const Stream*>& streams, F&& work) {
    std::vector<Graph> graphs(streams.size());
    std::vector<gpuLoopHandle_t> handles(streams.size());
    std::size_t begun = 0;
    std::size_t ended = 0;
    gpuGraph_t body = nullptr;
    try {
      for (; begun < streams.size(); ++begun) {
        Graph& graph = graphs[begun];
        const OnDevice here(streams[begun]->device());
        check(gpuGraphCreate(&graph.graph_, 0), "gpuGraphCreate");
        check(gpuGraphLoopHandle(&handles[begun], graph.graph_), "gpuGraphLoopHandle");
        check(gpuGraphAddLoop(graph.graph_, handles[begun], &body), "gpuGraphAddLoop");
        check(gpuStreamBeginCaptureInto(*streams[begun], body), "gpuStreamBeginCaptureInto");
      }
      work(handles);
      while (ended < begun) {
        const OnDevice here(streams[ended]->device());
        check(gpuStreamEndCapture(*streams[ended++], &body), "gpuStreamEndCapture");
      }
    } catch (...) {  // what is still captured would refuse everything else
      for (; ended < begun; ++ended) static_cast<void>(gpuStreamEndCapture(*streams[ended], &body));
      throw;
    }
    // Not before: a thread that captures may not do what this does.
    for (std::size_t k = 0; k < streams.size(); ++k) {
      const OnDevice here(streams[k]->device());
      graphs[k].prepare(*streams[k]);
    }
    return graphs;
  }

  void launch(const Stream& stream) const {
    const OnDevice here(stream.device());
    check(gpuGraphLaunch(exec_, stream), "gpuGraphLaunch");
  }

 private:
  template <class F>
  static void end_after(const Stream& stream, gpuGraph_t& graph, F&& work) {
    try {
      work();
    } catch (...) {
      static_cast<void>(gpuStreamEndCapture(stream, &graph));
      throw;
    }
    check(gpuStreamEndCapture(stream, &graph), "gpuStreamEndCapture");
  }
  void prepare(const Stream& stream) {
    check(gpuGraphInstantiate(&exec_, graph_), "gpuGraphInstantiate");
    check(gpuGraphUpload(exec_, stream), "gpuGraphUpload");
    stream.drain(Deadline(kCopyLimit), "the upload of a graph");
  }

  gpuGraph_t graph_ = nullptr;
  gpuGraphExec_t exec_ = nullptr;
};

}  // namespace cpufree::baselines
