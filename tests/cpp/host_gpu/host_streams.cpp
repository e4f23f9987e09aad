// The runtime's functions: streams, events and graphs.
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "schedule.hpp"

using namespace host_gpu;

namespace {

gpuError_t create_stream(gpuStream_t* stream) {
  const Guard guard(machine().mutex);
  need_context();
  *stream = new Stream;
  (*stream)->device = current_device;
  machine().streams.push_back(*stream);
  return gpuSuccess;
}

// Whether node `k` of a graph comes before one of `ends`, or is one.
bool comes_before(const Nodes& nodes, std::size_t k, const std::vector<std::size_t>& ends) {
  std::set<std::size_t> met(ends.begin(), ends.end());
  for (std::size_t n = nodes.size(); n-- > 0;)  // edges lead to smaller numbers
    if (met.contains(n)) met.insert(nodes[n].after.begin(), nodes[n].after.end());
  return met.contains(k);
}

}  // namespace

gpuError_t gpuStreamCreate(gpuStream_t* stream) { return create_stream(stream); }
gpuError_t gpuStreamCreateUrgent(gpuStream_t* stream) { return create_stream(stream); }
gpuError_t gpuStreamDestroy(gpuStream_t stream) {
  const Guard guard(machine().mutex);
  while (!stream->queue.empty() && pump()) {
  }
  std::erase(machine().streams, stream);
  delete stream;
  return gpuSuccess;
}
gpuError_t gpuStreamQuery(gpuStream_t stream) {
  if (stream == nullptr) return gpuSuccess;  // what is not queued has been done at once
  {
    const Guard guard(machine().mutex);
    if (stream->capture != nullptr) return fail(gpuErrorCaptureUnsupported);
    while_asking();
    while (!stream->queue.empty() && stream->queue.front().finished()) stream->queue.pop_front();
    if (stream->queue.empty()) return gpuSuccess;
  }
  std::this_thread::yield();  // the threads of other GPUs may have to launch something first
  return gpuErrorNotReady;
}

gpuError_t gpuStreamSynchronize(gpuStream_t stream) {
  gpuError_t status = gpuSuccess;
  while ((status = gpuStreamQuery(stream)) == gpuErrorNotReady) {
  }
  return status;
}

gpuError_t gpuStreamWaitEvent(gpuStream_t stream, gpuEvent_t event, unsigned) {
  const Guard guard(machine().mutex);
  if (machine().settings.ignore_waits && stream->capture == nullptr) return gpuSuccess;
  if (event->graph != nullptr) {  // joins the capture
    if (stream->capture != nullptr && stream->capture != event->graph)
      return fail(gpuErrorCaptureUnsupported);
    if (stream->capture == nullptr) stream->tail.clear();
    stream->capture = const_cast<Graph*>(event->graph);
    stream->tail.insert(stream->tail.end(), event->after.begin(), event->after.end());
    return gpuSuccess;
  }
  if (stream->capture != nullptr) return fail(gpuErrorCaptureUnsupported);
  const std::size_t want = event->recorded;
  enqueue(stream, std::make_shared<Nodes>(Nodes{
                      {[=] { return event->reached >= want; }, {}, {}, stream->device, {}, {}}}));
  return gpuSuccess;
}

// Words are read and written by threads that stand for kernels, too.
gpuError_t gpuStreamWaitWord(gpuStream_t stream, const void* address, unsigned long long value) {
  auto* const word = static_cast<unsigned long long*>(const_cast<void*>(address));
  const auto ready = [=] {
    const auto seen = std::atomic_ref<unsigned long long>(*word).load(std::memory_order_acquire);
    return static_cast<long long>(seen - value) >= 0;
  };
  const Guard guard(machine().mutex);
  enqueue(stream, std::make_shared<Nodes>(Nodes{{ready, {}, {}, stream->device, {}, {}}}));
  return gpuSuccess;
}
gpuError_t gpuStreamWriteWord(gpuStream_t stream, void* address, unsigned long long value) {
  auto* const word = static_cast<unsigned long long*>(address);
  {
    const Guard guard(machine().mutex);
    if (!machine().settings.peer_words && lies_on(word) >= 0 && lies_on(word) != stream->device)
      return fail(gpuErrorInvalidValue);
  }
  const auto write = [=] {
    std::atomic_ref<unsigned long long>(*word).store(value, std::memory_order_release);
  };
  return launch(stream, {{}, write, {}, 0, {}, {}});
}

