// `nvshmem`: one process for each GPU, slabs in NVSHMEM's symmetric memory. The host launches each
// iteration; edges go from the device into the neighbour's ghosts, and signals in symmetric memory
// say that they are there.
//
// Iteration m ends with exchange e = e0 + m + 1, e0 being the last one of the run before: on one
// stream, first the signal e to each neighbour, behind what it announces; then the wait for e or
// more from each. Signals only grow, and each has one writer: a PE has one for each side, also
// where the neighbour on both sides is the same.
//
// Why ghosts are there when they are read. They are read by what computes edges in iteration m + 1,
// on the stream of the wait for e and behind it; the neighbour sent e behind its copy of its edge.
//
// Why no ghost is overwritten too early. Ghosts of copy m + 1 lie where those of copy m - 1 did,
// read last by the neighbour's edges of iteration m - 1. Its signal of that iteration follows them
// on their stream, and what writes the ghosts (edges of iteration m, or the puts behind them) comes
// behind the wait for it. Nor is an edge that is being put: iteration m + 2 writes its memory
// again, behind the wait for the neighbour's signal of m + 1; the neighbour sent that behind its
// wait for mine of m, which had followed the put. Between runs: every run begins where all PEs
// meet, after the values of each were set; and it ends with its waits, which every PE's host waits
// for before they meet again.
//
// Why no wait is in vain. In each iteration a PE launches its signals before its waits, and the
// signals depend on waits of iterations before alone: even GPUs that ran everything one after
// another, in the order of the launches, would come through. Where a PE has died, the others do not
// hang: kernels that wait give up at wait_limit; hosts wait for what is on their streams, and at
// the end of a run for all PEs, no longer than twice as long; what NVSHMEM has on streams ends with
// the process. A PE whose kernel has given up goes on with what it has launched, and tells of it,
// but never comes to the end of the run, without which no PE takes its own values.
//
// What a kernel has stored is visible to any PE that sees a later signal of the stream: a kernel's
// end comes before what follows it, for all GPUs; `meet` has a fence of its own besides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "cpufree/baselines/nvshmem_team.hpp"
#include "cpufree/baselines/stencil/comm.hpp"

namespace cpufree::baselines {

// How an iteration is launched. Which is fastest depends on the grid, and on what NVSHMEM makes of
// signals on streams: memory operations, or kernels and copies.
struct ShmemExchange {
  const char* name;
  bool beside;  // edges by a kernel of their own, beside the one for the planes between
  bool meets;   // one small kernel signals and waits; else NVSHMEM does, on the stream
  bool puts;    // NVSHMEM copies the edges, and signals; else the kernel that computes them stores
};
inline constexpr ShmemExchange kShmemExchanges[] = {
    {"meet", false, true, false},       {"signal", false, false, false},
    {"meet_beside", true, true, false}, {"signal_beside", true, false, false},
    {"put_beside", true, false, true},
};

// Of the one slab that this process has.
template <class T>
class ShmemSlabComm : public SlabComm<T> {
 public:
  using typename SlabComm<T>::Slabs;

  // Once NVSHMEM has been started, on all PEs: gives the slab its memory, and returns when all have
  // theirs.
  ShmemSlabComm(const Slabs& slabs, ShmemLibrary library, double wait_limit)
      : SlabComm<T>(slabs),
        slab_(*slabs.front()),
        team_(std::move(library), slab_.compute),
        wait_limit_(wait_limit),
        report_(1) {
    const SlabLayout& layout = slab_.layout;
    std::int64_t most = 0;
    for (int pe = 0; pe < layout.pes; ++pe) most = std::max(most, layout.planes(pe));
    for (DeviceArray<T>& copy : slab_.values)
      copy = team_.symmetric<T>(at((most + 2) * layout.plane));
    signals_ = team_.symmetric<Flag>(2);
    abort_ = team_.symmetric<unsigned>(1);
    team_.meet(kCopyLimit);  // others may take longer to be set up
    find_neighbours();
    const OnDevice here(slab_.device);
    check(launch_meeting(slab_.compute, {}), "launch of a kernel that waits");  // loads it
    slab_.compute.drain(Deadline(kCopyLimit), "the first launch of a kernel");
  }

  ShmemTeam& team() { return team_; }
  // Between runs; the same on all PEs.
  void use(const ShmemExchange& exchange) { how_ = exchange; }

  void begin() override { team_.meet(wait_limit_); }
  void fork(Slab<T>& slab) override {
    if (!how_.beside) return;
    slab.compute.record(slab.inner_done);
    slab.edge.wait_for(slab.inner_done);
    slab.edge.record(slab.edge_done);
  }
  void join(Slab<T>& slab) override {
    if (!how_.beside) return;
    slab.edge.record(slab.edge_done);
    slab.compute.wait_for(slab.edge_done);
  }

