// Sums and halos by the kernels themselves: packets of 16 bytes that carry their epoch (LL),
// written straight into the memory of the other GPUs, and small kernels that wait for them. The
// host drives nothing: for loops that run on the GPUs.
//
// An epoch is what lies between two sums; every GPU passes through the same ones. A packet of epoch
// e overwrites that of epoch e - 2. Its sender has the totals of epoch e - 1, to which every GPU
// contributed after it had read all that came to it in epoch e - 2: halos are awaited before the
// sums of their epoch are, and so before those of the next one are sent. A packet is therefore read
// before it is overwritten, and as the kernels that await come in the order of the stream, each one
// sees the epoch that it waits for. Where halos and sums are sent in turn, one parity would do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpufree/baselines/comm/comm.hpp"

namespace cpufree::baselines {

// The sums of an epoch that are not exchanged.
struct CountUp {
  std::uint64_t* epoch;
  CPUFREE_KERNEL_FN Nothing begin(bool first) const {
    if (first) *epoch += 1;
    return {};
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t, Nothing, double*) const {}
};

template <class T>
class Packets : public Comm<T> {
 public:
  using Ranks = typename Comm<T>::Ranks;

  Packets(const HaloPlan<T>& plan, const Ranks& ranks, double wait_limit)
      : wait_limit_(wait_limit) {
    for (Rank<T>* rank : ranks) {
      const Stream& stream = rank->compute;
      Mine mine;
      mine.epoch = DeviceArray<std::uint64_t>(stream, 1);
      mine.halo = DeviceArray<Packet>(stream, 2 * at(rank->ghosts));
      mine.slots = DeviceArray<Packet>(stream, 2 * ranks.size() * kMaxSums);
      mine.found = DeviceArray<double>(stream, ranks.size() * kMaxSums);
      mine.abort = DeviceArray<unsigned>(stream, 1);
      mine.report = MappedArray<std::int32_t>(1);
      mine_.push_back(std::move(mine));
    }
    for (std::size_t pe = 0; pe < ranks.size(); ++pe) {
      std::vector<Packet*> target;
      for (const Destination& to : plan.local[pe].destinations)
        target.push_back(mine_[at(to.pe)].halo.data() +
                         2 * at(to.index - plan.local[at(to.pe)].rows()));
      mine_[pe].target = DeviceArray<Packet*>(ranks[pe]->compute, target);
    }
  }

  // In epoch 0 all packets are there: kernels that wait are loaded, and wait for nothing.
  void warm_up(const Ranks& ranks) override {
    set(ranks, 0);
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      receive(*rank, HaloVector::p);
    }
    end_sum(ranks, {0, 1});
    skip_sum(ranks);
  }
  void begin(const Ranks& ranks) override { set(ranks, 2); }

  Outbox<T> outbox(const Rank<T>& rank) const override {
    const Mine& mine = mine_[at(rank.pe)];
    return {rank.interior, rank.send_ptr.data(), nullptr,
            nullptr,       mine.target.data(),   mine.epoch.data()};
  }
  void send(const Ranks&, HaloVector) override {}
  void receive(Rank<T>& rank, HaloVector which) override {
    const Mine& mine = mine_[at(rank.pe)];
    if (rank.ghosts == 0) return;
    check(launch_await(
              rank.compute, rank.ghosts,
              AwaitGhosts<T>{mine.halo.data(), mine.epoch.data(), rank.vector(which) + rank.rows},
              bound(rank)),
          "launch of a wait for ghosts");
  }

  SumTarget target(const Rank<T>& rank, const Sums& sums) const override {
    SumTarget to = Comm<T>::target(rank, sums);
    to.packets.epoch = mine_[at(rank.pe)].epoch.data();
    to.packets.pe = rank.pe;
    to.packets.pes = static_cast<std::int32_t>(mine_.size());
    for (std::size_t pe = 0; pe < mine_.size(); ++pe) to.packets.slots[pe] = mine_[pe].slots.data();
    return to;
  }
  void begin_sum(const Ranks&, const Sums&) override {}
  void end_sum(const Ranks& ranks, const Sums& sums) override {
    const auto pes = static_cast<std::int32_t>(mine_.size());
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      const Mine& mine = mine_[at(rank->pe)];
      check(launch_await(rank->compute, pes * sums.count,
                         AwaitSums{mine.slots.data(), mine.epoch.data(), mine.found.data(),
                                   rank->sums.data() + sums.first, pes, sums.count},
                         bound(*rank)),
            "launch of a wait for sums");
    }
  }
  void skip_sum(const Ranks& ranks) override {
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      check(launch_sweep<0>(rank->compute, 1, 0, CountUp{mine_[at(rank->pe)].epoch.data()}, {}),
            "launch of a count");
    }
  }

  bool sends_from_kernels() const override { return true; }
  std::uint64_t* epoch(const Rank<T>& rank) const override {
    return mine_[at(rank.pe)].epoch.data();
  }
  const unsigned* abort_word(const Rank<T>& rank) const override {
    return mine_[at(rank.pe)].abort.data();
  }
  std::string complaint() const override {
    for (std::size_t pe = 0; pe < mine_.size(); ++pe)
      if (mine_[pe].report[0] != 0)
        return "PE " + std::to_string(pe) + " waited longer than " + std::to_string(wait_limit_) +
               " s for packets of another one (packet " + std::to_string(mine_[pe].report[0] - 1) +
               "); all PEs have left their loops. If a GPU was merely busy, raise wait_limit";
    return "";
  }

 private:
  // What lies on one GPU.
  struct Mine {
    DeviceArray<std::uint64_t> epoch;
    DeviceArray<Packet> halo;   // 2 for each ghost: parities
    DeviceArray<Packet> slots;  // SumPackets
    DeviceArray<double> found;
    DeviceArray<Packet*> target;  // of each value sent, parity 0
    DeviceArray<unsigned> abort;
    MappedArray<std::int32_t> report;
  };

  void set(const Ranks& ranks, std::uint64_t epoch) {
    for (Rank<T>* rank : ranks) {
      const Mine& mine = mine_[at(rank->pe)];
      mine.halo.clear(rank->compute);
      mine.slots.clear(rank->compute);
      mine.abort.clear(rank->compute);
      mine.epoch.upload(rank->compute, &epoch, 1);
      rank->compute.drain(Deadline(kCopyLimit), "the reset of packets");
      mine.report[0] = 0;
    }
  }

  WaitBound bound(const Rank<T>& rank) const {
    WaitBound bound;
    bound.limit_ns = static_cast<std::uint64_t>(1e9 * wait_limit_);
    bound.pe = rank.pe;
    bound.pes = static_cast<std::int32_t>(mine_.size());
    for (std::size_t pe = 0; pe < mine_.size(); ++pe) bound.abort[pe] = mine_[pe].abort.data();
    bound.report = mine_[at(rank.pe)].report.data();
    return bound;
  }

  double wait_limit_;
  std::vector<Mine> mine_;
};

}  // namespace cpufree::baselines
