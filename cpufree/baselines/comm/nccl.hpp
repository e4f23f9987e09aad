// NCCL: sums and halos in the order of the streams, halos on a stream of their own. Ghosts are
// received where they are read.
//
// Why nothing is overwritten too early: what a stream does next waits for `moved`, recorded after
// the whole group, sends and receives alike; and a group begins after the kernel that packs, which
// comes after the kernel that read the ghosts before.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "cpufree/baselines/comm/comm.hpp"
#include "cpufree/baselines/nccl_library.hpp"

namespace cpufree::baselines {

// Communicators of a set of GPUs, one for each that this process drives.
class CollComms {
 public:
  // All GPUs are this process's.
  CollComms(CollLibrary library, const std::vector<int>& devices)
      : library_(std::move(library)), comms_(devices.size(), nullptr) {
    expect(library_.init_all(comms_.data(), static_cast<int>(devices.size()), devices.data()),
           "ncclCommInitAll");
  }
  // A process for each GPU, the one that is current: this is one rank of a group; all call this
  // with the same id, and wait for one another.
  CollComms(CollLibrary library, const CollId& id, int rank, int ranks)
      : library_(std::move(library)), first_(rank), comms_(1, nullptr) {
    expect(library_.init_rank(comms_.data(), ranks, id, rank), "ncclCommInitRank");
  }
  ~CollComms() {
    for (CollComm comm : comms_)
      if (comm != nullptr) static_cast<void>(library_.destroy(comm));
  }
  CollComms(const CollComms&) = delete;
  CollComms& operator=(const CollComms&) = delete;

  const CollLibrary& library() const { return library_; }
  CollComm of(int pe) const { return comms_[at(pe - first_)]; }
  void abort() noexcept {
    for (CollComm& comm : comms_) {
      if (comm != nullptr) static_cast<void>(library_.abort(comm));
      comm = nullptr;
    }
  }
  void expect(int status, const char* call) const {
    if (status != 0)
      throw EngineError(std::string(call) + ": " + library_.error_text(status) +
                        "; NCCL_DEBUG=WARN in the environment makes NCCL say more");
  }

 private:
  CollLibrary library_;
  int first_ = 0;  // PE
  std::vector<CollComm> comms_;
};

template <class T>
class Nccl : public Comm<T> {
 public:
  using Ranks = typename Comm<T>::Ranks;
  explicit Nccl(std::shared_ptr<CollComms> comms) : comms_(std::move(comms)) {}

  void send(const Ranks& ranks, HaloVector which) override {
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      rank->compute.record(rank->packed);
      rank->comm.wait_for(rank->packed);
    }
    in_group([&] {
      for (Rank<T>* rank : ranks) exchange(*rank, which);
    });
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      rank->comm.record(rank->moved);
    }
  }
  void receive(Rank<T>& rank, HaloVector) override { rank.compute.wait_for(rank.moved); }

  // Alone on `compute`; behind the halo on `comm` where there is work to overlap with.
  void begin_sum(const Ranks& ranks, const Sums& sums) override {
    if (sums.overlapped)
      for (Rank<T>* rank : ranks) {
        const OnDevice here(rank->device);
        rank->compute.record(rank->packed);
        rank->comm.wait_for(rank->packed);
      }
    in_group([&] {
      for (Rank<T>* rank : ranks) {
        const OnDevice here(rank->device);
        double* const values = rank->sums.data() + sums.first;
        comms_->expect(comms_->library().all_reduce(values, values, at(sums.count), kCollDouble,
                                                    kCollSum, comms_->of(rank->pe),
                                                    sums.overlapped ? rank->comm : rank->compute),
                       "ncclAllReduce");
      }
    });
  }
  void end_sum(const Ranks& ranks, const Sums& sums) override {
    if (!sums.overlapped) return;
    for (Rank<T>* rank : ranks) {
      const OnDevice here(rank->device);
      rank->comm.record(rank->summed);
      rank->compute.wait_for(rank->summed);
    }
  }
  void abort() noexcept override { comms_->abort(); }

 private:
  static constexpr int kType = std::is_same_v<T, float> ? kCollFloat : kCollDouble;

  template <class F>
  void in_group(F&& calls) const {
    comms_->expect(comms_->library().group_start(), "ncclGroupStart");
    calls();
    comms_->expect(comms_->library().group_end(), "ncclGroupEnd");
  }

  void exchange(const Rank<T>& rank, HaloVector which) const {
    const OnDevice here(rank.device);
    const CollComm comm = comms_->of(rank.pe);
    for (std::size_t k = 0; k < rank.neighbours.size(); ++k) {
      const Neighbour& neighbour = rank.neighbours[k];
      comms_->expect(
          comms_->library().send(rank.buffer.data() + rank.first_sent[k], at(neighbour.sent), kType,
                                 neighbour.pe, comm, rank.comm),
          "ncclSend");
      comms_->expect(
          comms_->library().receive(rank.vector(which) + rank.rows + neighbour.first_ghost,
                                    at(neighbour.received), kType, neighbour.pe, comm, rank.comm),
          "ncclRecv");
    }
  }

  std::shared_ptr<CollComms> comms_;
};

}  // namespace cpufree::baselines
