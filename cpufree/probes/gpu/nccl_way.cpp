// Messages by NCCL: a group of one ncclSend and one ncclRecv each, on a stream of either GPU.
#include "cpufree/base/index.hpp"
#include "cpufree/baselines/nccl_library.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/probes/gpu/timed_way.hpp"

namespace cpufree {

namespace {

class NcclWay final : public TimedWay {
 public:
  explicit NcclWay(const HostWaySpec& spec)
      : TimedWay(spec),
        library_(baselines::load_collectives(spec.library)),
        sending_(from()),
        receiving_(to()),
        source_(from(), at(spec.bytes)),
        target_(to(), at(spec.bytes)) {
    require(from() != to(), "NCCL goes from one GPU to another one");
    expect(library_.init_all(comms_, 2, devices().data()), "ncclCommInitAll");
  }
  ~NcclWay() override {
    for (const baselines::CollComm comm : comms_)
      if (comm != nullptr)
        static_cast<void>(broken_ ? library_.abort(comm) : library_.destroy(comm));
  }

 protected:
  double once(const HostOrder& order) override {
    const gpu::Deadline deadline(order.wait_limit);
    const auto drain = [&] {
      broken_ = true;  // unless they end
      sending_.drain(deadline, "ncclSend");
      receiving_.drain(deadline, "ncclRecv");
      broken_ = false;
    };
    if (order.mode == "single" || order.mode == "window")
      return seconds_of([&] { send_all(order), drain(); });
    if (order.mode != "send") refuse(order);
    const double spent = seconds_of([&] { send_all(order); });
    drain();
    return spent;
  }

 private:
  void send_all(const HostOrder& order) const {
    for (int k = 0; k < order.messages; ++k) {
      const std::int64_t place = k * order.bytes;
      expect(library_.group_start(), "ncclGroupStart");
      expect(library_.send(source_.data() + place, at(order.bytes / 8), baselines::kCollDouble, 1,
                           comms_[0], sending_),
             "ncclSend");
      expect(library_.receive(target_.data() + place, at(order.bytes / 8), baselines::kCollDouble,
                              0, comms_[1], receiving_),
             "ncclRecv");
      expect(library_.group_end(), "ncclGroupEnd");
    }
  }
  void expect(int status, const char* call) const {
    if (status != 0)
      throw EngineError(std::string(call) + ": " + library_.error_text(status) +
                        "; NCCL_DEBUG=WARN in the environment makes NCCL say more");
  }

  baselines::CollLibrary library_;
  gpu::Stream sending_, receiving_;
  gpu::DeviceArray<std::byte> source_, target_;
  baselines::CollComm comms_[2] = {};
  bool broken_ = false;
};

}  // namespace

std::unique_ptr<HostWay> make_nccl_way(const HostWaySpec& spec) {
  return std::make_unique<NcclWay>(spec);
}

}  // namespace cpufree
