// Ways of a kernel and a thread of the host, which are the two PEs of a probe, with memory of the
// host that both reach: the heaps lie there, at the same addresses for both.
//
// The kernel is that of other probes. What its port stores in system scope the thread's port sees
// in its order, and the other way round: flags are single words of 8 bytes, stored with release and
// loaded with acquire on the host, and with fences of system scope on the GPU.
#include <algorithm>
#include <thread>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/engines/gpu_p2p/launch.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/waits.hpp"
#include "cpufree/probes/gpu/kernel.hpp"
#include "cpufree/probes/gpu/timed_way.hpp"
#include "cpufree/probes/host/prober.hpp"
#include "cpufree/probes/kernel.hpp"

namespace cpufree {

namespace {

constexpr int kThreads = 256;
constexpr double kGrace = 10.0;  // seconds for a kernel to end that has been told to leave

// The thread has its core to itself, and looks at the clock now and then.
class SpinningSeat final : public cpu_threads::Seat {
 public:
  SpinningSeat() { called = &never_; }
  bool pass(std::uint32_t look) override {
    cpu_threads::pause_cpu();
    return look % 1024 == 1023;
  }

 private:
  void move() override {}
  std::atomic<bool> never_{false};
};

// The two PEs, one of which is a kernel of one block.
class HostAndGpu {
 public:
  // gpu_pe: the number of the kernel's PE; the other one is the thread's.
  HostAndGpu(int device, std::int64_t bytes, int gpu_pe)
      : device_(device),
        gpu_pe_(gpu_pe),
        memory_(2, 1, bytes),
        heap_(2 * memory_.bytes()),
        launch_({device}),
        ticks_(1024),
        wrong_(device, std::size_t{kThreads}) {
    const int devices[] = {device};
    kernel_ = gpu_probe_kernel(ProbeWay::store_block, devices);
    launch_.load(kernel_);
  }

  std::byte* heap(int pe) const { return heap_.data() + at(pe) * memory_.bytes(); }
  const ProbeMemory& memory() const { return memory_; }
  Epoch epoch() const { return epoch_; }

  // Runs the kernel, and meanwhile `thread(port, args)` as the other PE. Returns the seconds that
  // PE 0 has measured.
  template <class F>
  std::vector<double> run(const ProbeOrder& order, F&& thread) {
    require(at(order.repeats) <= ticks_.size(),
            "a way of a kernel has at most " + std::to_string(ticks_.size()) + " repeats");
    ProbeArgs args[2];
    std::int64_t wrong_here = 0;
    for (int pe = 0; pe < 2; ++pe) {
      args[pe] = memory_.args(order, heap(pe));
      args[pe].epoch = epoch_;
      args[pe].ticks = ticks_.data();
      args[pe].clock = clock_.data();
      args[pe].wrong = pe == gpu_pe_ ? wrong_.data() : &wrong_here;
    }
    const Epoch used = probe_epochs(args[0]);
    start(order, args[gpu_pe_]);
    cpu_threads::Shared shared;
    share(shared, order);
    SpinningSeat seat;
    cpu_threads::Port port(shared, 1 - gpu_pe_, 0, &seat);
    try {
      thread(port, args[1 - gpu_pe_]);
    } catch (...) {
      leave();
      throw;
    }
    finish(order, shared);
    epoch_ += used;
    std::vector<std::int64_t> wrong = wrong_.download();
    wrong.push_back(wrong_here);
    const std::vector<std::uint64_t> ticks(ticks_.data(), ticks_.data() + order.repeats);
    return probe_seconds(order, ticks, clock_[0], wrong);
  }

 private:
  struct Words {
    alignas(128) unsigned leave, notes;
    alignas(128) std::int64_t iteration;
    double residual;
  };

  void start(const ProbeOrder& order, const ProbeArgs& args) {
    words_[0] = {};
    records_[0] = {};
    std::vector<gpu_p2p::Shared> shared(1);
    shared[0].pe = gpu_pe_;
    shared[0].pes = 2;
    for (int pe = 0; pe < 2; ++pe) shared[0].heaps[pe] = heap(pe);
    shared[0].leave = memory_.leave(heap(gpu_pe_));
    shared[0].host_leave = &words_[0].leave;
    shared[0].notes = &words_[0].notes;
    shared[0].iteration = &words_[0].iteration;
    shared[0].residual = &words_[0].residual;
    shared[0].records = records_.data();
    shared[0].wait_limit_ns = static_cast<std::uint64_t>(1e9 * order.wait_limit);
    launch_.start(kernel_, 1, kThreads, shared, {&args});
    std::ranges::copy(shared[0].heaps, shared[0].heaps + 2, heaps_);
  }
  void share(cpu_threads::Shared& shared, const ProbeOrder& order) const {
    shared.pes = 2;
    shared.blocks = 1;
    shared.first = 1 - gpu_pe_;
    shared.heaps = heaps_;
    shared.leave_flag = memory_.leave(heap(1 - gpu_pe_));
    shared.wait_limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(order.wait_limit));
    shared.records.assign(1, WaitRecord{});
  }
  // Has the kernel end, whatever it waits for.
  void leave() noexcept {
    *const_cast<volatile unsigned*>(&words_[0].leave) = 1;
    launch_.drain();
  }
  void finish(const ProbeOrder& order, cpu_threads::Shared& shared) {
    const gpu::Deadline deadline(order.wait_limit + kGrace);
    try {
      launch_.stream(0).drain(deadline, "the kernel of a probe");
    } catch (...) {
      leave();
      throw;
    }
    if (!shared.leaves() && !records_[0].waited()) return;
    std::vector<WaitRecord> records(2);
    records[at(gpu_pe_)] = records_[0];
    records[at(1 - gpu_pe_)] = shared.records[0];
    for (int pe = 0; pe < 2; ++pe) cpu_threads::store_flag(*memory_.leave(heap(pe)), 0);
    throw WaitTimeout(block_reports(records, 1));
  }

