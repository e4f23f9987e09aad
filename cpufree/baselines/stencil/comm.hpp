// How slabs exchange their edges: the one thing in which the baselines of stencils differ.
//
// Iteration m makes copy m + 1 of the values out of copy m (numbers modulo 2). Ghosts of copy m are
// what the neighbours computed in iteration m - 1.
//
// Why no ghost is overwritten too early (write after read), where another PE writes it:
// ghosts of copy m + 1 are written in the neighbour's iteration m, which begins when the ghosts are
// there that this slab sent in iteration m - 1. It sent them after its edges of iteration m - 1
// were computed, which were the last to read ghosts of copy m - 1, the same memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cpufree/baselines/stencil/slab.hpp"

namespace cpufree::baselines {

// Waits of a host thread for another one, or for a GPU.
struct HostWaits {
  double limit = 60.0;
  const std::atomic<bool>* failed = nullptr;  // another thread of the run has given up

  void for_count(const std::atomic<std::uint64_t>& count, std::uint64_t want) const {
    if (count.load(std::memory_order_acquire) >= want) return;
    const Deadline deadline(limit);
    for (unsigned look = 1; count.load(std::memory_order_acquire) < want; ++look) {
      gpuRelax();
      if (look % 1024 != 0) continue;
      complain();
      std::this_thread::yield();
      if (deadline.over()) give_up(deadline, "another thread of this run");
    }
  }
  void for_event(const Event& event) const {
    wait([&] { return gpuEventQuery(event); });
  }
  void for_stream(const Stream& stream) const {
    wait([&] { return gpuStreamQuery(stream); });
  }

 private:
  template <class Ask>
  void wait(Ask&& ask) const {
    gpuError_t status = ask();
    if (status == gpuSuccess) return;
    const Deadline deadline(limit);
    for (unsigned look = 1; status == gpuErrorNotReady; status = ask(), ++look) {
      if (look % 64 != 0) continue;
      complain();
      if (deadline.over()) give_up(deadline, "iterations of a stencil");
    }
    check(status, "iterations of a stencil");
  }
  void complain() const {
    if (failed != nullptr && failed->load())
      throw EngineError("another thread of this run has failed");
  }
};

// Called by the thread that drives the slabs named: all of them, or one where there is a thread for
// each. `step`: the slab's device is current.
template <class T>
class SlabComm {
 public:
  using Slabs = std::vector<std::unique_ptr<Slab<T>>>;
  explicit SlabComm(const Slabs& slabs) : slabs_(slabs) {}
  virtual ~SlabComm() = default;
  SlabComm(const SlabComm&) = delete;
  SlabComm& operator=(const SlabComm&) = delete;

  // Before a run, with idle streams.
  virtual void begin() {}
  // Before the first and after the last iteration of a run, or of a graph: what `compute` waits
  // for.
  virtual void fork(Slab<T>&) {}
  virtual void join(Slab<T>&) {}
  // Launches iteration m. `computes`: false for communication alone.
  virtual void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits& waits) = 0;
  // After the steps of all slabs that the thread drives.
  virtual void settle(const std::vector<Slab<T>*>&, std::uint64_t, const HostWaits&) {}
  // After a wait was given up: makes what is under way end, if that can be done.
  virtual void abort() noexcept {}
  // What a wait inside a kernel says after it was given up; "" where none was.
  virtual std::string complaint() const { return ""; }
  virtual bool waits_in_kernels() const { return false; }

 protected:
  Slab<T>& beside(const typename Slab<T>::Side& side) const { return *slabs_[at(side.pe)]; }

  // Where the copies of a slab's edges lie, in what its neighbours compute from next.
  StepCopies<T> copies_of(const Slab<T>& slab, std::uint64_t m) const {
    StepCopies<T> copies;
    for (const auto& side : slab.sides)
      (side.number == 0 ? copies.before : copies.after) =
          beside(side).ghost(m + 1, 1 - side.number);
    return copies;
  }
  // Sends an edge of copy m + 1 to a neighbour.
  void copy(const Slab<T>& slab, const typename Slab<T>::Side& side, std::uint64_t m,
            const Stream& stream) const {
    const Slab<T>& other = beside(side);
    gpu::copy_across(other.ghost(m + 1, 1 - side.number), other.device,
                     slab.edge_plane(m + 1, side.number), slab.device,
                     at(slab.layout.plane) * sizeof(T), stream);
  }

  const Slabs& slabs_;
};

