#include "schedule.hpp"

#include <numeric>

namespace host_gpu {

Machine& machine() {
  static Machine all;
  return all;
}

namespace {

std::size_t draw(std::size_t below) { return machine().random() % below; }

bool is_stopped(int device) {
  return device == machine().stopped && machine().executed >= machine().stops_at;
}

bool advance(Run& run);

// One node of a run, if it can go on.
bool advance_node(Run& run, std::size_t k) {
  const Work& node = (*run.nodes)[k];
  for (const std::size_t before : node.after)
    if (run.done[before] == 0) return false;
  if (node.body != nullptr) {
    auto& inside = run.inside[k];
    if (inside == nullptr) {
      if (*node.loop == 0)
        run.done[k] = 1;
      else
        inside = std::make_unique<Run>(node.body);
      return true;
    }
    const bool moved = advance(*inside);
    if (inside->finished()) inside = nullptr;
    return moved;
  }
  if (node.ready && !node.ready()) return false;
  if (node.run) node.run();
  ++machine().executed;
  run.done[k] = 1;
  return true;
}

bool advance(Run& run) {
  std::vector<std::size_t> open;
  for (std::size_t k = 0; k < run.done.size(); ++k)
    if (run.done[k] == 0) open.push_back(k);
  const std::size_t first = open.empty() ? 0 : draw(open.size());
  for (std::size_t k = 0; k < open.size(); ++k)
    if (advance_node(run, open[(first + k) % open.size()])) return true;
  return false;
}

}  // namespace

// One piece of work of any stream. False: none can go on.
bool pump() {
  auto& streams = machine().streams;
  if (streams.empty()) return false;
  const std::size_t first = draw(streams.size());
  for (std::size_t k = 0; k < streams.size(); ++k) {
    Stream& stream = *streams[(first + k) % streams.size()];
    while (!stream.queue.empty() && stream.queue.front().finished()) stream.queue.pop_front();
    if (stream.queue.empty() || is_stopped(stream.device)) continue;
    if (!advance(stream.queue.front())) continue;
    if (stream.queue.front().finished()) stream.queue.pop_front();
    return true;
  }
  return false;
}

namespace {

// What happens during a call: all, or in deferred mode now and then a little, so that queues grow.
void pump_some(std::size_t seldom) {
  if (!machine().settings.deferred) {
    while (pump()) {
    }
    return;
  }
  if (draw(seldom) != 0) return;
  for (std::size_t steps = draw(4); steps > 0 && pump(); --steps) {
  }
}

}  // namespace

// What frees waits for all that was launched, as the real runtime does; what a stopped device never
// ends is forgotten.
void finish_all() {
  while (pump()) {
  }
  if (machine().stopped >= 0)
    for (Stream* stream : machine().streams) stream->queue.clear();
}
void while_asking() { pump_some(1); }

void enqueue(Stream* stream, std::shared_ptr<Nodes> nodes) {
  stream->queue.emplace_back(std::move(nodes));
  pump_some(machine().launches_seldom);
}

void configure(const Settings& settings) {
  const Guard guard(machine().mutex);
  machine().settings = settings;
  machine().random.seed(settings.seed);
  machine().executed = 0;
  machine().contexts.clear();
  machine().most_taken = machine().taken;
  machine().stopped = machine().broken = -1;
  machine().launches_seldom = std::size_t{1} << draw(6);
  current_device = 0;
}

void stop_device(int device, std::size_t after) {
  const Guard guard(machine().mutex);
  machine().stopped = device;
  machine().stops_at = machine().executed + after;
}

void break_device(int device, std::size_t after) {
  const Guard guard(machine().mutex);
  machine().broken = device;
  machine().breaks_at = machine().executed + after;
}

std::size_t most_taken() {
  const Guard guard(machine().mutex);
  return machine().most_taken;
}
std::vector<std::size_t> arrays_on(int device) {
  const Guard guard(machine().mutex);
  std::vector<std::size_t> bytes;
  for (const auto& [p, memory] : machine().memory)
    if (memory.device == device) bytes.push_back(memory.bytes);
  return bytes;
}
std::size_t taken_on(int device) {
  const auto bytes = arrays_on(device);
  return std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
}

std::size_t executed() {
  const Guard guard(machine().mutex);
  return machine().executed;
}

std::set<int> contexts() {
  const Guard guard(machine().mutex);
  return machine().contexts;
}

int device_of(const Stream* stream) { return stream->device; }
std::size_t sparse_buffer() { return machine().settings.sparse_buffer; }

gpuError_t launch(Stream* stream, Work work) {
  const Guard guard(machine().mutex);
  if (!here(stream->device)) return fail(gpuErrorInvalidResourceHandle);
  if (stream->device == machine().broken && machine().executed >= machine().breaks_at)
    return fail(gpuErrorLaunchFailure);
  work.device = stream->device;
  if (stream->capture != nullptr) {
    work.after = stream->tail;
    stream->capture->nodes->push_back(std::move(work));
    stream->tail = {stream->capture->nodes->size() - 1};
    return gpuSuccess;
  }
  enqueue(stream, std::make_shared<Nodes>(Nodes{std::move(work)}));
  return gpuSuccess;
}

}  // namespace host_gpu
