// The runtime's functions.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "schedule.hpp"

using namespace host_gpu;

namespace {

// The device whose memory `p` is in; -1: of none.
int lies_on(const void* p) {
  const auto& memory = machine().memory;
  auto found = memory.upper_bound(p);
  if (found == memory.begin()) return -1;
  --found;
  const auto offset = static_cast<const char*>(p) - static_cast<const char*>(found->first);
  const bool inside =
      static_cast<std::size_t>(offset) < std::max<std::size_t>(found->second.bytes, 1);
  return inside ? found->second.device : -1;
}

// Bytes of ones are NaNs: until something is written, and behind the end, so that even a read in
// vain, whose value is multiplied by zero, shows.
constexpr std::size_t kBehind = 4096;
gpuError_t allocate(void** p, std::size_t bytes) {
  need_context();
  const std::size_t all = (bytes + kBehind + 255) / 256 * 256;
  *p = std::aligned_alloc(256, all);  // as CUDA's
  if (*p == nullptr) return fail(gpuErrorMemoryAllocation);
  std::memset(*p, 0xff, all);
  return gpuSuccess;
}

// Nothing writes behind the end, either.
void check_behind(const void* p, std::size_t bytes) {
  const auto* const end = static_cast<const unsigned char*>(p) + bytes;
  for (std::size_t k = 0; k < kBehind; ++k) {
    if (end[k] == 0xff) continue;
    std::fprintf(stderr, "host_gpu: byte %zu behind %zu bytes was written\n", k, bytes);
    std::abort();
  }
}

// A copy. One of a word may be a flag, which kernels read meanwhile.
void move(void* to, const void* from, std::size_t bytes) {
  using Word = unsigned long long;
  if (bytes == sizeof(Word) && reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) == 0) {
    Word word;
    std::memcpy(&word, from, sizeof(word));
    std::atomic_ref<Word>(*static_cast<Word*>(to)).store(word, std::memory_order_release);
  } else {
    std::memcpy(to, from, bytes);
  }
}

bool is_small(int device) { return device == machine().settings.small; }

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

const char* gpuGetErrorString(gpuError_t status) {
  static const char* const texts[] = {"no error",
                                      "invalid argument",
                                      "out of memory",
                                      "not ready",
                                      "peer access is enabled already",
                                      "invalid device ordinal",
                                      "invalid resource handle",
                                      "peer access is not supported",
                                      "operation not permitted while a stream is captured",
                                      "unjoined work in a capture",
                                      "unspecified launch failure",
                                      "named symbol not found",
                                      "the driver is too old",
                                      "no device"};
  return texts[status];
}
gpuError_t gpuGetLastError() { return std::exchange(last_error, gpuSuccess); }

gpuError_t gpuDriverGetVersion(int* version) {
  *version = gpuRuntimeVersion;
  return gpuSuccess;
}
gpuError_t gpuGetDeviceCount(int* count) {
  *count = machine().settings.devices;
  return gpuSuccess;
}
gpuError_t gpuGetDevice(int* device) {
  *device = current_device;
  return gpuSuccess;
}
gpuError_t gpuSetDevice(int device) {
  if (device < 0 || device >= machine().settings.devices) return fail(gpuErrorInvalidDevice);
  current_device = device;
  need_context();
  return gpuSuccess;
}
gpuError_t gpuStart() {
  need_context();
  return gpuSuccess;
}
gpuError_t gpuIsStarted(int* started, int device) {
  const Guard guard(machine().mutex);
  *started = machine().contexts.contains(device) ? 1 : 0;
  return gpuSuccess;
}
gpuError_t gpuDeviceSynchronize() {
  const Guard guard(machine().mutex);
  finish_all();
  return gpuSuccess;
}
gpuError_t gpuGetDeviceProperties(gpuDeviceProp_t* properties, int device) {
  int multiprocessors = 0;
  static_cast<void>(gpuMultiprocessors(&multiprocessors, device));
  *properties = {"stand-in", machine().settings.memory, multiprocessors, 9, 0, 0, {}};
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  return gpuSuccess;
}
gpuError_t gpuDeviceCanAccessPeer(int* reaches, int, int) {
  *reaches = machine().settings.peers ? 1 : 0;
  return gpuSuccess;
}
gpuError_t gpuPeerAtomics(int* offered, int from, int to) {
  return gpuDeviceCanAccessPeer(offered, from, to);
}
gpuError_t gpuDeviceEnablePeerAccess(int, unsigned) {
  if (!machine().settings.peer_memory) return fail(gpuErrorMemoryAllocation);
  return machine().settings.peers ? gpuSuccess : fail(gpuErrorPeerAccessUnsupported);
}
gpuError_t gpuMultiprocessors(int* count, int device) {
  *count = is_small(device) ? 1 : machine().settings.multiprocessors;
  return gpuSuccess;
}
gpuError_t gpuSharedMemoryOfBlock(int* bytes, int device) {
  *bytes = (is_small(device) ? 20 : 227) << 10;
  return gpuSuccess;
}
gpuError_t gpuSharedMemoryOfMultiprocessor(int* bytes, int device) {
  *bytes = (is_small(device) ? 21 : 228) << 10;
  return gpuSuccess;
}
gpuError_t gpuReservedSharedMemory(int* bytes, int) {
  *bytes = 1 << 10;
  return gpuSuccess;
}
gpuError_t gpuFuncPreferSharedMemory(const void*, int percent) {
  return percent >= 0 && percent <= 100 ? gpuSuccess : gpuErrorInvalidValue;
}
gpuError_t gpuCooperativeLaunch(int* offered, int) {
  *offered = 1;
  return gpuSuccess;
}
gpuError_t gpuDeviceOf(int* device, const void* p) {
  const Guard guard(machine().mutex);
  *device = lies_on(p);
  return gpuSuccess;
}

