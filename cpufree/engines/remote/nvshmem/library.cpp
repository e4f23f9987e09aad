#include "cpufree/engines/remote/nvshmem/library.hpp"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cpufree/base/env.hpp"
#include "cpufree/base/error.hpp"

namespace cpufree::nvshmem {

namespace {

constexpr const char* kName = "libnvshmem_host.so.3";

// The version that kernels are linked with (cmake/remote.cmake).
#ifndef CPUFREE_NVSHMEM_BUILT
#define CPUFREE_NVSHMEM_BUILT ""
#endif

// The structs of NVSHMEM's version 3 ABI, of which each says its own version and size.
constexpr int versioned(std::size_t size) { return (1 << 16) + static_cast<int>(size); }
struct UniqueIdArgs {
  int version = versioned(24);
  const void* id = nullptr;
  int rank = -1;
  int size = -1;
};
struct InitArgs {
  int version = versioned(128);
  UniqueIdArgs unique_id;
  char content[96] = {};
};
struct InitAttr {
  int version = versioned(144);
  void* mpi_comm = nullptr;
  InitArgs args;
};
static_assert(sizeof(UniqueIdArgs) == 24 && sizeof(InitArgs) == 128 && sizeof(InitAttr) == 144);
constexpr int kIdVersion = versioned(sizeof(Id));
constexpr unsigned kWithUniqueId = 1U << 3;
constexpr int kInitialized = 2;  // NVSHMEM_STATUS_IS_INITIALIZED

void expect(int status, const char* call) {
  if (status != 0)
    throw EngineError(std::string(call) + " failed (status " + std::to_string(status) +
                      "); NVSHMEM_DEBUG=WARN in the environment makes NVSHMEM say more");
}

// Other kernels than those of the library's own version may not be readied.
void expect_ready(int status, const std::string& version) {
  const std::string built = CPUFREE_NVSHMEM_BUILT;
  const bool other = !built.empty() && built != version;
  if (status != 0 && other)
    throw EngineError("nvshmemx_culibrary_init failed (status " + std::to_string(status) +
                      "). The kernels were built with NVSHMEM " + built +
                      ", and its library here is " + version +
                      ": pip install nvidia-nvshmem-cu13==" + built +
                      ", or build cpufree again with the version that is here");
  expect(status, "nvshmemx_culibrary_init");
}

}  // namespace

}  // namespace cpufree::nvshmem

#if __has_include(<nvshmem_host.h>)
#include <nvshmem_host.h>
// The numbers and shapes of this file.
namespace cpufree::nvshmem {
static_assert(sizeof(nvshmemx_uniqueid_t) == sizeof(Id));
static_assert(sizeof(nvshmemx_init_attr_t) == sizeof(InitAttr));
static_assert(offsetof(nvshmemx_init_attr_t, args) == offsetof(InitAttr, args));
static_assert(offsetof(nvshmemx_init_args_t, uid_args) == offsetof(InitArgs, unique_id));
static_assert(unsigned{NVSHMEMX_INIT_WITH_UNIQUEID} == kWithUniqueId);
static_assert(int{NVSHMEM_STATUS_IS_INITIALIZED} == kInitialized);
}  // namespace cpufree::nvshmem
#endif

namespace cpufree::nvshmem {

SharedLibrary open_library(const std::string& path) {
  return SharedLibrary(path.empty() ? kName : path.c_str(), "NVSHMEM",
                       "version 3.4 or newer of major version 3",
                       "pip install nvidia-nvshmem-cu13, which has libnvshmem_host.so.3");
}

remote::Library functions_of(const SharedLibrary& library, const std::string& path) {
  std::function<int(void*)> get_id;
  std::function<int(int, int, const void*, void*)> set_id;
  std::function<int(unsigned, void*)> init;
  std::function<int()> status;
  std::function<void(int*, int*, int*)> version;
  library.find("nvshmemx_get_uniqueid", get_id);
  library.find("nvshmemx_set_attr_uniqueid_args", set_id);
  library.find("nvshmemx_hostlib_init_attr", init);
  library.find("nvshmemx_init_status", status);
  library.find("nvshmemx_vendor_get_version_info", version);
  std::function<int(void*)> ready;
  library.find("nvshmemx_culibrary_init", ready);
  remote::Library all;
  all.name = "NVSHMEM";
  all.more_room = "raise NVSHMEM_SYMMETRIC_SIZE or NVSHMEM_MAX_MEMORY_PER_GPU, or ";
  all.most_memory = most_memory;
  all.path = path.empty() ? kName : path;
  library.find("nvshmem_malloc", all.allocate);
  all.share = [](void*, std::size_t) {};  // it is from its beginning
  library.find("nvshmem_ptr", all.address);
  all.make_id = [=] {
    Id id = {};
    std::memcpy(id.data(), &kIdVersion, sizeof kIdVersion);
    expect(get_id(id.data()), "nvshmemx_get_uniqueid");
    return id;
  };
  // nvshmemx_init_attr of the header would initialize NVSHMEM's device library too.
  all.start = [=](int rank, int size, const Id& id) {
    InitAttr attr;
    expect(set_id(rank, size, id.data(), &attr), "nvshmemx_set_attr_uniqueid_args");
    expect(init(kWithUniqueId, &attr), "nvshmemx_hostlib_init_attr");
    // It returns 0 too where processes have met and their GPUs could not be set up; and with
    // several PEs on a GPU (beyond kInitialized), of which most functions refuse to work.
    expect(status() == kInitialized ? 0 : 1, "the set-up of NVSHMEM on the GPUs");
  };
  int number[3] = {};
  version(&number[0], &number[1], &number[2]);
  all.version =
      std::to_string(number[0]) + "." + std::to_string(number[1]) + "." + std::to_string(number[2]);
  all.ready = [=, version = all.version](void* kernels) { expect_ready(ready(kernels), version); };
  return all;
}

void want_memory(std::size_t bytes) {
  static_cast<void>(setenv("NVSHMEM_SYMMETRIC_SIZE", std::to_string(bytes).c_str(), 0));
}

std::size_t most_memory() {
  const std::string said = nvshmem_max_memory();
  char* end = nullptr;
  const double number = std::strtod(said.c_str(), &end);
  if (number <= 0.0) return std::numeric_limits<std::size_t>::max();
  const std::string units = "kmgt";
  const auto unit = units.find(static_cast<char>(std::tolower(static_cast<unsigned char>(*end))));
  const int power = *end == '\0' || unit == std::string::npos ? 0 : static_cast<int>(unit) + 1;
  return static_cast<std::size_t>(std::ldexp(number, 10 * power));
}

}  // namespace cpufree::nvshmem
