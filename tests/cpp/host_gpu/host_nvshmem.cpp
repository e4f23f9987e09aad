// NVSHMEM on the host, for tests: PEs are baselines of one process, each with a library of its own
// that knows which one it is. Calls join the queues of their streams. It is as unkind as NVSHMEM
// may be: new memory holds NaNs, puts without wait (nbi) are under way until a PE looks, and
// the first PE that comes to a reduction spoils the targets of all.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/baselines/gpu.hpp"
#include "cpufree/baselines/nvshmem_library.hpp"
#include "schedule.hpp"

namespace cpufree::baselines {

namespace {

struct Block {
  char* begin;
  std::size_t bytes;
};

// A reduction, or a barrier, of all PEs.
struct Round {
  std::size_t count = 0;
  std::size_t came = 0;
  std::vector<std::vector<double>> values;  // of each PE
};

// What a PE has.
struct Place {
  std::vector<Block> heap;  // the same on all PEs, at other addresses
  std::size_t rounds = 0;   // that it has launched
  std::map<int, std::pair<gpuStream_t, gpuEvent_t>> streams;  // of puts without wait, by target
};

struct World {
  std::vector<Place> places;
  std::map<std::size_t, std::shared_ptr<Round>> rounds;

  ~World() {
    for (const Place& place : places) {
      for (const Block& block : place.heap) static_cast<void>(gpuFree(block.begin));
      for (const auto& [peer, both] : place.streams) {
        static_cast<void>(gpuStreamDestroy(both.first));
        static_cast<void>(gpuEventDestroy(both.second));
      }
    }
  }
  // An address of PE `from`, on PE `to`; null where it is none of symmetric memory.
  template <class V>
  V* translate(V* p, int from, int to) const {
    const auto* const wanted = reinterpret_cast<const char*>(p);
    const auto& heap = places[at(from)].heap;
    for (std::size_t k = 0; k < heap.size(); ++k)
      if (wanted >= heap[k].begin && wanted < heap[k].begin + heap[k].bytes)
        return reinterpret_cast<V*>(places[at(to)].heap[k].begin + (wanted - heap[k].begin));
    return nullptr;
  }
};

std::map<ShmemId, std::weak_ptr<World>> worlds;
std::mutex worlds_mutex;

// One process: its world, and its number there.
struct Process {
  std::shared_ptr<World> world;
  int rank = 0;
  Place& place() const { return world->places[at(rank)]; }
};

ShmemId new_id() {
  static int made = 0;
  const std::lock_guard lock(worlds_mutex);
  ShmemId id = {};
  const int number = ++made;
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

void start(Process& me, int rank, int size, const ShmemId& id) {
  const std::lock_guard lock(worlds_mutex);
  me.world = worlds[id].lock();
  if (me.world == nullptr) {
    me.world = std::make_shared<World>();
    me.world->places.resize(at(size));
    worlds[id] = me.world;
  }
  me.rank = rank;
}

// Waits for all, as the real one does. Null where they ask for different sizes.
void* allocate(Process& me, std::size_t bytes) {
  void* p = nullptr;
  if (gpuMalloc(&p, bytes) != gpuSuccess) return nullptr;
  auto& mine = me.place().heap;
  {
    const host_gpu::Guard guard(host_gpu::machine().mutex);
    mine.push_back({static_cast<char*>(p), bytes});
  }
  const std::size_t number = mine.size() - 1;
  for (const Deadline deadline(20.0); !deadline.over(); std::this_thread::yield()) {
    const host_gpu::Guard guard(host_gpu::machine().mutex);
    std::size_t there = 0;
    for (const Place& place : me.world->places)
      if (place.heap.size() > number) there += place.heap[number].bytes == bytes ? 1 : 0;
    if (there == me.world->places.size()) return p;
  }
  return nullptr;
}

void run_on(gpuStream_t stream, std::function<bool()> ready, std::function<void()> run) {
  static_cast<void>(host_gpu::launch(stream, {std::move(ready), std::move(run), {}, 0, {}, {}}));
}

void put(const Process& me, void* to, const void* from, std::size_t bytes, std::uint64_t* signal,
         std::uint64_t value, int pe, gpuStream_t stream) {
  void* const there = me.world->translate(static_cast<char*>(to), me.rank, pe);
  std::uint64_t* const flag = me.world->translate(signal, me.rank, pe);
  if (there == nullptr || flag == nullptr || pe == me.rank) std::abort();
  run_on(stream, {}, [=] { std::memcpy(there, from, bytes); });
  run_on(stream, {}, [=] { *flag = value; });
}

// The stream of puts to a PE, behind that of the caller.
gpuStream_t stream_behind(Process& me, int pe, gpuStream_t stream) {
  auto& [own, event] = me.place().streams[pe];
  if (own == nullptr) {
    static_cast<void>(gpuStreamCreate(&own));
    static_cast<void>(gpuEventCreate(&event));
  }
  static_cast<void>(gpuEventRecord(event, stream));
  static_cast<void>(gpuStreamWaitEvent(own, event, 0));
  return own;
}

// The next operation of all PEs: `take` adds what this one has to it, `end` gives what came of it.
void join(Process& me, std::size_t count, gpuStream_t stream,
          const std::function<void(Round&)>& take, const std::function<void(Round&)>& end) {
  std::shared_ptr<Round> round;
  {
    const host_gpu::Guard guard(host_gpu::machine().mutex);
    auto& kept = me.world->rounds[me.place().rounds++];
    if (kept == nullptr) {
      kept = std::make_shared<Round>();
      kept->count = count;
    }
    round = kept;
  }
  if (round->count != count) std::abort();
  const auto in = std::make_shared<bool>(false);
  const std::size_t size = me.world->places.size();
  run_on(
      stream,
      [=] {
        if (!std::exchange(*in, true)) {
          take(*round);
          ++round->came;
        }
        return round->came == size;
      },
      [=] { end(*round); });
}

int reduce(Process& me, double* to, const double* from, std::size_t count, gpuStream_t stream,
           double (*both)(double, double)) {
  std::vector<double*> targets;
  for (std::size_t pe = 0; pe < me.world->places.size(); ++pe)
    targets.push_back(me.world->translate(to, me.rank, static_cast<int>(pe)));
  if (me.world->translate(from, me.rank, me.rank) == nullptr || targets.front() == nullptr)
    return 1;
  join(
      me, count, stream,
      [=, rank = me.rank](Round& round) {
        if (round.came == 0)
          for (double* const target : targets)
            std::fill_n(target, count, std::numeric_limits<double>::quiet_NaN());
        round.values.resize(targets.size());
        round.values[at(rank)].assign(from, from + count);
      },
      [=](Round& round) {
        for (std::size_t k = 0; k < count; ++k) {
          to[k] = round.values.front()[k];  // then in the order of the PEs: the same bits on all
          for (std::size_t pe = 1; pe < targets.size(); ++pe)
            to[k] = both(to[k], round.values[pe][k]);
        }
      });
  return 0;
}

}  // namespace

ShmemLibrary load_shmem(const std::string& path) {
  if (path == "missing") throw Unsupported("NVSHMEM was not found (missing)");
  const auto me = std::make_shared<Process>();
  ShmemLibrary library;
  library.version = "3.4.5";
  library.path = "the host";
  library.make_id = new_id;
  library.start = [=](int rank, int size, const ShmemId& id) { start(*me, rank, size, id); };
  library.allocate = [=](std::size_t bytes) { return allocate(*me, bytes); };
  library.address = [=](const void* p, int pe) {
    return me->world->translate(static_cast<char*>(const_cast<void*>(p)), me->rank, pe);
  };
  library.put_signal = [=](void* to, const void* from, std::size_t bytes, std::uint64_t* signal,
                           std::uint64_t value, int, int pe, gpuStream_t stream) {
    put(*me, to, from, bytes, signal, value, pe, stream);
  };
  library.put_signal_nbi = [=](void* to, const void* from, std::size_t bytes, std::uint64_t* signal,
                               std::uint64_t value, int, int pe, gpuStream_t stream) {
    put(*me, to, from, bytes, signal, value, pe, stream_behind(*me, pe, stream));
  };
  library.signal = [=](std::uint64_t* signal, std::uint64_t value, int, int pe,
                       gpuStream_t stream) {
    std::uint64_t* const there = me->world->translate(signal, me->rank, pe);
    if (there == nullptr || pe == me->rank) std::abort();
    run_on(stream, {}, [=] { *there = value; });
  };
  library.wait = [](std::uint64_t* signal, int, std::uint64_t value, gpuStream_t stream) {
    const bool ignored = host_gpu::machine().settings.ignore_waits;
    run_on(stream, [=] { return ignored || *signal >= value; }, {});
  };
  library.sum = [=](int, double* to, const double* from, std::size_t count, gpuStream_t stream) {
    return reduce(*me, to, from, count, stream, [](double a, double b) { return a + b; });
  };
  library.max = [=](int, double* to, const double* from, std::size_t count, gpuStream_t stream) {
    return reduce(*me, to, from, count, stream, [](double a, double b) { return std::fmax(a, b); });
  };
  library.barrier = [=](gpuStream_t stream) { join(*me, 0, stream, [](Round&) {}, [](Round&) {}); };
  return library;
}

}  // namespace cpufree::baselines
