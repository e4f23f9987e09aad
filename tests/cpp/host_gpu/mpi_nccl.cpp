// The collective library with a process for each rank, for tests under mpirun: calls join the
// queues of their streams, and MPI moves what they move. A communicator's calls run one after
// another, in the order of their launch, as NCCL's do.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "host_collectives.hpp"

namespace cpufree::baselines {

namespace {

struct MpiComm {
  MPI_Comm all = MPI_COMM_NULL;
  std::size_t launched = 0, done = 0;  // operations
};

struct Transfer {
  bool sends;
  void* data;
  std::size_t bytes;
  int peer;
};
struct Sum {
  const void* from;
  void* to;
  std::size_t count;
};

// What one call or group does.
struct Operation {
  std::shared_ptr<MpiComm> comm;
  gpuStream_t stream = nullptr;
  std::vector<Transfer> transfers = {};
  std::vector<Sum> sums = {};
};
int depth = 0;
std::vector<Operation> group;

std::shared_ptr<MpiComm>& comm_of(CollComm comm) {
  return *static_cast<std::shared_ptr<MpiComm>*>(comm);
}

std::vector<MPI_Request> begin(const Operation& operation) {
  std::vector<MPI_Request> requests;
  for (const Transfer& t : operation.transfers) {
    requests.push_back(MPI_REQUEST_NULL);
    const int bytes = static_cast<int>(t.bytes);
    if (t.sends)
      MPI_Isend(t.data, bytes, MPI_BYTE, t.peer, 0, operation.comm->all, &requests.back());
    else
      MPI_Irecv(t.data, bytes, MPI_BYTE, t.peer, 0, operation.comm->all, &requests.back());
  }
  for (const Sum& sum : operation.sums) {
    requests.push_back(MPI_REQUEST_NULL);
    MPI_Iallreduce(sum.from == sum.to ? MPI_IN_PLACE : sum.from, sum.to,
                   static_cast<int>(sum.count), MPI_DOUBLE, MPI_SUM, operation.comm->all,
                   &requests.back());
  }
  return requests;
}

gpuError_t launch(const Operation& operation) {
  MpiComm* const comm = operation.comm.get();
  const std::size_t number = comm->launched++;
  const auto requests = std::make_shared<std::vector<MPI_Request>>();
  const auto ready = [=, begun = false]() mutable {
    if (comm->done != number) return false;
    if (!std::exchange(begun, true)) *requests = begin(operation);
    int all = 0;
    MPI_Testall(static_cast<int>(requests->size()), requests->data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
  };
  const OnDevice here(host_gpu::device_of(operation.stream));
  return host_gpu::launch(operation.stream, {ready, [=] { ++comm->done; }, {}, 0, {}, {}});
}

// One operation for all that a group does on a stream of a communicator.
int end_group() {
  std::vector<Operation> joined;
  for (Operation& one : std::exchange(group, {})) {
    const auto same = std::ranges::find_if(joined, [&](const Operation& other) {
      return other.comm == one.comm && other.stream == one.stream;
    });
    if (same == joined.end()) {
      joined.push_back(std::move(one));
      continue;
    }
    same->transfers.insert(same->transfers.end(), one.transfers.begin(), one.transfers.end());
    same->sums.insert(same->sums.end(), one.sums.begin(), one.sums.end());
  }
  for (const Operation& operation : joined)
    if (launch(operation) != gpuSuccess) return 1;
  return 0;
}

int submit(CollComm comm, gpuStream_t stream, std::vector<Transfer> transfers,
           std::vector<Sum> sums) {
  group.push_back({comm_of(comm), stream, std::move(transfers), std::move(sums)});
  return depth > 0 ? 0 : end_group();
}

// All give the id that rank 0 has made, and the ranks that MPI gives them.
int init_rank(CollComm* comm, int ranks, CollId id, int rank) {
  int me = 0;
  int count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  CollId first = id;
  MPI_Bcast(first.bytes, sizeof(first.bytes), MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank != me || ranks != count || std::memcmp(first.bytes, id.bytes, sizeof(id.bytes)) != 0)
    return 1;
  auto made = std::make_unique<std::shared_ptr<MpiComm>>(std::make_shared<MpiComm>());
  MPI_Comm_dup(MPI_COMM_WORLD, &(*made)->all);
  *comm = made.release();
  return 0;
}

}  // namespace

CollLibrary load_collectives(const std::string& path) {
  CollLibrary library = host_library(path, "collectives over MPI failed");
  library.make_id = [](CollId* id) {
    static char made = 0;
    std::ranges::fill(id->bytes, ++made);
    return 0;
  };
  library.init_rank = init_rank;
  library.destroy = library.abort = [](CollComm comm) {
    delete static_cast<std::shared_ptr<MpiComm>*>(comm);  // MPI's ends with the process
    return 0;
  };
  library.group_start = [] {
    ++depth;
    return 0;
  };
  library.group_end = [] { return --depth > 0 ? 0 : end_group(); };
  library.all_reduce = [](const void* from, void* to, std::size_t count, int, int, CollComm comm,
                          gpuStream_t stream) {
    return submit(comm, stream, {}, {{from, to, count}});
  };
  library.send = [](const void* data, std::size_t count, int type, int peer, CollComm comm,
                    gpuStream_t stream) {
    return submit(comm, stream, {{true, const_cast<void*>(data), count * size_of(type), peer}}, {});
  };
  library.receive = [](void* data, std::size_t count, int type, int peer, CollComm comm,
                       gpuStream_t stream) {
    return submit(comm, stream, {{false, data, count * size_of(type), peer}}, {});
  };
  return library;
}

std::string version_text(int version) { return std::to_string(version); }

}  // namespace cpufree::baselines
