#include "cpufree/engines/remote/nccl/library.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/base/shared_library.hpp"
#include "cpufree/engines/remote/nccl/blocks.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree::nccl {

namespace {

constexpr const char* kName = "libnccl.so.2";
constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
constexpr int kPointersSince =
    22900;  // ncclGetLsaDevicePointer, and structs that tell their version

struct Team {  // ncclTeam_t
  int size = 0, rank = 0, stride = 0;
};
// How ncclWindow_t's object on the GPU begins in 2.28, which has no function that gives addresses.
struct Window {
  void* host;
  char* first;  // of rank 0 of the team
  int lsa_rank, world_rank;
  std::uint32_t stride4;  // from rank to rank, in units of 4 GiB
};

}  // namespace

}  // namespace cpufree::nccl

#ifdef CPUFREE_NCCL_HEADERS  // of tools/check_remote.sh alone: they have CUDA's with them
#include <nccl_device.h>
// The numbers and shapes of this file.
namespace cpufree::nccl {
static_assert(sizeof(ncclUniqueId) == sizeof(remote::Id) && sizeof(ncclTeam_t) == sizeof(Team));
static_assert(NCCL_WIN_COLL_SYMMETRIC == kSymmetric && ncclSuccess == 0);
#if NCCL_VERSION_CODE < 22900
static_assert(offsetof(ncclWindow_vidmem, lsaFlatBase) == offsetof(Window, first));
static_assert(offsetof(ncclWindow_vidmem, lsaRank) == offsetof(Window, lsa_rank));
static_assert(offsetof(ncclWindow_vidmem, worldRank) == offsetof(Window, world_rank));
static_assert(offsetof(ncclWindow_vidmem, stride4G) == offsetof(Window, stride4));
#endif
}  // namespace cpufree::nccl
#endif

namespace cpufree::nccl {

namespace {

// NCCL's functions, which return 0 where all is well.
struct Functions {
  std::function<int(int*)> version;
  std::function<const char*(void*)> last_error;
  std::function<int(remote::Id*)> make_id;
  std::function<int(void**, int, remote::Id, int)> init_rank;
  std::function<Team(void*)> lsa_team;
  std::function<int(void**, std::size_t)> allocate;
  std::function<int(void*, void*, std::size_t, void**, int)> register_window;
  std::function<int(void*, std::size_t, int, void**)> lsa_pointer;  // from 2.29 on
  std::function<int(void*, const void*, void*)> make_device_comm;
};

std::string text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// NCCL in this process.
class Process {
 public:
  Process(Functions functions, int version) : call_(std::move(functions)), version_(version) {}

  remote::Id make_id() const {
    remote::Id id = {};
    expect(call_.make_id(&id), "ncclGetUniqueId");
    return id;
  }
  void start(int rank, int size, const remote::Id& id) {
    rank_ = rank;
    size_ = size;
    expect(call_.init_rank(&comm_, size, id, rank), "ncclCommInitRank");
  }
  void* allocate(std::size_t bytes) const {
    void* p = nullptr;
    return call_.allocate(&p, bytes) == 0 ? p : nullptr;
  }
  void share(void* begin, std::size_t bytes) {
    void* window = nullptr;
    expect(call_.register_window(comm_, begin, bytes, &window, kSymmetric),
           "ncclCommWindowRegister");
    lsa_ = call_.lsa_team(comm_);  // which windows are made for
    if (window == nullptr || lsa_.size < 1)
      throw Unsupported(
          "NCCL " + text(version_) +
          " makes no symmetric windows here: its device API needs GPUs that reach one another's "
          "memory, and neither NCCL_P2P_DISABLE=1, NCCL_CUMEM_ENABLE=0 nor NCCL_WIN_ENABLE=0; or "
          "use engine 'nvshmem'");
    auto bases = bases_of(window);  // throws before the block is one of ours
    blocks_.push_back({static_cast<char*>(begin), bytes, window});
    bases_.push_back(std::move(bases));
    tell_blocks();
  }
  void* address(const void* object, int pe) const {
    const int lsa_rank = lsa_.rank + (pe - rank_) / lsa_.stride;
    if (lsa_rank < 0 || lsa_rank >= lsa_.size || (pe - rank_) % lsa_.stride != 0) return nullptr;
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const std::ptrdiff_t offset = static_cast<const char*>(object) - blocks_[k].begin;
      if (offset >= 0 && at(offset) < blocks_[k].bytes) return bases_[k][at(lsa_rank)] + offset;
    }
    return nullptr;
  }
  // What its kernels call (calls.cu) wants, and is told, lies in variables of theirs: the host
  // needs no headers of NCCL, and takes its structs as the kernels know them.
  void make_ready(gpuLibrary_t kernels) {
    const bool far = lsa_.size < size_;
    const int built = *reinterpret_cast<const int*>(read(kernels, "cpufree_nccl_version").data());
    if (const std::string why = mismatch(built, version_, far); !why.empty())
      throw Unsupported(why);
    const auto wanted = read(kernels, far ? "cpufree_nccl_far" : "cpufree_nccl_near");
    if (wanted.size() == 1)
      throw Unsupported("kernels made with NCCL " + text(built) +
                        " send nothing over a network: build cpufree with NCCL 2.32 or newer");
    const std::span<std::byte> comm = gpu::variable(kernels, "cpufree_nccl_comm");
    std::vector<std::byte> made(comm.size());
    expect(call_.make_device_comm(comm_, wanted.data(), made.data()), "ncclDevCommCreate");
    gpu::copy_to_device(gpu::current_device(), comm.data(), made.data(), made.size());
    ready_.push_back(kernels);
    tell_blocks();
  }

