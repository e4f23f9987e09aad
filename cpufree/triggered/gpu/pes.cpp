#include "cpufree/triggered/gpu/pes.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cpufree/base/error.hpp"
#include "cpufree/gpu/stream_words.hpp"

namespace cpufree::triggered {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSpin{20};  // that the host watches closely
constexpr std::chrono::milliseconds kLook{20};  // between two calls of `look`
constexpr std::chrono::microseconds kNap{50};
constexpr int kLeaveWord = 0, kNotesWord = 32;  // of `words_`, on lines of their own

const std::vector<int>& connected(const std::vector<int>& devices) {
  require(!devices.empty() && devices.size() <= gpu_p2p::kMaxPes,
          "there are 1 to " + std::to_string(gpu_p2p::kMaxPes) + " PEs on GPUs");
  gpu_p2p::connect(devices);
  return devices;
}
}  // namespace

GpuPes::GpuPes(const std::vector<int>& devices, int blocks)
    : devices_(connected(devices)),
      blocks_(blocks),
      locks_(devices),
      records_(devices.size() * static_cast<std::size_t>(blocks)) {
  for (const int device : devices_) streams_.emplace_back(device);
}

GpuPes::~GpuPes() { stop(); }

void GpuPes::allocate(SymmetricLayout& layout) {
  leave_ = layout.reserve<Flag>(1);
  for (const int device : devices_) {
    heaps_.emplace_back(device, layout.bytes());
    bases_.push_back(heaps_.back().data());
  }
  for (int from = 0; from < count(); ++from)
    for (int to = 0; to < count(); ++to) writes_.push_back(writes_words(from, to));
}

// Whether streams reach a word there: tried, on one that is 0 and stays so.
bool GpuPes::writes_words(int from, int to) const {
  const gpu::OnDevice here(device(from));
  const gpu::Stream& stream = streams_[static_cast<std::size_t>(from)];
  const gpu::Deadline deadline(gpu::kCopyLimit);
  Flag* const word = leave_.at(heap(to));
  if (!gpu::try_write_word(stream, word, 1)) return false;
  stream.drain(deadline, "a word of another GPU");
  Flag seen{};
  gpu::copy_to_host(&seen, word, sizeof(seen));
  gpu::write_word(stream, word, 0);
  stream.drain(deadline, "a word of another GPU");
  return seen.value == 1;
}

void GpuPes::signal(const gpu::Stream& stream, int from, Flag* flag, int to, Epoch value) const {
  const gpu::OnDevice here(device(from));
  Flag* const there = on(flag, from, to);
  if (writes_[static_cast<std::size_t>(from * count() + to)])
    return gpu::write_word(stream, there, value);
  Epoch& kept = values_[static_cast<std::size_t>(value % values_.size())];
  kept = value;
  gpu::copy(&there->value, &kept, sizeof(kept), stream, " of a signal");
}

void GpuPes::copy(const gpu::Stream& stream, int from, const std::byte* source, int to,
                  std::byte* target, std::size_t bytes) const {
  const gpu::OnDevice here(device(from));
  if (device(from) == device(to))
    gpu::copy(on(target, from, to), source, bytes, stream);
  else
    gpu::copy_across(on(target, from, to), device(to), source, device(from), bytes, stream);
}

void GpuPes::prepare(const void* kernel, const gpu::Grid& grid,
                     const std::function<int(int)>& taken) const {
  for (const int device : devices_) {
    const gpu::OnDevice here(device);
    gpu::load(kernel, grid.dynamic_bytes);
    const auto sharing = static_cast<int>(std::ranges::count(devices_, device));
    const int all = gpu::multiprocessors(device);
    const int free = all - (taken ? taken(device) : 0);
    const int resident =
        gpu::resident_blocks(kernel, grid.threads, device, grid.dynamic_bytes) / all * free;
    require(grid.blocks * sharing <= resident,
            "GPU " + std::to_string(device) + " runs at most " +
                std::to_string(resident / sharing) + " blocks of " + std::to_string(grid.threads) +
                " threads of each of its " + std::to_string(sharing) + " PEs together, not " +
                std::to_string(grid.blocks) + "; use fewer blocks");
  }
}

gpu_p2p::Shared GpuPes::shared(int pe) const {
  gpu_p2p::Shared s;
  s.pe = pe;
  s.pes = count();
  for (int k = 0; k < count(); ++k) s.heaps[k] = heap(k);
  s.leave = leave_.at(heap(pe));
  s.host_leave = words_.data() + kLeaveWord;
  s.notes = words_.data() + kNotesWord;
  s.records = records_.data() + pe * blocks_;
  s.wait_limit_ns = static_cast<std::uint64_t>(1e9 * wait_limit_);
  return s;
}

void GpuPes::launch(int pe, const void* kernel, const gpu::Grid& grid, const void* args) const {
  gpu_p2p::Shared mine = shared(pe);
  void* parameters[] = {&mine, const_cast<void*>(args)};
  const gpu::OnDevice here(device(pe));
  gpu::launch(kernel, grid, parameters, stream(pe));
}

bool GpuPes::wait(const std::function<void()>& look) const {
  const auto start = Clock::now();
  auto next = start + kLook;
  try {
    while (
        !std::ranges::all_of(streams_, [](const gpu::Stream& s) { return s.done("a kernel"); })) {
      const auto now = Clock::now();
      if (now > next) {
        look();
        next = now + kLook;
      }
      if (now - start > kSpin) std::this_thread::sleep_for(kNap);
    }
  } catch (...) {
    stop();
    throw;
  }
  for (std::size_t k = 0; k < records_.size(); ++k)
    if (records_[k].waited()) return false;
  return true;
}

void GpuPes::finish(const std::function<void()>& look) const {
  if (!wait(look))
    throw EngineError("a block waited longer than allowed; all PEs have left their kernels" +
                      describe_waits());
}

std::string GpuPes::describe_waits() const {
  std::string text;
  int lines = 0;
  for (int pe = 0; pe < count(); ++pe)
    for (int block = 0; block < blocks_; ++block) {
      const WaitRecord& r = record(pe, block);
      if (!r.waited() || ++lines > 8) continue;
      text += "\n  block " + std::to_string(block) + " of PE " + std::to_string(pe) +
              " waited for: " + channel_name(r.channel) + ", PE " + std::to_string(r.from_pe) +
              ", number " + std::to_string(r.from_block) + ", want " + std::to_string(r.want) +
              ", seen " + std::to_string(r.seen);
    }
  return text;
}

// Makes kernels that run leave, and waits for them: their memory must not be freed before.
void GpuPes::stop() const noexcept {
  *const_cast<volatile unsigned*>(words_.data() + kLeaveWord) = 1;
  for (const gpu::Stream& stream : streams_) stream.settle();
  *const_cast<volatile unsigned*>(words_.data() + kLeaveWord) = 0;
}

}  // namespace cpufree::triggered