  void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits&) override {
    const Stream& edges = how_.beside ? slab.edge : slab.compute;
    if (how_.beside) {  // as in OverlapComm
      slab.edge.wait_for(slab.inner_done);
      slab.compute.wait_for(slab.edge_done);
    }
    const StepCopies<T> copies = how_.puts ? StepCopies<T>{} : copies_[(m + 1) % 2];
    if (computes)
      slab.launch(edges, m, how_.beside ? Part::edges : Part::all, copies);
    else if (!how_.puts)
      slab.send(edges, m, copies);
    if (how_.beside) {
      slab.edge.record(slab.edge_done);
      if (computes) slab.launch(slab.compute, m, Part::inner);
      slab.compute.record(slab.inner_done);
    }
    if (slab.sides.empty()) return;
    ++exchange_;
    if (how_.meets) {
      meet(edges);
    } else {
      how_.puts ? put(m) : signal(edges);
      for (const auto& side : slab.sides)
        team_.library().wait(signal_of(side.number), kShmemGe, exchange_, edges);
    }
  }

  bool waits_in_kernels() const override { return how_.meets; }
  std::string complaint() const override {
    const std::int32_t found = report_[0];
    if (found == 0) return "";
    return "PE " + std::to_string(slab_.pe) + " waited longer than " + std::to_string(wait_limit_) +
           " s for PE " + std::to_string(slab_.sides[at(found - 1)].pe) +
           ". If a GPU was merely busy, raise wait_limit";
  }

 private:
  using Side = typename Slab<T>::Side;

  // The signal from the neighbour on a side; at this address on all PEs, as NVSHMEM sees it.
  std::uint64_t* signal_of(int side) const { return &signals_.data()[side].value; }
  // Where the neighbour on a side has its ghosts of what this slab computes, likewise.
  T* landing(const Side& side, std::uint64_t copy) const {
    const std::int64_t ghost = side.number == 0 ? slab_.layout.planes(side.pe) : -1;
    return slab_.at_plane(copy, ghost);
  }

  // Addresses that kernels store to, which is what NVSHMEM's device puts do where there are any.
  void find_neighbours() {
    for (const Side& side : slab_.sides) {
      for (std::uint64_t copy = 0; copy < 2; ++copy) {
        T* const there = address_of(landing(side, copy), side.pe);
        (side.number == 0 ? copies_[copy].before : copies_[copy].after) = there;
      }
      meeting_.arrived[meeting_.sides] = signals_.data() + side.number;
      meeting_.tell[meeting_.sides++] = address_of(signals_.data() + (1 - side.number), side.pe);
    }
    if (slab_.layout.pes == 1 && slab_.layout.grid.periodic[0])
      for (std::uint64_t copy = 0; copy < 2; ++copy)
        copies_[copy] = {slab_.ghost(copy, 1), slab_.ghost(copy, 0)};
    meeting_.bound.limit_ns = static_cast<std::uint64_t>(1e9 * wait_limit_);
    meeting_.bound.abort[0] = abort_.data();
    meeting_.bound.pes = 1;
    meeting_.bound.report = report_.data();
  }
  template <class V>
  V* address_of(V* mine, int pe) const {
    void* const there = team_.library().address(mine, pe);
    if (there == nullptr)
      throw Unsupported("baseline nvshmem: NVSHMEM knows no address at which PE " +
                        std::to_string(slab_.pe) + " reaches the memory of PE " +
                        std::to_string(pe) + "; nvidia-smi topo -m shows which GPUs are linked");
    return static_cast<V*>(there);
  }

  void meet(const Stream& stream) {
    meeting_.epoch = exchange_;
    check(launch_meeting(stream, meeting_), "launch of a kernel that waits");
  }
  void signal(const Stream& stream) const {
    for (const Side& side : slab_.sides)
      team_.library().signal(signal_of(1 - side.number), exchange_, kShmemSet, side.pe, stream);
  }
  // To both sides at once, each on a stream of its own behind the kernel for the edges.
  void put(std::uint64_t m) const {
    for (const Side& side : slab_.sides) {
      const Stream& stream = side.number == 0 ? slab_.edge : slab_.side;
      if (side.number == 1) stream.wait_for(slab_.edge_done);
      team_.library().put_signal(landing(side, m + 1), slab_.edge_plane(m + 1, side.number),
                                 at(slab_.layout.plane) * sizeof(T), signal_of(1 - side.number),
                                 exchange_, kShmemSet, side.pe, stream);
    }
  }

  Slab<T>& slab_;
  ShmemTeam team_;
  double wait_limit_;
  ShmemExchange how_ = kShmemExchanges[0];
  DeviceArray<Flag> signals_;    // of the neighbours before and after
  DeviceArray<unsigned> abort_;  // not 0: kernels of this PE wait no longer
  MappedArray<std::int32_t> report_;
  StepCopies<T> copies_[2];  // of even and odd copies: where they are stored
  StepMeeting meeting_;
  std::uint64_t exchange_ = 0;  // the last one
};

}  // namespace cpufree::baselines