 private:
  // No kernel runs: members share memory, and get kernels ready, between solves.
  void tell_blocks() {
    if (ready_.empty()) return;
    const int device = gpu::current_device();
    table_ = {device, blocks_};
    const Blocks all{table_.data(), static_cast<std::int64_t>(blocks_.size())};
    for (gpuLibrary_t const kernels : ready_)
      gpu::copy_to_device(device, gpu::variable(kernels, "cpufree_nccl_blocks").data(), &all,
                          sizeof all);
  }

  static std::vector<std::byte> read(gpuLibrary_t kernels, const char* name) {
    const std::span<std::byte> there = gpu::variable(kernels, name);
    std::vector<std::byte> bytes(there.size());
    gpu::copy_to_host(bytes.data(), there.data(), there.size());
    return bytes;
  }

  std::vector<char*> bases_of(void* window) const {
    std::vector<char*> bases(at(lsa_.size));
    if (call_.lsa_pointer) {
      for (int rank = 0; rank < lsa_.size; ++rank) {
        void* base = nullptr;
        expect(call_.lsa_pointer(window, 0, rank, &base), "ncclGetLsaDevicePointer");
        bases[at(rank)] = static_cast<char*>(base);
      }
      return bases;
    }
    Window seen = {};
    gpu::copy_to_host(&seen, window, sizeof seen);
    for (int rank = 0; rank < lsa_.size; ++rank)
      bases[at(rank)] = seen.first + (std::uint64_t{seen.stride4} << 32U) * at(rank);
    return bases;
  }

  void expect(int status, const char* call) const {
    if (status == 0) return;
    const char* const said = call_.last_error(comm_);
    throw EngineError(
        std::string(call) + " failed (" +
        (said == nullptr || *said == '\0' ? "status " + std::to_string(status) : said) +
        "); NCCL_DEBUG=WARN in the environment makes NCCL say more");
  }

  Functions call_;
  int version_;
  void* comm_ = nullptr;
  int rank_ = 0, size_ = 1;
  Team lsa_;
  std::vector<Block> blocks_;
  std::vector<std::vector<char*>> bases_;  // of each block, on each rank of the LSA team
  gpu::DeviceArray<Block> table_;          // the blocks, for kernels
  std::vector<gpuLibrary_t> ready_;
};

}  // namespace

std::string mismatch(int built, int here, bool over_network) {
  const bool fits = built == here || (!over_network && built >= kPointersSince && here >= built);
  if (fits) return "";
  return "the kernels for several nodes were made with NCCL " + text(built) +
         ", and its library here is " + text(here) +
         ": pip install nvidia-nccl-cu13==" + text(built) +
         ", or build cpufree again with the version that is here";
}

remote::Library load(const std::string& path) {
  const char* const file = path.empty() ? kName : path.c_str();
  const SharedLibrary library(file, "NCCL", "version 2.28 or newer, which has a device API,",
                              "pip install nvidia-nccl-cu13");
  Functions all;
  library.find("ncclGetVersion", all.version);
  library.find("ncclGetLastError", all.last_error);
  library.find("ncclGetUniqueId", all.make_id);
  library.find("ncclCommInitRank", all.init_rank);
  library.find("ncclTeamLsa", all.lsa_team);
  library.find("ncclMemAlloc", all.allocate);
  library.find("ncclCommWindowRegister", all.register_window);
  library.find("ncclDevCommCreate", all.make_device_comm);
  int version = 0;
  all.version(&version);
  if (version >= kPointersSince) library.find("ncclGetLsaDevicePointer", all.lsa_pointer);
  const auto process = std::make_shared<Process>(std::move(all), version);
  remote::Library made;
  made.name = "NCCL";
  made.version = text(version);
  made.path = file;
  made.make_id = [=] { return process->make_id(); };
  made.start = [=](int rank, int size, const remote::Id& id) { process->start(rank, size, id); };
  made.allocate = [=](std::size_t bytes) { return process->allocate(bytes); };
  made.share = [=](void* begin, std::size_t bytes) { process->share(begin, bytes); };
  made.address = [=](const void* object, int pe) { return process->address(object, pe); };
  made.ready = [=](void* kernels) { process->make_ready(static_cast<gpuLibrary_t>(kernels)); };
  made.most_memory = [] { return std::numeric_limits<std::size_t>::max(); };
  return made;
}

}  // namespace cpufree::nccl
