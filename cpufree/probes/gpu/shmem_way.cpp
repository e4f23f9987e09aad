// Messages by NVSHMEM, between two processes with a GPU each: by its device library within a
// kernel, and by its functions of the host on a stream. The one of rank 0 keeps the time.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/baselines/nvshmem_library.hpp"
#include "cpufree/gpu/deadline.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/gpu/stream.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/probes/gpu/timed_way.hpp"
#include "cpufree/probes/nvshmem_args.hpp"

namespace cpufree {

namespace {

constexpr int kThreads = 256, kMostRounds = 16;
constexpr std::int64_t kTimedBytes = 1 << 16;
constexpr std::size_t kOwn = std::size_t{64} << 20;  // what NVSHMEM itself takes, and more

constexpr double kSkipped = -1.0;  // what lies between the values that are sent

const std::map<std::string, nvshmem::Verb>& kernel_verbs() {
  static const std::map<std::string, nvshmem::Verb> verbs = {
      {"nvshmem-p", nvshmem::Verb::p},
      {"nvshmem-iput", nvshmem::Verb::iput},
      {"nvshmem-put-thread", nvshmem::Verb::put_thread},
      {"nvshmem-put-warp", nvshmem::Verb::put_warp},
      {"nvshmem-put-block", nvshmem::Verb::put_block},
      {"nvshmem-put-signal", nvshmem::Verb::put_signal},
      {"nvshmem-get", nvshmem::Verb::get}};
  return verbs;
}
std::int64_t stride_of_way(const std::string& way) {
  const auto found = kernel_verbs().find(way);
  return found == kernel_verbs().end() ? 1 : nvshmem::stride_of(found->second);
}

nvshmem::Id id_of(const std::string& handle) {
  nvshmem::Id id;
  require(handle.size() == id.size(), "NVSHMEM's identity has 128 bytes");
  std::ranges::copy(handle, id.begin());
  return id;
}

// What both kinds have: NVSHMEM, which both processes start together, and symmetric memory.
class ShmemWay : public HostWay {
 public:
  explicit ShmemWay(const HostWaySpec& spec)
      : way_(spec.way),
        rank_(spec.rank),
        bytes_(spec.bytes),
        device_(choose_devices(1, spec.gpus).front()),
        library_(baselines::load_shmem(spec.library)) {
    require(rank_ == 0 || rank_ == 1, "a way of NVSHMEM has two ranks");
    require(bytes_ >= 8, "a way has room for 8 bytes");
    // NVSHMEM goes by the device that is current, and wants the runtime to have started there.
    gpu::stay_on(device_);
    gpu::start();
    const std::size_t stride = at(stride_of_way(way_));
    nvshmem::want_memory((1 + stride) * at(bytes_) + kOwn);
    library_.start(rank_, 2, id_of(spec.handle));
    source_ = symmetric(stride * at(bytes_));
    target_ = symmetric(at(bytes_));
    signal_ = reinterpret_cast<std::uint64_t*>(symmetric(128));
    std::vector<double> values(stride * at(bytes_ / 8), kSkipped);
    for (std::size_t i = 0; i < values.size(); i += stride) values[i] = value_of(rank_);
    gpu::copy_to_device(device_, source_, values.data(), 8 * values.size());
  }

  std::vector<double> times(const HostOrder& order) override {
    require(order.messages >= 1 && order.warm_ups >= 0 && order.repeats >= 1,
            "messages and repeats of a way are 1 at least");
    require(order.bytes >= 8 && order.bytes % 8 == 0 && order.bytes * order.messages <= bytes_,
            "messages of " + std::to_string(order.bytes) + " bytes, " +
                std::to_string(order.messages) + " of them, do not fit into the memory of the way");
    const gpu::OnDevice here(device_);
    return measured(order);
  }

 protected:
  virtual std::vector<double> measured(const HostOrder& order) = 0;

  [[noreturn]] void refuse(const HostOrder& order) const {
    throw InvalidInput("way " + way_ + " is not measured in mode '" + order.mode + "'");
  }
  // All values of a rank are its own.
  static double value_of(int rank) { return 1.5 + rank; }
  // What lies at `where` on this GPU is what rank `from` has; zeros are left.
  void check_values(char* where, std::int64_t bytes, int from) const {
    std::vector<double> found(at(bytes / 8));
    gpu::copy_to_host(found.data(), where, at(bytes));
    const double right = value_of(from);
    if (const auto wrong = std::ranges::find_if(found, [&](double v) { return v != right; });
        wrong != found.end())
      throw EngineError("way " + way_ + ": value " + std::to_string(wrong - found.begin()) +
                        " arrived as " + std::to_string(*wrong) + ", not as " +
                        std::to_string(right));
    gpu::clear(device_, where, at(bytes));
  }

  char* symmetric(std::size_t bytes) const {
    auto* const p = static_cast<char*>(library_.allocate(bytes));
    if (p == nullptr)
      throw OutOfMemory("NVSHMEM has no room for " + std::to_string(bytes) +
                        " bytes of symmetric memory; raise NVSHMEM_SYMMETRIC_SIZE");
    gpu::clear(device_, p, bytes);
    return p;
  }

  std::string way_;
  int rank_;
  std::int64_t bytes_;
  int device_;
  baselines::ShmemLibrary library_;
  char* source_ = nullptr;
  char* target_ = nullptr;
  std::uint64_t* signal_ = nullptr;
};

// Within a kernel.
class ShmemKernelWay final : public ShmemWay {
 public:
  ShmemKernelWay(const HostWaySpec& spec, nvshmem::Verb verb)
      : ShmemWay(spec), verb_(verb), stream_(device_), clock_(device_, 1), late_(device_, 1) {
    require(bytes_ >= kTimedBytes, "a way of NVSHMEM in a kernel has room for 64 KiB");
    const gpu::OnDevice here(device_);
    gpuLibrary_t const loaded = gpu::load_library(spec.kernels);
    library_.ready(loaded);
    kernel_ = gpu::find_kernel(loaded, spec.kernels, "nvshmem_probe");
    gpu::load(kernel_, 0);
  }