gpuError_t gpuMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = *all = machine().settings.memory;
  return gpuSuccess;
}
gpuError_t gpuMalloc(void** p, std::size_t bytes) {
  if (const gpuError_t status = allocate(p, bytes); status != gpuSuccess) return status;
  const Guard guard(machine().mutex);
  machine().memory[*p] = {current_device, bytes};
  machine().taken += bytes;
  machine().most_taken = std::max(machine().most_taken, machine().taken);
  return gpuSuccess;
}
gpuError_t gpuFree(void* p) {
  const Guard guard(machine().mutex);
  finish_all();
  if (const auto known = machine().memory.find(p); known != machine().memory.end()) {
    check_behind(p, known->second.bytes);
    machine().taken -= known->second.bytes;
    machine().memory.erase(known);
  }
  std::free(p);
  return gpuSuccess;
}
gpuError_t gpuMallocManaged(void** p, std::size_t bytes) { return allocate(p, bytes); }
gpuError_t gpuIpcGetMemHandle(gpuIpcMemHandle_t* handle, void* p) {
  *handle = {p, {}};
  return gpuSuccess;
}
gpuError_t gpuIpcOpenMemHandle(void** p, gpuIpcMemHandle_t handle) {
  *p = handle.p;
  return gpuSuccess;
}
gpuError_t gpuIpcCloseMemHandle(void*) { return gpuSuccess; }
gpuError_t gpuHostAlloc(void** p, std::size_t bytes) { return allocate(p, bytes); }
gpuError_t gpuHostAllocMapped(void** p, std::size_t bytes) { return allocate(p, bytes); }
gpuError_t gpuFreeHost(void* p) {
  const Guard guard(machine().mutex);
  finish_all();
  std::free(p);
  return gpuSuccess;
}
gpuError_t gpuMemset(void* p, int value, std::size_t bytes) {
  std::memset(p, value, bytes);
  return gpuSuccess;
}
gpuError_t gpuMemcpy(void* to, const void* from, std::size_t bytes, int) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return gpuSuccess;
}
gpuError_t gpuMemsetAsync(void* p, int value, std::size_t bytes, gpuStream_t stream) {
  return launch(stream, {{}, [=] { std::memset(p, value, bytes); }, {}, 0, {}, {}});
}
gpuError_t gpuMemcpyAsync(void* to, const void* from, std::size_t bytes, int, gpuStream_t stream) {
  return launch(stream, {{}, [=] { move(to, from, bytes); }, {}, 0, {}, {}});
}
gpuError_t gpuMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t width, std::size_t rows, int,
                            gpuStream_t stream) {
  const auto copy = [=] {
    for (std::size_t k = 0; k < rows; ++k)
      std::memcpy(static_cast<std::byte*>(to) + k * to_pitch,
                  static_cast<const std::byte*>(from) + k * from_pitch, width);
  };
  return launch(stream, {{}, copy, {}, 0, {}, {}});
}
gpuError_t gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              std::size_t bytes, gpuStream_t stream) {
  {
    const Guard guard(machine().mutex);
    if (lies_on(to) != to_device || lies_on(from) != from_device) return fail(gpuErrorInvalidValue);
  }
  return launch(stream, {{}, [=] { move(to, from, bytes); }, {}, 0, {}, {}});
}

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
