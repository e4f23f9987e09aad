#include "cpufree/probes/gpu/host_ways.hpp"

#include <cstring>
#include <tuple>

#include "cpufree/base/index.hpp"
#include "cpufree/gpu/graph.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/probes/gpu/kernel.hpp"
#include "cpufree/probes/gpu/timed_way.hpp"

namespace cpufree {

namespace {

// Memory of another process, or of this one.
class Target {
 public:
  Target(int device, const HostWaySpec& spec) {
    if (spec.way != "ipc") {
      own_ = gpu::DeviceArray<std::byte>(device, at(spec.bytes));
      data_ = own_.data();
      return;
    }
    gpuIpcMemHandle_t handle;
    require(spec.handle.size() == sizeof(handle),
            "the way ipc takes the handle of another process's memory");
    std::memcpy(&handle, spec.handle.data(), sizeof(handle));
    const gpu::OnDevice here(device);
    gpu::check_call(gpuIpcOpenMemHandle(&opened_, handle), "IpcOpenMemHandle",
                    " (memory of another process)");
    data_ = static_cast<std::byte*>(opened_);
  }
  ~Target() {
    if (opened_ != nullptr) static_cast<void>(gpuIpcCloseMemHandle(opened_));
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  std::byte* data() const { return data_; }

 private:
  gpu::DeviceArray<std::byte> own_;
  void* opened_ = nullptr;
  std::byte* data_ = nullptr;
};

// The copy engine, on a stream of the sender; of a get, of the receiver.
class CopyWay : public TimedWay {
 public:
  explicit CopyWay(const HostWaySpec& spec)
      : TimedWay(spec),
        stream_(spec.way == "copy-get" ? to() : from()),
        source_(from(), at(spec.bytes)),
        target_(to(), spec) {
    const gpu::OnDevice here(stream_.device());
    launch_nothing(stream_);  // loaded now
    stream_.drain(gpu::Deadline(gpu::kCopyLimit), "the first launch");
  }

 protected:
  double once(const HostOrder& order) override {
    const gpu::OnDevice here(stream_.device());
    const gpu::Deadline deadline(order.wait_limit);
    const auto drain = [&] { stream_.drain(deadline, "the work of a stream"); };
    if (order.mode == "single" || order.mode == "window")
      return seconds_of([&] { copy_all(order), drain(); });
    if (order.mode == "launch") return seconds_of([&] { launch_all(order), drain(); });
    if (order.mode != "send" && order.mode != "queue") refuse(order);
    const double spent =
        seconds_of([&] { order.mode == "send" ? copy_all(order) : launch_all(order); });
    drain();
    return spent;
  }
  void copy_all(const HostOrder& order) const {
    for (int k = 0; k < order.messages; ++k)
      gpu::copy(target_.data() + k * order.bytes, source_.data() + k * order.bytes, at(order.bytes),
                stream_);  // which a graph takes, too: a copy between named GPUs it does not
  }
  void launch_all(const HostOrder& order) const {
    for (int k = 0; k < order.messages; ++k) launch_nothing(stream_);
  }

  gpu::Stream stream_;
  gpu::DeviceArray<std::byte> source_;
  Target target_;
};

// The same, recorded before: what is timed is one launch of a graph.
class GraphWay final : public CopyWay {
 public:
  using CopyWay::CopyWay;

 protected:
  double once(const HostOrder& order) override {
    const bool kernels = order.mode == "launch" || order.mode == "queue";
    const bool call = order.mode == "send" || order.mode == "queue";
    if (!kernels && !call && order.mode != "single" && order.mode != "window") refuse(order);
    const gpu::OnDevice here(from());
    prepare(order, kernels);
    const gpu::Deadline deadline(order.wait_limit);
    const auto drain = [&] { stream_.drain(deadline, "a graph"); };
    if (!call) return seconds_of([&] { graph_.launch(stream_), drain(); });
    const double spent = seconds_of([&] { graph_.launch(stream_); });
    drain();
    return spent;
  }

 private:
  void prepare(const HostOrder& order, bool kernels) {
    const std::tuple wanted(kernels, kernels ? 0 : order.bytes, order.messages);
    if (wanted == recorded_) return;
    graph_ = gpu::Graph::record(stream_, [&] { kernels ? launch_all(order) : copy_all(order); });
    recorded_ = wanted;
  }

  gpu::Graph graph_;
  std::tuple<bool, std::int64_t, int> recorded_{false, 0, 0};
};

// Pages that the host has written are brought to the GPU whose kernel reads them.
class ManagedWay final : public TimedWay {
 public:
  explicit ManagedWay(const HostWaySpec& spec)
      : TimedWay(spec), stream_(from()), sum_(from(), std::size_t{1}) {
    const gpu::OnDevice here(from());
    void* p = nullptr;
    gpu::check_call(gpuMallocManaged(&p, at(spec.bytes)), "MallocManaged");
    values_.reset(static_cast<double*>(p));
    launch_reading(sum_.data(), 1, sum_.data(), stream_);
    stream_.drain(gpu::Deadline(gpu::kCopyLimit), "the first launch");
  }

 protected:
  double once(const HostOrder& order) override {
    if (order.mode != "single") refuse(order);
    const gpu::OnDevice here(from());
    const std::int64_t count = order.bytes / 8;
    for (std::int64_t i = 0; i < count; ++i) values_.get()[i] = ++written_;
    return seconds_of([&] {
      launch_reading(values_.get(), count, sum_.data(), stream_);
      stream_.drain(gpu::Deadline(order.wait_limit), "a kernel that reads managed memory");
    });
  }

 private:
  struct Free {
    void operator()(double* p) const { static_cast<void>(gpuFree(p)); }
  };
  gpu::Stream stream_;
  gpu::DeviceArray<double> sum_;
  std::unique_ptr<double, Free> values_;
  double written_ = 0.0;
};

class OwnIpcMemory final : public IpcMemory {
 public:
  OwnIpcMemory(int gpu, std::int64_t bytes) : memory_(choose_devices(1, {gpu})[0], at(bytes)) {
    const gpu::OnDevice here(gpu);
    gpuIpcMemHandle_t handle;
    gpu::check_call(gpuIpcGetMemHandle(&handle, memory_.data()), "IpcGetMemHandle");
    handle_.assign(reinterpret_cast<const char*>(&handle), sizeof(handle));
  }
  std::string handle() const override { return handle_; }

 private:
  gpu::DeviceArray<std::byte> memory_;
  std::string handle_;
};

}  // namespace

std::unique_ptr<HostWay> make_host_way(const HostWaySpec& spec) {
  if (spec.way == "copy" || spec.way == "copy-get" || spec.way == "ipc")
    return std::make_unique<CopyWay>(spec);
  if (spec.way == "copy-graph") return std::make_unique<GraphWay>(spec);
  if (spec.way == "managed") return std::make_unique<ManagedWay>(spec);
  if (spec.way == "pinned") return make_pinned_way(spec);
  if (spec.way == "proxy") return make_proxy_way(spec);
  if (spec.way == "nccl") return make_nccl_way(spec);
  if (spec.way.starts_with("nvshmem-")) return make_shmem_way(spec);
  throw InvalidInput("way '" + spec.way +
                     "' of the host is not known: there are copy, copy-get, copy-graph, "
                     "managed, pinned, proxy, nccl, ipc, and those of nvshmem");
}

std::unique_ptr<IpcMemory> make_ipc_memory(int gpu, std::int64_t bytes) {
  require(bytes >= 8, "memory for other processes has 8 bytes at least");
  return std::make_unique<OwnIpcMemory>(gpu, bytes);
}

}  // namespace cpufree