// One slab: it exchanges nothing. Ghosts along a periodic axis 0 are its own, stored by the kernel.
template <class T>
class NoComm : public SlabComm<T> {
 public:
  using SlabComm<T>::SlabComm;
  void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits&) override {
    StepCopies<T> copies;
    if (slab.layout.pes == 1 && slab.layout.grid.periodic[0])
      copies = {slab.ghost(m + 1, 1), slab.ghost(m + 1, 0)};
    if (computes) slab.launch(slab.compute, m, Part::all, copies);
  }
};

// `copy`: kernel, then copies, then the host waits for all of it; no slab goes on before its
// neighbours have come as far.
template <class T>
class CopyComm : public SlabComm<T> {
 public:
  using SlabComm<T>::SlabComm;
  void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits& waits) override {
    for (const auto& side : slab.sides) waits.for_count(this->beside(side).ended, m);
    if (computes) slab.launch(slab.compute, m, Part::all);
    for (const auto& side : slab.sides) this->copy(slab, side, m, slab.compute);
    slab.compute.record(slab.done[m % 2]);
  }
  void settle(const std::vector<Slab<T>*>& slabs, std::uint64_t m,
              const HostWaits& waits) override {
    for (Slab<T>* slab : slabs) {
      waits.for_event(slab->done[m % 2]);
      slab->ended.store(m + 1, std::memory_order_release);
    }
  }
};

// What baselines share whose streams wait for events of other GPUs. Events have two parities: that
// of m - 1, which this iteration waits for, is recorded again in the neighbour's iteration m + 1,
// which its thread begins when this one has launched iteration m.
template <class T>
class EventComm : public SlabComm<T> {
 public:
  using SlabComm<T>::SlabComm;

 protected:
  void await_neighbours(Slab<T>& slab, std::uint64_t m, const HostWaits& waits) const {
    for (const auto& side : slab.sides) waits.for_count(this->beside(side).launched, m);
  }
};

// `overlap`: edges and copies on streams of their own, beside the kernel for the planes between.
template <class T>
class OverlapComm : public EventComm<T> {
 public:
  using EventComm<T>::EventComm;
  void fork(Slab<T>& slab) override {
    slab.compute.record(slab.inner_done);
    slab.edge.wait_for(slab.inner_done);
    slab.edge.record(slab.edge_done);
  }
  void join(Slab<T>& slab) override {
    slab.edge.record(slab.edge_done);
    slab.compute.wait_for(slab.edge_done);
    slab.side.record(slab.edge_done);
    slab.compute.wait_for(slab.edge_done);
  }
  void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits& waits) override {
    this->await_neighbours(slab, m, waits);
    // The planes between of the iteration before: these edges read them, and overwrite what they
    // read. The edges of the iteration before: for the planes between, the same.
    slab.edge.wait_for(slab.inner_done);
    slab.compute.wait_for(slab.edge_done);
    if (m > 0)
      for (const auto& side : slab.sides)
        slab.edge.wait_for(this->beside(side).moved[1 - side.number][(m - 1) % 2]);
    if (computes) slab.launch(slab.edge, m, Part::edges);
    slab.edge.record(slab.edge_done);
    if (computes) slab.launch(slab.compute, m, Part::inner);
    slab.compute.record(slab.inner_done);
    for (const auto& side : slab.sides) {
      const Stream& stream = side.number == 0 ? slab.edge : slab.side;
      if (side.number == 1) stream.wait_for(slab.edge_done);
      this->copy(slab, side, m, stream);
      stream.record(slab.moved[side.number][m % 2]);
    }
    slab.launched.store(m + 1, std::memory_order_release);
  }
};

// `p2p`: the kernel itself stores edges into the neighbours' ghosts; an event tells them.
template <class T>
class PeerStoreComm : public EventComm<T> {
 public:
  using EventComm<T>::EventComm;
  void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits& waits) override {
    this->await_neighbours(slab, m, waits);
    if (m > 0)
      for (const auto& side : slab.sides)
        slab.compute.wait_for(this->beside(side).done[(m - 1) % 2]);
    const StepCopies<T> copies = this->copies_of(slab, m);
    if (computes)
      slab.launch(slab.compute, m, Part::all, copies);
    else
      slab.send(slab.compute, m, copies);
    slab.compute.record(slab.done[m % 2]);
    slab.launched.store(m + 1, std::memory_order_release);
  }
};

}  // namespace cpufree::baselines
