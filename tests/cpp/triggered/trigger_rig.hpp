// PEs with triggered operations on fibers: of the blocks of each PE the last is its NIC, the one
// before it its host, and those before are the kernel. Payloads are weak both ways: a store takes
// effect late (cpu_fibers), and a load may be as old as its fiber's last acquire.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/triggered/device/trigger_nic.hpp"
#include "cpufree/triggered/device/triggered.hpp"

namespace trigger_rig {

using namespace cpufree;

enum class Role { kernel, nic, host };
enum class Fence { none, publish, acquire };

// A fence that is left out wherever that role calls it.
struct Dropped {
  Role role = Role::kernel;
  Fence fence = Fence::none;
};

class WeakPort : public cpu_fibers::Port {
 public:
  WeakPort(cpu_fibers::Machine& machine, int pe, int block, int blocks, Role role, Dropped dropped,
           std::size_t bytes, std::uint64_t seed)
      : cpu_fibers::Port(machine, pe, block),
        heap_(machine.config().heaps[pe]),
        blocks_(blocks),
        view_(heap_, heap_ + bytes),
        random_(seed * 977 + static_cast<std::uint64_t>(pe * 31 + block)) {
    if (dropped.role == role) dropped_ = dropped.fence;
  }
  int blocks() const { return blocks_; }

  void publish(Scope scope) {
    if (dropped_ != Fence::publish) cpu_fibers::Port::publish(scope);
  }
  void acquire(Scope) {
    if (dropped_ != Fence::acquire) std::copy(heap_, heap_ + view_.size(), view_.begin());
  }

  // A load from memory of my PE: as it is now, or as it was at any time since the last acquire.
  template <class T>
  T read(const T* from) {
    const auto at = reinterpret_cast<const std::byte*>(from) - heap_;
    if (random_() % 4 == 0) std::copy(heap_ + at, heap_ + at + sizeof(T), view_.begin() + at);
    T value;
    std::memcpy(&value, view_.data() + at, sizeof(T));
    return value;
  }

 private:
  std::byte* heap_;
  int blocks_;
  std::vector<std::byte> view_;
  std::mt19937_64 random_;
  Fence dropped_ = Fence::none;
};

static_assert(cpufree::Port<WeakPort>);

struct Fired {
  TriggerTag tag;
  TriggerFields fields;
};

// Moves words of four bytes one by one, each a store that takes effect late.
struct WordMover {
  static constexpr bool signals = false;
  std::vector<Fired> firings;

  void put(WeakPort& port, std::byte* to, int pe, const std::byte* from, std::uint64_t bytes) {
    for (std::uint64_t k = 0; k < bytes; k += sizeof(float))
      port.put(reinterpret_cast<float*>(to + k), pe,
               port.read(reinterpret_cast<const float*>(from + k)));
  }
  void get(WeakPort& port, std::byte* to, int pe, std::byte* from, std::uint64_t bytes) {
    for (std::uint64_t k = 0; k < bytes; k += sizeof(float))
      port.put(reinterpret_cast<float*>(to + k), port.pe(),
               *port.peer(reinterpret_cast<float*>(from + k), pe));
  }
  void fired(TriggerTag tag, const TriggerFields& fields) { firings.push_back({tag, fields}); }
};

// Tells all NICs that the block triggers no more; `sent`: what it has sent to each.
inline bool end_all(WeakPort& port, const TriggerBoard& board, const std::vector<Epoch>& sent) {
  bool good = true;
  for (int nic = 0; nic < port.pes(); ++nic)
    good = Triggers<WeakPort>(port, board, nic, sent[static_cast<std::size_t>(nic)]).end() && good;
  return good;
}
// The same for a block that has triggered its own NIC only.
inline bool end_all(WeakPort& port, const TriggerBoard& board, const Triggers<WeakPort>& own) {
  std::vector<Epoch> sent(static_cast<std::size_t>(port.pes()), 0);
  sent[static_cast<std::size_t>(port.pe())] = own.sent();
  return end_all(port, board, sent);
}

struct Rig {
  int pes, blocks;
  int early = 64, live = 64;
  SymmetricLayout layout;
  TriggerLayout trigger;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> heaps;
  std::vector<WordMover> movers;
  std::vector<std::unique_ptr<TriggerTable>> tables;
  std::vector<WaitRecord> records;

