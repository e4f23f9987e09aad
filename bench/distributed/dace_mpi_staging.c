// Messages from and to memory of GPUs, for an MPI that reaches memory of the host alone: what the
// code that DaCe generates for GPUs asks of its MPI. A message's values are copied to the host
// before it is sent, and to the GPU when it has arrived; the rest is MPI's.
//
// Regions without gaps only: rows, and single values. Others end the run.
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 64 };

// A message that is under way: where its values lie on the host, and, of one that arrives, where
// they belong.
struct Staged {
  MPI_Request request;
  void* host;
  size_t room;
  void* device;
  size_t bytes;
};
static struct Staged staged[kMost];

static void stop(const char* why) {
  fprintf(stderr, "dace_mpi_staging: %s\n", why);
  PMPI_Abort(MPI_COMM_WORLD, 1);
}
static void checked(cudaError_t error) {
  if (error != cudaSuccess) stop(cudaGetErrorString(error));
}
static int on_gpu(const void* at) {
  struct cudaPointerAttributes known;
  return cudaPointerGetAttributes(&known, at) == cudaSuccess && known.type == cudaMemoryTypeDevice;
}
static size_t bytes_of(int count, MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0;
  int size = 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &low, &extent);
  if (low != 0 || extent != size) stop("a region with gaps");
  return (size_t)size * (size_t)count;
}
// Memory of the host for a message, page-locked, kept for the next ones.
static struct Staged* taken(size_t bytes) {
  for (int k = 0; k < kMost; ++k) {
    struct Staged* s = &staged[k];
    if (s->bytes != 0) continue;
    if (s->room < bytes) {
      if (s->host != NULL) checked(cudaFreeHost(s->host));
      checked(cudaMallocHost(&s->host, bytes));
      s->room = bytes;
    }
    s->bytes = bytes;
    s->device = NULL;
    return s;
  }
  stop("too many messages are under way");
  return NULL;
}
static void done(struct Staged* s) {
  if (s->device != NULL) checked(cudaMemcpy(s->device, s->host, s->bytes, cudaMemcpyHostToDevice));
  s->bytes = 0;
}
static struct Staged* of(MPI_Request request) {
  for (int k = 0; k < kMost; ++k)
    if (staged[k].bytes != 0 && staged[k].request == request) return &staged[k];
  return NULL;
}
static struct Staged* sent(const void* from, int count, MPI_Datatype type) {
  struct Staged* s = taken(bytes_of(count, type));
  checked(cudaMemcpy(s->host, from, s->bytes, cudaMemcpyDeviceToHost));
  return s;
}

int MPI_Isend(const void* from, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (peer < 0 || !on_gpu(from)) return PMPI_Isend(from, count, type, peer, tag, comm, request);
  struct Staged* s = sent(from, count, type);
  const int error = PMPI_Isend(s->host, (int)s->bytes, MPI_BYTE, peer, tag, comm, request);
  s->request = *request;
  return error;
}
int MPI_Irecv(void* to, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (peer < 0 || !on_gpu(to)) return PMPI_Irecv(to, count, type, peer, tag, comm, request);
  struct Staged* s = taken(bytes_of(count, type));
  s->device = to;
  const int error = PMPI_Irecv(s->host, (int)s->bytes, MPI_BYTE, peer, tag, comm, request);
  s->request = *request;
  return error;
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  struct Staged* mine[kMost] = {0};
  if (count > kMost) stop("too many requests");
  for (int k = 0; k < count; ++k) mine[k] = of(requests[k]);
  const int error = PMPI_Waitall(count, requests, statuses);
  for (int k = 0; k < count; ++k)
    if (mine[k] != NULL) done(mine[k]);
  return error;
}
int MPI_Send(const void* from, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  if (peer < 0 || !on_gpu(from)) return PMPI_Send(from, count, type, peer, tag, comm);
  struct Staged* s = sent(from, count, type);
  const int error = PMPI_Send(s->host, (int)s->bytes, MPI_BYTE, peer, tag, comm);
  done(s);
  return error;
}
int MPI_Recv(void* to, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
             MPI_Status* status) {
  if (peer < 0 || !on_gpu(to)) return PMPI_Recv(to, count, type, peer, tag, comm, status);
  struct Staged* s = taken(bytes_of(count, type));
  s->device = to;
  const int error = PMPI_Recv(s->host, (int)s->bytes, MPI_BYTE, peer, tag, comm, status);
  done(s);
  return error;
}

// For the benchmark, which has no MPI of its own.
int bench_barrier(void) { return PMPI_Barrier(MPI_COMM_WORLD); }
double bench_wtime(void) { return PMPI_Wtime(); }
