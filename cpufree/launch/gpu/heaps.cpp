#include "cpufree/launch/gpu/heaps.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/engines/remote/library.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/launch/gpu/gpus.hpp"

namespace cpufree {

namespace {

// A library in this process, from the first system to the end of the process: NVSHMEM cannot be
// started twice. Its memory is never given back, which all PEs would have to do together, at a time
// when some may have failed: blocks that all PEs have free are used again.
class World {
 public:
  struct Block {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    bool lent = false;
  };

  // Starts it, which goes on in a thread of its own: it asks nothing of the team.
  World(const std::shared_ptr<Team>& team, const remote::Choice& choice, int device,
        std::size_t bytes)
      : library_(remote::load(choice, bytes)), rank_(team->rank()), size_(team->size()) {
    const remote::Id made = rank_ == 0 ? library_.make_id() : remote::Id{};
    const auto id = each(*team, "the id of a start", made).front();
    // The team ends with the start: what a future has called lives as long as it, which may be
    // longer than the interpreter that the team calls.
    started_ = std::async(std::launch::async, [this, held = std::shared_ptr<Team>(team), device,
                                               id]() mutable {
                 const std::shared_ptr<Team> mine = std::move(held);
                 // Libraries go by the device that is current, and want the runtime to have started
                 // there.
                 gpu::stay_on(device);
                 gpu::start();
                 within(*mine, kLimit, "the start of " + library_.name,
                        [&] { library_.start(rank_, size_, id); });
               }).share();
  }

  // Returns once it has started. Throws what that threw.
  void await() const { started_.get(); }

  // A block of `bytes` or more, the same one on all PEs.
  Block& borrow(Team& team, std::size_t bytes) {
    // One is free where all say so: members free systems at times of their own.
    std::vector<std::int32_t> fits;
    for (std::size_t k = 0; k < blocks_.size(); ++k)
      if (!blocks_[k]->lent && blocks_[k]->bytes >= bytes)
        fits.push_back(static_cast<std::int32_t>(k));
    const auto all = join(team, "free memory", fits);
    // The smallest of them, so that a small system leaves large blocks to large ones.
    std::erase_if(fits, [&](std::int32_t k) { return std::ranges::count(all, k) != size_; });
    const auto bytes_of_block = [&](std::int32_t k) { return blocks_[at(k)]->bytes; };
    if (const auto best = std::ranges::min_element(fits, {}, bytes_of_block); best != fits.end())
      return lend(at(*best));
    // Not asked for what it cannot have: a heap that fails to grow may take the process down.
    check_room(team, bytes, may_hold(bytes));
    const std::string search = library_.name + "'s search for memory";
    void* const begin = within(team, kLimit, search, [&] { return library_.allocate(bytes); });
    check_room(team, bytes, begin != nullptr);
    within(team, kLimit, search, [&] { library_.share(begin, bytes); });
    blocks_.push_back(std::make_unique<Block>(Block{static_cast<std::byte*>(begin), bytes, false}));
    return lend(blocks_.size() - 1);
  }

  // A kernel of `file`, which is loaded the first time.
  const void* kernel(Team& team, const std::string& file, const std::string& name) {
    const std::lock_guard lock(loading_);
    if (!kernels_.contains(file)) {
      gpuLibrary_t const loaded = gpu::load_library(file);
      within(team, kLimit, "getting kernels ready for " + library_.name,
             [&] { library_.ready(loaded); });
      kernels_[file] = loaded;  // only if that works: its kernels are not to run without
    }
    return gpu::find_kernel(kernels_.at(file), file, name);
  }

  // Its address of the memory of another PE.
  std::byte* address(std::byte* mine, int pe) const {
    return pe == rank_ ? mine : static_cast<std::byte*>(library_.address(mine, pe));
  }

 private:
  static constexpr std::chrono::seconds kLimit{60};  // of what all ranks do within the library

  // Whether N bytes more are within what the GPU that is current has, and the library may take.
  bool may_hold(std::size_t bytes) const {
    for (const auto& block : blocks_) bytes += block->bytes;
    return bytes <= std::min(gpu::memory_info().all, library_.most_memory());
  }

  void check_room(Team& team, std::size_t bytes, bool here) const {
    const auto got = each(team, "symmetric memory", std::int32_t{here});
    if (const auto without = std::ranges::find(got, 0); without != got.end())
      throw OutOfMemory(library_.name + " has no room for " + std::to_string(bytes) +
                        " bytes of symmetric memory on rank " +
                        std::to_string(without - got.begin()) + "; use more ranks, or " +
                        library_.more_room + "free what else is on its GPU");
  }