  int device_;
  int gpu_pe_;
  ProbeMemory memory_;
  gpu::MappedArray<std::byte> heap_;
  std::byte* heaps_[2] = {};
  gpu_p2p::Launch launch_;
  gpu::MappedArray<Words> words_{1};
  gpu::MappedArray<WaitRecord> records_{1};
  gpu::MappedArray<std::uint64_t> ticks_;
  gpu::MappedArray<ProbeClock> clock_{1};
  gpu::DeviceArray<std::int64_t> wrong_;
  const void* kernel_ = nullptr;
  Epoch epoch_ = 0;
};

ProbeOrder as_probe(const HostOrder& order, ProbeMode mode) {
  return {ProbeWay::store_block, mode,          order.bytes,     order.messages, 1,
          order.warm_ups,        order.repeats, order.wait_limit};
}

// PE 0 is the thread, which keeps the time.
class PinnedWay final : public HostWay {
 public:
  explicit PinnedWay(const HostWaySpec& spec)
      : devices_(connected_pair(spec)), locks_(devices_), pair_(devices_[0], spec.bytes, 1) {}

  std::vector<double> times(const HostOrder& order) override {
    const ProbeOrder probe = as_probe(order, probe_mode_from_name(order.mode));
    return pair_.run(probe, [&](cpu_threads::Port& port, const ProbeArgs& args) {
      probe_kernel(ProbeWay::store_block, port, args);
    });
  }

 private:
  std::vector<int> devices_;
  gpu_p2p::DeviceLocks locks_;
  HostAndGpu pair_;
};

// PE 0 is the kernel: it puts a flag, and waits for one. The thread has the copy engine move the
// message in between.
class ProxyWay final : public HostWay {
 public:
  explicit ProxyWay(const HostWaySpec& spec)
      : devices_(connected_pair(spec)),
        locks_(devices_),
        bytes_(spec.bytes),
        pair_(devices_[0], 8, 0),
        stream_(devices_[0]),
        source_(devices_[0], at(spec.bytes)),
        target_(devices_[1], at(spec.bytes)) {}

  std::vector<double> times(const HostOrder& order) override {
    require(order.mode == "single", "way proxy is measured in mode 'single' alone");
    require(order.bytes >= 8 && order.bytes <= bytes_, "the message has no room in its memory");
    HostOrder flags = order;
    flags.bytes = 8;
    auto seconds = pair_.run(as_probe(flags, ProbeMode::flag),
                             [&](auto& port, const ProbeArgs& args) { serve(order, port, args); });
    for (double& one : seconds) one *= 2.0;  // a flag's time is half of there and back
    return seconds;
  }

 private:
  // As FlagExchange of the other PE, with the copy behind each flag that comes.
  void serve(const HostOrder& order, cpu_threads::Port& port, const ProbeArgs& args) const {
    const gpu::OnDevice here(devices_[0]);
    ProbeLink<cpu_threads::Port> link(port, args);
    const Epoch last = args.epoch + static_cast<Epoch>(order.warm_ups + order.repeats);
    for (Epoch epoch = args.epoch + 1; epoch <= last; ++epoch) {
      if (!link.wait_flag(epoch)) return;
      gpu::copy_across(target_.data(), devices_[1], source_.data(), devices_[0], at(order.bytes),
                       stream_);
      stream_.drain(gpu::Deadline(order.wait_limit), "a copy between GPUs");
      link.put_flag(epoch);
    }
  }

  std::vector<int> devices_;
  gpu_p2p::DeviceLocks locks_;
  std::int64_t bytes_;
  HostAndGpu pair_;
  gpu::Stream stream_;
  gpu::DeviceArray<std::byte> source_, target_;
};

}  // namespace

std::unique_ptr<HostWay> make_pinned_way(const HostWaySpec& spec) {
  return std::make_unique<PinnedWay>(spec);
}

std::unique_ptr<HostWay> make_proxy_way(const HostWaySpec& spec) {
  return std::make_unique<ProxyWay>(spec);
}

}  // namespace cpufree
