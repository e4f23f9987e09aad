// NVSHMEM's host library, and NCCL's, for processes of one machine: heaps lie in one piece of
// shared memory, which has no name any more once all PEs have started. CPUFREE_TEST_ROOM bounds a
// heap, CPUFREE_TEST_FAR=k puts PEs out of reach of loads and stores, but those of the same k in a
// row. With CPUFREE_TEST_BROKEN it does not start. NCCL is of version CPUFREE_TEST_NCCL, and makes
// no windows with CPUFREE_TEST_NO_WINDOWS.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "host_kernel.hpp"

namespace {

constexpr std::size_t kHeap = std::size_t{8} << 20;
constexpr std::size_t kApart = std::size_t{4} << 30;  // heaps, as NCCL's windows; of holes
constexpr std::size_t kText = 8;  // where the text of an id begins, behind its version

struct Control {
  std::atomic<int> started;
};

char* memory = nullptr;
char name[64];
int rank = -1;
int size = 0;
std::size_t used = 0;
bool running = false;

Control& control() { return *reinterpret_cast<Control*>(memory); }

char* heap_of(int pe) { return memory + kApart * static_cast<std::size_t>(pe + 1); }

std::size_t number(const char* variable, std::size_t otherwise) {
  const char* const asked = std::getenv(variable);
  return asked == nullptr ? otherwise : std::strtoul(asked, nullptr, 10);
}
// PEs that reach one another.
int near() { return static_cast<int>(number("CPUFREE_TEST_FAR", static_cast<std::size_t>(size))); }

char* there(const void* p, int pe) {
  return heap_of(pe) + (static_cast<const char*>(p) - heap_of(rank));
}

// How NCCL's windows begin, and its teams.
struct Window {
  void* host;
  char* first;
  int lsa_rank, world_rank;
  std::uint32_t stride4;
};
struct Team {
  int size, rank, stride;
};
struct Id {
  char bytes[128];
};

}  // namespace

extern "C" {

int nvshmemx_get_uniqueid(void* id) {
  std::snprintf(static_cast<char*>(id) + kText, sizeof(name), "/cpufree-test-%d", getpid());
  const int file = shm_open(static_cast<char*>(id) + kText, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(kApart * 17)) != 0) return 1;
  return close(file);
}

int nvshmemx_set_attr_uniqueid_args(int my_rank, int ranks, const void* id, void*) {
  rank = my_rank;
  size = ranks;
  std::memcpy(name, static_cast<const char*>(id) + kText, sizeof(name));
  return 0;
}

int nvshmemx_hostlib_init_attr(unsigned, void*) {
  if (running) return 1;  // it cannot be started twice
  if (std::getenv("CPUFREE_TEST_BROKEN") != nullptr) {
    shm_unlink(name);
    return 7;
  }
  const int file = shm_open(name, O_RDWR, 0600);
  void* const p = mmap(nullptr, kApart * 17, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || p == MAP_FAILED) return 1;
  memory = static_cast<char*>(p);
  if (++control().started == size) shm_unlink(name);
  while (control().started < size) std::this_thread::yield();
  std::memset(heap_of(rank), 0x5a, kHeap);
  running = true;
  return 0;
}

int nvshmemx_init_status() { return running ? 2 : 0; }

// What a network reaches, CPUFREE_TEST_FAR or not.
int nvshmemx_culibrary_init(void* library) {
  if (!running) return 1;
  auto& told = *static_cast<host_engine::Library*>(library);
  told.address = [](const void* p, int pe) -> void* { return there(p, pe); };
  return 0;
}

void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = 3, *minor = 4, *patch = 5;
}

void* nvshmem_malloc(std::size_t bytes) {
  const std::size_t begin = used;
  if (begin + bytes > number("CPUFREE_TEST_ROOM", kHeap)) return nullptr;
  used += (bytes + 511) / 512 * 512;
  return heap_of(rank) + begin;
}

void* nvshmem_ptr(const void* p, int pe) {
  return pe / near() == rank / near() ? there(p, pe) : nullptr;
}

int ncclGetVersion(int* version) {
  *version = static_cast<int>(number("CPUFREE_TEST_NCCL", 23203));
  return 0;
}

const char* ncclGetLastError(void*) { return "told by the test"; }

int ncclGetUniqueId(void* id) { return nvshmemx_get_uniqueid(id); }

int ncclCommInitRank(void** comm, int ranks, Id id, int my_rank) {
  nvshmemx_set_attr_uniqueid_args(my_rank, ranks, &id, nullptr);
  *comm = &memory;
  return nvshmemx_hostlib_init_attr(0, nullptr);
}

Team ncclTeamLsa(void*) {
  return {std::min(near(), size - rank / near() * near()), rank % near(), 1};
}

int ncclMemAlloc(void** p, std::size_t bytes) { return (*p = nvshmem_malloc(bytes)) == nullptr; }

int ncclCommWindowRegister(void*, void* p, std::size_t, void** window, int flags) {
  if (flags != 1) return 1;
  if (std::getenv("CPUFREE_TEST_NO_WINDOWS") != nullptr) return 0;
  const int first = rank / near() * near();
  *window = new Window{nullptr, there(p, first), rank - first, rank, kApart >> 32U};
  return 0;
}

int ncclGetLsaDevicePointer(void* window, std::size_t offset, int lsa_rank, void** to) {
  *to = static_cast<Window*>(window)->first + kApart * static_cast<std::size_t>(lsa_rank) + offset;
  return 0;
}

// What is asked for: which PEs are out of reach of stores, or none is.
int ncclDevCommCreate(void*, const void* wanted, void* made) {
  if (*static_cast<const int*>(wanted) != (near() < size ? 2 : 1)) return 1;
  return nvshmemx_culibrary_init(made);
}

}  // extern "C"