  Block& lend(std::size_t k) {
    blocks_[k]->lent = true;
    return *blocks_[k];
  }

  remote::Library library_;
  int rank_;
  int size_;
  std::shared_future<void> started_;
  std::vector<std::unique_ptr<Block>> blocks_;  // the same list on all PEs
  std::mutex loading_;
  std::map<std::string, gpuLibrary_t> kernels_;
};

// By engine: NVSHMEM and NCCL may both run in a process.
std::map<std::string, World>& worlds() {
  static std::map<std::string, World> all;
  return all;
}

std::mutex& starting() {
  static std::mutex mutex;
  return mutex;
}

// A world, once it has started; `starting` is held.
World& await_world(const std::string& engine) {
  World& found = worlds().at(engine);
  try {
    found.await();
  } catch (...) {
    worlds().erase(engine);  // who asks again is to see what is wrong, too
    throw;
  }
  return found;
}

World& world(Team& team, const remote::Choice& choice, int device, std::size_t bytes) {
  const std::lock_guard lock(starting());
  // The caller's team outlives the start, which is waited for here.
  const std::shared_ptr<Team> lent(std::shared_ptr<Team>(), &team);
  worlds().try_emplace(choice.engine, lent, choice, device, bytes);
  return await_world(choice.engine);
}

}  // namespace

void start_remote(const std::shared_ptr<Team>& team, const remote::Choice& choice, int device,
                  std::size_t bytes) {
  const std::lock_guard lock(starting());
  worlds().try_emplace(choice.engine, team, choice, device, bytes);
}

void await_remote(const std::string& engine) {
  const std::lock_guard lock(starting());
  if (worlds().contains(engine)) await_world(engine);
}

GpuHeaps::GpuHeaps(const std::vector<int>& devices, std::size_t bytes) {
  for (const int device : devices) {
    own_.emplace_back(device, bytes);
    bases_.push_back(own_.back().data());
  }
}

GpuHeaps::GpuHeaps(Team& team, const remote::Choice& library, int device, std::size_t bytes,
                   const NodeTable& nodes) {
  const gpu::OnDevice here(device);  // the library goes by the device that is current
  World& all = world(team, library, device, bytes);
  World::Block& block = all.borrow(team, bytes);
  lent_ = &block.lent;
  const auto& node = nodes.of_pe();
  for (int pe = 0; pe < team.size(); ++pe) {
    const bool direct = node[at(pe)] == node[at(team.rank())];
    bases_.push_back(direct ? all.address(block.begin, pe) : nullptr);
    if (!direct || bases_.back() != nullptr) continue;
    *lent_ = false;
    throw Unsupported(
        "the GPU of rank " + std::to_string(pe) +
        " is out of reach of loads and stores from rank " + std::to_string(team.rank()) +
        "; GPUs of one machine must be linked by NVLink (nvidia-smi topo -m shows which "
        "are)");
  }
  try {
    gpu::clear(device, block.begin, bytes);
  } catch (...) {
    *lent_ = false;
    throw;
  }
}

NodeTable nodes_of(Team& team, const remote::Choice& library, int device, std::size_t bytes) {
  const gpu::OnDevice here(device);
  World& all = world(team, library, device, bytes);
  World::Block& block = all.borrow(team, 1);
  // The first PE that each reaches is the name of its node, where reaching is mutual.
  std::vector<std::int32_t> reached;
  for (int pe = 0; pe < team.size(); ++pe)
    reached.push_back(all.address(block.begin, pe) != nullptr ? 1 : 0);
  block.lent = false;
  const auto first = static_cast<std::int32_t>(std::ranges::find(reached, 1) - reached.begin());
  const auto names = each(team, "nodes", first);
  bool mutual = true;
  for (std::size_t pe = 0; pe < names.size(); ++pe)
    mutual = mutual && (names[pe] == first) == (reached[pe] != 0);
  if (least(team, "whether nodes are mutual", mutual ? 1 : 0) == 0)
    throw Unsupported(
        "some GPUs of a machine reach one another by loads and stores, and others do not "
        "(nvidia-smi topo -m shows which): set CPUFREE_NODE_SIZE=1, so that no two are taken to");
  return NodeTable(names);
}

const void* remote_kernel(Team& team, const std::string& engine, const std::string& file,
                          const std::string& name) {
  World* found = nullptr;
  {
    const std::lock_guard lock(starting());  // another engine's may be added meanwhile
    found = &worlds().at(engine);
  }
  return found->kernel(team, file, name);
}

GpuHeaps::~GpuHeaps() {
  if (lent_ != nullptr) *lent_ = false;
}

}  // namespace cpufree