 protected:
  std::vector<double> measured(const HostOrder& order) override {
    if (order.mode != "single" && order.mode != "window") refuse(order);
    const bool get = verb_ == nvshmem::Verb::get;
    if (get && rank_ == 1) return {};
    const gpu::DeviceArray<std::uint64_t> ticks(device_, at(order.repeats));
    nvshmem::ProbeArgs args = args_of(order);
    args.ticks = ticks.data();
    run(args, order.wait_limit);
    epoch_ += nvshmem::epochs_of(args);
    const bool answered = args.window && rank_ == 0 && !get;
    check_values(target_, answered ? 8 : order.bytes * order.messages, 1 - rank_);
    if (rank_ == 1) return {};
    const double parts = args.window ? 1.0 : args.rounds * (get ? 1.0 : 2.0);
    const double tick = clock_.download().at(0).seconds_per_tick() / parts;
    std::vector<double> seconds;
    for (const std::uint64_t passed : ticks.download())
      seconds.push_back(tick * static_cast<double>(std::max<std::uint64_t>(passed, 1)));
    return seconds;
  }

 private:
  nvshmem::ProbeArgs args_of(const HostOrder& order) const {
    nvshmem::ProbeArgs args;
    args.verb = verb_;
    args.window = order.mode == "window";
    args.bytes = order.bytes;
    args.messages = order.messages;
    args.rounds =
        static_cast<int>(std::clamp<std::int64_t>(kTimedBytes / order.bytes, 1, kMostRounds));
    args.warm_ups = order.warm_ups;
    args.repeats = order.repeats;
    args.pe = rank_;
    args.epoch = epoch_;
    args.wait_limit = static_cast<std::uint64_t>(1e9 * order.wait_limit);
    args.source = source_;
    args.target = target_;
    args.signal = signal_;
    args.clock = clock_.data();
    args.late = late_.data();
    return args;
  }
  void run(nvshmem::ProbeArgs& args, double wait_limit) const {
    void* arguments[] = {&args};
    gpu::launch(kernel_, {1, kThreads, 0}, arguments, stream_);
    stream_.drain(gpu::Deadline(2.0 * wait_limit), "a kernel that measures NVSHMEM");
    if (late_.download().at(0) != 0)
      throw EngineError("way " + way_ + ": the other PE did not answer within " +
                        std::to_string(wait_limit) + " s");
  }

  nvshmem::Verb verb_;
  gpu::Stream stream_;
  gpu::DeviceArray<ProbeClock> clock_;
  gpu::DeviceArray<std::int32_t> late_;
  const void* kernel_ = nullptr;
  std::uint64_t epoch_ = 0;
};

// By functions of the host, on a stream: until the host knows that it has ended. Rank 1 is there.
class ShmemStreamWay final : public ShmemWay {
 public:
  ShmemStreamWay(const HostWaySpec& spec, bool get) : ShmemWay(spec), get_(get), stream_(device_) {}

 protected:
  std::vector<double> measured(const HostOrder& order) override {
    if (order.mode != "single" && order.mode != "window" && order.mode != "send") refuse(order);
    std::vector<double> seconds;
    if (rank_ == 1) return seconds;
    for (int k = 0; k < order.warm_ups; ++k) static_cast<void>(once(order));
    for (int k = 0; k < order.repeats; ++k) seconds.push_back(once(order));
    if (!get_) fetch_back(order);
    check_values(target_, order.bytes * order.messages, get_ ? 1 : 0);
    return seconds;
  }

 private:
  double once(const HostOrder& order) {
    const gpu::Deadline deadline(order.wait_limit);
    const auto drain = [&] { stream_.drain(deadline, "NVSHMEM on a stream"); };
    if (order.mode != "send") return seconds_of([&] { start(order), drain(); });
    const double spent = seconds_of([&] { start(order); });
    drain();
    return spent;
  }
  // What has been put: from there to here.
  void fetch_back(const HostOrder& order) {
    library_.get(target_, target_, at(order.bytes * order.messages), 1, stream_);
    stream_.drain(gpu::Deadline(order.wait_limit), "NVSHMEM on a stream");
  }
  void start(const HostOrder& order) {
    for (int k = 0; k < order.messages; ++k) {
      const std::int64_t place = k * order.bytes;
      if (get_)
        library_.get(target_ + place, source_ + place, at(order.bytes), 1, stream_);
      else
        library_.put_signal(target_ + place, source_ + place, at(order.bytes), signal_, ++signals_,
                            baselines::kShmemSet, 1, stream_);
    }
  }

  bool get_;
  gpu::Stream stream_;
  std::uint64_t signals_ = 0;
};

}  // namespace

std::unique_ptr<HostWay> make_shmem_way(const HostWaySpec& spec) {
  if (const auto found = kernel_verbs().find(spec.way); found != kernel_verbs().end())
    return std::make_unique<ShmemKernelWay>(spec, found->second);
  if (spec.way == "nvshmem-put-stream" || spec.way == "nvshmem-get-stream")
    return std::make_unique<ShmemStreamWay>(spec, spec.way == "nvshmem-get-stream");
  throw InvalidInput("NVSHMEM has no way '" + spec.way + "'");
}

std::string make_shmem_way_id(const std::string& library) {
  const nvshmem::Id id = baselines::load_shmem(library).make_id();
  return {id.begin(), id.end()};
}

}  // namespace cpufree
