// Exchanges of edges that graphs can hold: nothing in an iteration is the host's.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cpufree/baselines/comm/nccl.hpp"
#include "cpufree/baselines/stencil/comm.hpp"

namespace cpufree::baselines {

// `nccl`, `nccl_graph`: edges, then sends and receives in a group, on a stream of their own beside
// the kernel for the planes between. A ghost is received on that stream, after the edges that read
// it last.
template <class T>
class CollectiveComm : public SlabComm<T> {
 public:
  using typename SlabComm<T>::Slabs;
  CollectiveComm(const Slabs& slabs, std::shared_ptr<CollComms> comms)
      : SlabComm<T>(slabs), comms_(std::move(comms)) {}

  void fork(Slab<T>& slab) override {
    slab.compute.record(slab.inner_done);
    slab.edge.wait_for(slab.inner_done);
    slab.edge.record(slab.edge_done);
  }
  void join(Slab<T>& slab) override {
    slab.edge.record(slab.edge_done);
    slab.compute.wait_for(slab.edge_done);
  }
  void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits&) override {
    slab.edge.wait_for(slab.inner_done);  // as in OverlapComm
    slab.compute.wait_for(slab.edge_done);
    if (computes) slab.launch(slab.edge, m, Part::edges);
    slab.edge.record(slab.edge_done);
    if (computes) slab.launch(slab.compute, m, Part::inner);
    slab.compute.record(slab.inner_done);
  }
  void settle(const std::vector<Slab<T>*>& slabs, std::uint64_t m, const HostWaits&) override {
    comms_->expect(comms_->library().group_start(), "ncclGroupStart");
    for (const Slab<T>* slab : slabs) exchange(*slab, m);
    comms_->expect(comms_->library().group_end(), "ncclGroupEnd");
  }
  void abort() noexcept override { comms_->abort(); }

 private:
  static constexpr int kType = std::is_same_v<T, float> ? kCollFloat : kCollDouble;

  // Where the neighbour is the same on both sides, what it sends first, to the side before it,
  // comes from the side after.
  void exchange(const Slab<T>& slab, std::uint64_t m) const {
    const OnDevice here(slab.device);
    const CollComm comm = comms_->of(slab.pe);
    const std::size_t count = at(slab.layout.plane);
    for (const auto& side : slab.sides)
      comms_->expect(comms_->library().send(slab.edge_plane(m + 1, side.number), count, kType,
                                            side.pe, comm, slab.edge),
                     "ncclSend");
    for (auto side = slab.sides.rbegin(); side != slab.sides.rend(); ++side)
      comms_->expect(comms_->library().receive(slab.ghost(m + 1, side->number), count, kType,
                                               side->pe, comm, slab.edge),
                     "ncclRecv");
  }

  std::shared_ptr<CollComms> comms_;
};

// `flags_graph`: the kernel stores edges into the neighbours' ghosts, tells them by flags, and
// waits for theirs where it computes edges (StepSync).
template <class T>
class FlagComm : public SlabComm<T> {
 public:
  using typename SlabComm<T>::Slabs;
  FlagComm(const Slabs& slabs, double wait_limit) : SlabComm<T>(slabs), wait_limit_(wait_limit) {
    for (const auto& slab : slabs) {
      Mine mine;
      mine.flags = DeviceArray<Flag>(slab->compute, 2);
      mine.epoch = DeviceArray<Epoch>(slab->compute, 1);
      mine.ended = DeviceArray<unsigned>(slab->compute, 1);
      mine.abort = DeviceArray<unsigned>(slab->compute, 1);
      mine.report = MappedArray<std::int32_t>(1);
      mine_.push_back(std::move(mine));
    }
  }

  void begin() override {
    for (const auto& slab : this->slabs_) {
      const Mine& mine = mine_[at(slab->pe)];
      mine.flags.clear(slab->compute);
      mine.epoch.clear(slab->compute);
      mine.ended.clear(slab->compute);
      mine.abort.clear(slab->compute);
      mine.report[0] = 0;
      slab->compute.drain(Deadline(kCopyLimit), "the reset of flags");
    }
  }
  void step(Slab<T>& slab, std::uint64_t m, bool computes, const HostWaits&) override {
    const StepCopies<T> copies = this->copies_of(slab, m);
    if (computes)
      slab.launch(slab.compute, m, Part::all, copies, sync_of(slab));
    else
      slab.send(slab.compute, m, copies, sync_of(slab));
  }
  bool waits_in_kernels() const override { return true; }
  std::string complaint() const override {
    for (std::size_t pe = 0; pe < mine_.size(); ++pe)
      if (const std::int32_t found = mine_[pe].report[0]; found != 0)
        return "PE " + std::to_string(pe) + " waited longer than " + std::to_string(wait_limit_) +
               " s for PE " + std::to_string(this->slabs_[pe]->sides[at(found - 1)].pe) +
               "; all PEs have left their kernels. If a GPU was merely busy, raise wait_limit";
    return "";
  }

 private:
  // What lies on one GPU.
  struct Mine {
    DeviceArray<Flag> flags;  // of the neighbours before and after
    DeviceArray<Epoch> epoch;
    DeviceArray<unsigned> ended, abort;
    MappedArray<std::int32_t> report;
  };

  StepSync sync_of(const Slab<T>& slab) const {
    const Mine& mine = mine_[at(slab.pe)];
    StepSync sync;
    for (const auto& side : slab.sides) {
      sync.arrived[sync.sides] = mine.flags.data() + side.number;
      sync.tell[sync.sides++] = mine_[at(side.pe)].flags.data() + (1 - side.number);
    }
    sync.epoch = mine.epoch.data();
    sync.ended = mine.ended.data();
    sync.bound.limit_ns = static_cast<std::uint64_t>(1e9 * wait_limit_);
    sync.bound.pe = slab.pe;
    sync.bound.pes = static_cast<std::int32_t>(mine_.size());
    for (std::size_t pe = 0; pe < mine_.size(); ++pe) sync.bound.abort[pe] = mine_[pe].abort.data();
    sync.bound.report = mine.report.data();
    return sync;
  }

  double wait_limit_;
  std::vector<Mine> mine_;
};

}  // namespace cpufree::baselines