  // `reserve(layout)` reserves the kernel's own memory.
  template <class F>
  Rig(const TriggerSizes& sizes, F&& reserve)
      : pes(sizes.pes), blocks(sizes.blocks), trigger(layout, sizes) {
    reserve(layout);
  }

  TriggerBoard board(int pe) { return trigger.board(heaps[static_cast<std::size_t>(pe)]); }
  template <class T>
  T* mine(Symmetric<T> object, int pe) {
    return object.at(heaps[static_cast<std::size_t>(pe)]);
  }

  // Entries that had not fired when the NIC ended.
  const std::vector<TriggerEntry>& waiting(int pe) const {
    return waiting_[static_cast<std::size_t>(pe)];
  }

  using Posts = std::function<void(TriggerPosts<WeakPort>&, int pe)>;
  using Kernel = std::function<void(WeakPort&, const TriggerBoard&)>;

  // One schedule. True: no wait was given up. A kernel calls end_all at its end.
  // `fill(pe)` comes first.
  bool run(std::uint64_t seed, const Posts& posts, const Kernel& kernel, Dropped dropped = {},
           const std::function<void(int pe)>& fill = {}) {
    prepare();
    for (int pe = 0; fill && pe < pes; ++pe) fill(pe);
    cpu_fibers::Config config;
    config.pes = pes;
    config.blocks = blocks + 2;
    config.heaps = heaps.data();
    config.seed = seed;
    cpu_fibers::Machine* at = nullptr;
    cpu_fibers::Machine machine(config, [&](int pe, int block) {
      const Role role = block < blocks ? Role::kernel : block == blocks ? Role::host : Role::nic;
      WeakPort port(*at, pe, block, blocks, role, dropped, layout.bytes(), seed);
      const TriggerBoard board = this->board(pe);
      if (role == Role::nic) return run_nic(port, board);
      if (role == Role::kernel) {
        kernel(port, board);
        return;
      }
      TriggerPosts<WeakPort> host(port, board);
      posts(host, pe);
    });
    at = &machine;
    const bool good = machine.run();
    records = machine.records();
    return good;
  }

 private:
  void prepare() {
    waiting_.assign(static_cast<std::size_t>(pes), {});
    const auto n = static_cast<std::size_t>(pes);
    // Flags must lie on lines of their own, as engines' heaps make them.
    memory.assign(n, std::vector<std::byte>(layout.bytes() + 256));
    heaps.clear();
    for (auto& heap : memory) {
      const auto address = reinterpret_cast<std::uintptr_t>(heap.data());
      heaps.push_back(heap.data() + (256 - address % 256) % 256);
    }
    movers.assign(n, {});
    tables.clear();
    tables.resize(n);
  }

  void run_nic(WeakPort& port, const TriggerBoard& board) {
    const auto pe = static_cast<std::size_t>(port.pe());
    std::vector<TriggerEntry> entries(static_cast<std::size_t>(early + live));
    std::vector<std::uint32_t> over(static_cast<std::size_t>(board.operations));
    std::vector<TriggerRing> rings(static_cast<std::size_t>(pes * blocks));
    std::vector<Epoch> queued(static_cast<std::size_t>(pes));
    tables[pe] =
        std::make_unique<TriggerTable>(TriggerTable::Memory{entries.data(), over.data()},
                                       TriggerTable::Limits{board.operations, early, live});
    TriggerNic<WeakPort, WordMover> nic(port, board, *tables[pe], {rings.data(), queued.data()},
                                        movers[pe]);
    nic.run();
    // The table's memory ends here; what is asked of it afterwards are its faults.
    for (int k = 0; k < tables[pe]->size(); ++k)
      if (tables[pe]->at(k).state != TriggerEntry::State::unused)
        waiting_[pe].push_back(tables[pe]->at(k));
  }

  std::vector<std::vector<TriggerEntry>> waiting_;
};

}  // namespace trigger_rig
