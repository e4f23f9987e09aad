// The collective library on the host, for tests: calls join the queues of their streams, and run
// once all ranks have come to them, as NCCL's kernels do. A communicator's calls
// of one rank run one after another.
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "host_collectives.hpp"

namespace cpufree::baselines {

namespace {

struct Transfer {
  void* data;
  std::size_t bytes;
  int peer;
  bool done = false;
};

// What one rank does in one call or group.
struct Operation {
  bool reduces = false;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  std::vector<Transfer> sends, receives;
  bool done = false;
};

struct Clique;
struct HostComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  std::shared_ptr<Operation> under_way;  // its stream has come to it
};
struct Clique {
  std::vector<HostComm> comms;
  bool aborted = false;  // all that is under way ends
};

struct Pending {
  HostComm* comm;
  gpuStream_t stream;
  Operation operation;
};
thread_local int depth = 0;
thread_local std::vector<Pending> group;

void reduce(Clique& clique) {
  const std::size_t count = clique.comms.front().under_way->count;
  std::vector<double> total(count, 0.0);
  for (const HostComm& comm : clique.comms)
    for (std::size_t k = 0; k < count; ++k)
      total[k] += static_cast<const double*>(comm.under_way->from)[k];
  for (HostComm& comm : clique.comms) {
    std::memcpy(comm.under_way->to, total.data(), count * sizeof(double));
    comm.under_way->done = true;
  }
}

// Moves what both sides have come to.
void match(Clique& clique, HostComm& me) {
  Operation& mine = *me.under_way;
  if (mine.reduces) {
    for (const HostComm& comm : clique.comms)
      if (comm.under_way == nullptr || !comm.under_way->reduces || comm.under_way->done) return;
    reduce(clique);
    return;
  }
  for (Transfer& receive : mine.receives) {
    const auto& other = clique.comms[static_cast<std::size_t>(receive.peer)].under_way;
    if (receive.done || other == nullptr || other->reduces) continue;
    for (Transfer& send : other->sends)
      if (!send.done && send.peer == me.rank && send.bytes == receive.bytes) {
        std::memcpy(receive.data, send.data, send.bytes);
        send.done = receive.done = true;
        break;
      }
  }
  mine.done = true;
  for (const auto* list : {&mine.sends, &mine.receives})
    for (const Transfer& transfer : *list) mine.done = mine.done && transfer.done;
}

gpuError_t launch(const Pending& pending) {
  HostComm* const me = pending.comm;
  const std::shared_ptr<Clique> clique = me->clique;  // which outlives what is under way
  // A graph is launched again and again: what is done is undone when it begins again.
  const auto original = std::make_shared<Operation>(pending.operation);
  const auto mine = std::make_shared<Operation>();
  const auto ready = [=] {
    if (clique->aborted) return true;
    if (me->under_way == nullptr) {
      *mine = *original;
      me->under_way = mine;
    }
    if (me->under_way != mine) return false;
    if (!mine->done) match(*clique, *me);
    return mine->done;
  };
  return host_gpu::launch(pending.stream, {ready, [=] { me->under_way = nullptr; }, {}, 0, {}, {}});
}

// One operation for all transfers of a communicator.
int end_group() {
  std::map<std::pair<HostComm*, gpuStream_t>, Pending> transfers;
  std::vector<Pending> all;
  for (const Pending& pending : group) {
    if (pending.operation.reduces) {
      all.push_back(pending);
      continue;
    }
    auto& joined = transfers[{pending.comm, pending.stream}];
    joined.comm = pending.comm;
    joined.stream = pending.stream;
    for (const Transfer& t : pending.operation.sends) joined.operation.sends.push_back(t);
    for (const Transfer& t : pending.operation.receives) joined.operation.receives.push_back(t);
  }
  group.clear();
  for (const auto& [key, joined] : transfers) all.push_back(joined);
  for (const Pending& pending : all) {
    const OnDevice here(host_gpu::device_of(pending.stream));
    if (launch(pending) != gpuSuccess) return 1;
  }
  return 0;
}

int submit(CollComm comm, gpuStream_t stream, Operation operation) {
  group.push_back({static_cast<HostComm*>(comm), stream, std::move(operation)});
  return depth > 0 ? 0 : end_group();
}

}  // namespace

CollLibrary load_collectives(const std::string& path) {
  CollLibrary library = host_library(path, "host collectives failed");
  library.init_all = [](CollComm* comms, int count, const int*) {
    auto clique = std::make_shared<Clique>();
    clique->comms.resize(static_cast<std::size_t>(count));
    for (int k = 0; k < count; ++k) {
      clique->comms[static_cast<std::size_t>(k)].rank = k;
      clique->comms[static_cast<std::size_t>(k)].clique = clique;
      comms[k] = &clique->comms[static_cast<std::size_t>(k)];
    }
    return 0;
  };
  library.destroy = library.abort = [](CollComm comm) {
    // The last one frees all.
    const auto clique = std::exchange(static_cast<HostComm*>(comm)->clique, nullptr);
    clique->aborted = true;
    return 0;
  };
  library.group_start = [] {
    ++depth;
    return 0;
  };
  library.group_end = [] { return --depth > 0 ? 0 : end_group(); };
  library.all_reduce = [](const void* from, void* to, std::size_t count, int, int, CollComm comm,
                          gpuStream_t stream) {
    Operation operation;
    operation.reduces = true;
    operation.from = from;
    operation.to = to;
    operation.count = count;
    return submit(comm, stream, std::move(operation));
  };
  library.send = [](const void* data, std::size_t count, int type, int peer, CollComm comm,
                    gpuStream_t stream) {
    Operation operation;
    operation.sends.push_back({const_cast<void*>(data), count * size_of(type), peer});
    return submit(comm, stream, std::move(operation));
  };
  library.receive = [](void* data, std::size_t count, int type, int peer, CollComm comm,
                       gpuStream_t stream) {
    Operation operation;
    operation.receives.push_back({data, count * size_of(type), peer});
    return submit(comm, stream, std::move(operation));
  };
  return library;
}

std::string version_text(int version) { return std::to_string(version); }

}  // namespace cpufree::baselines
