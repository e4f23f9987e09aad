#include "cpufree/triggered/nics/copy_engine/line.hpp"

#include <algorithm>
#include <limits>

#include "cpufree/base/error.hpp"
#include "cpufree/gpu/stream_words.hpp"

namespace cpufree::nics {

namespace {

constexpr double kUndoLimit = 30.0;  // seconds

}  // namespace

Line::Line(const LinePlace& place)
    : place_(place),
      stream_(place.devices[static_cast<std::size_t>(place.pe)]),
      over_(1),
      values_(kAhead) {}

void Line::warm_up() {
  const gpu::OnDevice here(device(place_.pe));
  Flag* const zero = place_.counters.stray_count;
  gpu::write_word(stream_, zero, 0);
  gpu::wait_for_word(stream_, zero, 0);
  for (int pe = 0; pe < static_cast<int>(place_.devices.size()); ++pe) {
    values_[0] = 0;
    copy({reinterpret_cast<std::byte*>(zero), reinterpret_cast<std::byte*>(on(zero, pe)), place_.pe,
          pe},
         pe == place_.pe ? 0 : sizeof(Flag));
    write(zero, pe, 0);
  }
  gpu::write_word(stream_, over_.data(), 0);
  stream_.drain(gpu::Deadline(kUndoLimit), "the start of a copy engine");
}

void Line::require_threshold(const TriggerOperation& operation) const {
  const bool same = posts_.empty() || posts_.back().threshold == operation.threshold;
  if (same || operation.first.epoch + operation.epochs <= TriggerCounters::kWindow) return;
  throw Unsupported("tag " + std::to_string(operation.first.operation) +
                    ": copy engines keep one threshold for all epochs of an operation, which is " +
                    std::to_string(posts_.back().threshold) + "; use another tag for " +
                    std::to_string(operation.threshold));
}

void Line::post(const TriggerOperation& operation) {
  // Those stay that a word may still count for.
  while (posts_.size() > 1 &&
         posts_.front().first.epoch + posts_.front().epochs + TriggerCounters::kWindow <= over())
    posts_.pop_front();
  posts_.push_back(operation);
  posted_ = operation.first.epoch + operation.epochs;
}

bool Line::feed() {
  const std::uint32_t last = std::min(posted_, over() + kAhead);
  if (queued_ >= last) return false;
  const gpu::OnDevice here(device(place_.pe));
  while (queued_ < last) queue(queued_++);
  return true;
}

void Line::feed_behind(const gpu::Event& event) {
  const gpu::OnDevice here(device(place_.pe));
  stream_.wait_for(event);
  feed();
}

const TriggerOperation& Line::find(std::uint32_t epoch) const {
  for (const TriggerOperation& o : posts_)
    if (epoch >= o.first.epoch && epoch - o.first.epoch < o.epochs) return o;
  throw EngineError("tag " + std::to_string(operation_) + ", epoch " + std::to_string(epoch) +
                    " was not posted; please report this");
}

Line::Ends Line::ends_of(const TriggerOperation& o, std::uint32_t epoch) const {
  const std::uint64_t slot = epoch % o.slots;
  const std::uint64_t source = o.source + slot * o.source_step;
  const std::uint64_t target = o.target + slot * o.target_step;
  const bool put = o.kind == TriggerKind::put;
  const int from = put ? place_.pe : o.pe, to = put ? o.pe : place_.pe;
  return {place_.heaps[from] + source, place_.heaps[to] + target, from, to};
}

void Line::copy(const Ends& ends, std::uint64_t bytes) const {
  if (bytes == 0) return;
  if (device(ends.from_pe) == device(ends.to_pe))
    gpu::copy(ends.to, ends.from, bytes, stream_, " of a triggered operation");
  else
    gpu::copy_across(ends.to, device(ends.to_pe), ends.from, device(ends.from_pe), bytes, stream_,
                     " of a triggered operation");
}

// `values_` has room for all epochs that are queued: none is changed before it has been copied.
void Line::write(Flag* flag, int pe, Epoch value) {
  if (place_.writes_to[static_cast<std::size_t>(pe)])
    return gpu::write_word(stream_, on(flag, pe), value);
  Epoch& kept = values_[static_cast<std::size_t>(value % kAhead)];
  kept = value;
  gpu::copy(&on(flag, pe)->value, &kept, sizeof(Epoch), stream_, " of a signal");
}

void Line::queue(std::uint32_t epoch) {
  const TriggerOperation& o = find(epoch);
  const TriggerTag tag{static_cast<std::uint32_t>(operation_), epoch};
  if (o.threshold > 0)
    gpu::wait_for_word(stream_, place_.counters.word(tag),
                       TriggerCounters::word_of(epoch, o.threshold));
  copy(ends_of(o, epoch), o.bytes);
  if (o.signal >= 0) write(place_.board.signals + o.signal, o.pe, Epoch{epoch} + 1);
  gpu::write_word(stream_, place_.board.done + operation_, Epoch{epoch} + 1);
  gpu::write_word(stream_, over_.data(), Epoch{epoch} + 1);
}

namespace {

// Bytes of a device's memory, kept while something else is written there.
class Kept {
 public:
  Kept(std::byte* where, std::uint64_t bytes) : where_(where), values_(bytes) {
    gpu::copy_to_host(values_.data(), where_, bytes);
  }
  void put_back(const gpu::Stream& stream) const {
    gpu::copy(where_, values_.data(), values_.size(), stream, " back");
  }

 private:
  std::byte* where_;
  std::vector<std::byte> values_;
};

}  // namespace

void Line::undo(const gpu::Stream& stream) {
  const std::uint32_t first = over();
  if (first >= queued_) return;
  const gpu::OnDevice here(device(place_.pe));
  std::vector<Kept> kept;
  const auto keep = [&](void* where, std::uint64_t bytes) {
    if (bytes > 0) kept.emplace_back(static_cast<std::byte*>(where), bytes);
  };
  for (std::uint32_t epoch = first; epoch < queued_; ++epoch) {
    const TriggerOperation& o = find(epoch);
    if (epoch - first < o.slots) keep(ends_of(o, epoch).to, o.bytes);
    if (epoch == first && o.signal >= 0)
      keep(on(place_.board.signals + o.signal, o.pe), sizeof(Flag));
  }
  keep(place_.board.done + operation_, sizeof(Flag));
  for (std::uint32_t slot = 0; slot < TriggerCounters::kWindow; ++slot)
    gpu::write_word(stream, place_.counters.word({static_cast<std::uint32_t>(operation_), slot}),
                    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  const gpu::Deadline deadline(kUndoLimit);
  stream.drain(deadline, "the end of a copy engine's operations");
  stream_.drain(deadline, "operations that never fired");
  for (const Kept& one : kept) one.put_back(stream);
  stream.drain(deadline, "putting back what was there");
}

}  // namespace cpufree::nics