gpuError_t gpuEventCreate(gpuEvent_t* event) {
  need_context();
  *event = new Event;
  (*event)->device = current_device;
  return gpuSuccess;
}
gpuError_t gpuEventCreateUntimed(gpuEvent_t* event) { return gpuEventCreate(event); }
gpuError_t gpuEventDestroy(gpuEvent_t event) {
  const Guard guard(machine().mutex);
  finish_all();  // queues hold its address
  delete event;
  return gpuSuccess;
}
gpuError_t gpuEventRecord(gpuEvent_t event, gpuStream_t stream) {
  const Guard guard(machine().mutex);
  if (event->device != stream->device) return fail(gpuErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    event->graph = stream->capture;
    event->after = stream->tail;
    return gpuSuccess;
  }
  event->graph = nullptr;
  const std::size_t number = ++event->recorded;
  enqueue(stream,
          std::make_shared<Nodes>(Nodes{{{},
                                         [=] { event->reached = std::max(event->reached, number); },
                                         {},
                                         stream->device,
                                         {},
                                         {}}}));
  return gpuSuccess;
}
gpuError_t gpuEventQuery(gpuEvent_t event) {
  {
    const Guard guard(machine().mutex);
    if (event->graph != nullptr) return fail(gpuErrorCaptureUnsupported);
    while_asking();
    if (event->reached >= event->recorded) return gpuSuccess;
  }
  std::this_thread::yield();
  return gpuErrorNotReady;
}
gpuError_t gpuEventSynchronize(gpuEvent_t event) {
  gpuError_t status = gpuSuccess;
  while ((status = gpuEventQuery(event)) == gpuErrorNotReady) {
  }
  return status;
}
gpuError_t gpuEventElapsedTime(float* milliseconds, gpuEvent_t from, gpuEvent_t to) {
  if (gpuEventQuery(from) != gpuSuccess || gpuEventQuery(to) != gpuSuccess)
    return fail(gpuErrorNotReady);
  *milliseconds = 1.0F;
  return gpuSuccess;
}

gpuError_t gpuStreamBeginCaptureInto(gpuStream_t stream, gpuGraph_t graph) {
  const Guard guard(machine().mutex);
  if (stream->capture != nullptr) return fail(gpuErrorCaptureUnsupported);
  stream->capture = graph;
  stream->origin = true;
  stream->tail.clear();
  return gpuSuccess;
}
gpuError_t gpuStreamBeginCapture(gpuStream_t stream) {
  return gpuStreamBeginCaptureInto(stream, new Graph);
}
gpuError_t gpuStreamEndCapture(gpuStream_t stream, gpuGraph_t* graph) {
  const Guard guard(machine().mutex);
  if (!stream->origin) return fail(gpuErrorCaptureUnsupported);
  *graph = stream->capture;
  const Nodes& nodes = *stream->capture->nodes;
  bool joined = true;
  for (Stream* other : machine().streams) {
    if (other->capture != *graph) continue;
    for (const std::size_t end : other->tail)
      joined = joined && comes_before(nodes, end, stream->tail);
    other->capture = nullptr;
    if (other != stream) other->tail.clear();
  }
  stream->origin = false;
  return joined ? gpuSuccess : fail(gpuErrorCaptureUnjoined);
}
gpuError_t gpuGraphCreate(gpuGraph_t* graph, unsigned) {
  *graph = new Graph;
  return gpuSuccess;
}
gpuError_t gpuGraphDestroy(gpuGraph_t graph) {
  delete graph;
  return gpuSuccess;
}
gpuError_t gpuGraphInstantiate(gpuGraphExec_t* exec, gpuGraph_t graph) {
  *exec = new Graph(*graph);
  return gpuSuccess;
}
gpuError_t gpuGraphExecDestroy(gpuGraphExec_t exec) { return gpuGraphDestroy(exec); }
gpuError_t gpuGraphUpload(gpuGraphExec_t, gpuStream_t) { return gpuSuccess; }
gpuError_t gpuGraphLaunch(gpuGraphExec_t exec, gpuStream_t stream) {
  const Guard guard(machine().mutex);
  if (!here(stream->device)) return fail(gpuErrorInvalidResourceHandle);
  for (const Work& node : *exec->nodes)
    if (node.loop != nullptr) *node.loop = 1;
  enqueue(stream, exec->nodes);
  return gpuSuccess;
}
gpuError_t gpuGraphLoopHandle(gpuLoopHandle_t* handle, gpuGraph_t) {
  *handle = std::make_shared<unsigned>(1);
  return gpuSuccess;
}
gpuError_t gpuGraphAddLoop(gpuGraph_t graph, const gpuLoopHandle_t& handle, gpuGraph_t* body) {
  static std::deque<Graph> bodies;  // owned by their loops, as CUDA's are
  bodies.emplace_back();
  *body = &bodies.back();
  Work loop;
  loop.body = (*body)->nodes;
  loop.loop = handle;
  graph->nodes->push_back(std::move(loop));
  return gpuSuccess;
}

void gpuRelax() {
  {
    const Guard guard(machine().mutex);
    while_asking();
  }
  std::this_thread::yield();
}
