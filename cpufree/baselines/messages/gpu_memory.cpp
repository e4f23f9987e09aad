// Memory of a GPU for messages of MPI: staged through the host, or as it is.
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/baselines/messages/memory.hpp"
#include "cpufree/gpu/deadline.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/gpu/stream.hpp"

namespace cpufree::baselines {

namespace {

class GpuMessageMemory final : public MessageMemory {
 public:
  GpuMessageMemory(int gpu, std::int64_t bytes, bool staged)
      : gpu_(gpu),
        bytes_(bytes),
        staged_(staged),
        stream_(gpu),
        source_(gpu, at(bytes)),
        target_(gpu, at(bytes)) {
    const gpu::OnDevice here(gpu_);
    if (!staged_) return;
    outgoing_ = gpu::MappedArray<char>(at(bytes_));
    incoming_ = gpu::MappedArray<char>(at(bytes_));
  }
  char* source() override { return staged_ ? outgoing_.data() : source_.data(); }
  char* target() override { return staged_ ? incoming_.data() : target_.data(); }
  void before_send(std::int64_t place, std::int64_t bytes) override {
    if (staged_) copy(outgoing_.data() + place, source_.data() + place, bytes);
  }
  void after_receive(std::int64_t place, std::int64_t bytes) override {
    if (staged_) copy(target_.data() + place, incoming_.data() + place, bytes);
  }
  void fill(double value) override {
    const std::vector<double> values(at(bytes_ / 8), value);
    gpu::copy_to_device(gpu_, source_.data(), values.data(), at(bytes_));
  }
  void take(double* values, std::int64_t count) override {
    const gpu::OnDevice here(gpu_);
    gpu::copy_to_host(values, target_.data(), at(8 * count));
    gpu::clear(gpu_, target_.data(), at(8 * count));
  }

 private:
  static constexpr double kLimit = 60.0;  // seconds for a copy

  void copy(char* to, const char* from, std::int64_t bytes) const {
    const gpu::OnDevice here(gpu_);
    gpu::copy(to, from, at(bytes), stream_);
    stream_.drain(gpu::Deadline(kLimit), "a copy that stages a message");
  }

  int gpu_;
  std::int64_t bytes_;
  bool staged_;
  gpu::Stream stream_;
  gpu::DeviceArray<char> source_, target_;
  gpu::MappedArray<char> outgoing_, incoming_;
};

}  // namespace

std::unique_ptr<MessageMemory> make_message_memory(const std::string& kind, int gpu,
                                                   std::int64_t bytes) {
  if (kind == "host") return make_host_message_memory(bytes);
  require(kind == "staged" || kind == "direct",
          "memory of messages is host, staged or direct, not '" + kind + "'");
  return std::make_unique<GpuMessageMemory>(gpu, bytes, kind == "staged");
}

}  // namespace cpufree::baselines
