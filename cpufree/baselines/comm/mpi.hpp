// One GPU for each process, and MPI between them: persistent sends and receives, sums finished by
// MPI_Allreduce. Where the MPI takes addresses of GPU memory it is given them; else values are
// staged through pinned memory.
//
// Why nothing is overwritten too early: (i) `receive` returns when all sends and receives of the
// exchange are complete, so what was sent may be packed again; (ii) values are received again, into
// ghosts or what stages them, one iteration later (pipecg, which has two vectors: two) after the
// host has waited for sums that the GPU computed when it had read them.
#pragma once

#include <mpi.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "cpufree/baselines/comm/comm.hpp"
#include "cpufree/baselines/comm/mpi_calls.hpp"

namespace cpufree::baselines {

inline double mpi_largest(double mine) {
  double most = 0.0;
  check_mpi(MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
  return most;
}

template <class T>
class Mpi : public Comm<T> {
 public:
  using Ranks = typename Comm<T>::Ranks;

  Mpi(Rank<T>& rank, bool staged, double wait_limit) : staged_(staged), wait_limit_(wait_limit) {
    if (staged_) {
      outgoing_ = MappedArray<T>(rank.buffer.size());
      for (MappedArray<T>& incoming : incoming_) incoming = MappedArray<T>(at(rank.ghosts));
    }
    for (const HaloVector which : {HaloVector::p, HaloVector::scratch}) post(rank, which);
  }
  ~Mpi() override {
    int ended = 0;
    static_cast<void>(MPI_Finalized(&ended));
    for (auto* list : {&sends_, &receives_})
      for (std::vector<MPI_Request>& requests : *list)
        for (MPI_Request& request : requests)
          if (ended == 0) static_cast<void>(MPI_Request_free(&request));
  }

  void send(const Ranks& ranks, HaloVector which) override {
    Rank<T>& rank = *ranks.front();
    if (rank.neighbours.empty()) return;
    const OnDevice here(rank.device);
    start(receives_[index(which)]);
    rank.compute.record(rank.packed);
    if (!staged_) return;
    rank.comm.wait_for(rank.packed);
    gpu::copy(outgoing_.data(), rank.buffer.data(), rank.buffer.size() * sizeof(T), rank.comm);
    rank.comm.record(rank.moved);
  }

  // The product with own columns has been launched, and runs meanwhile.
  void receive(Rank<T>& rank, HaloVector which) override {
    if (rank.neighbours.empty()) return;
    (staged_ ? rank.moved : rank.packed).wait(Deadline(wait_limit_), "boundary values");
    start(sends_[index(which)]);
    if (open_ != nullptr) begin_all_reduce(rank);
    finish(receives_[index(which)]);
    finish(sends_[index(which)]);
    if (!staged_) return;
    gpu::copy(rank.vector(which) + rank.rows, incoming_[index(which)].data(),
              at(rank.ghosts) * sizeof(T), rank.comm);
    rank.comm.record(rank.moved);
    rank.compute.wait_for(rank.moved);
  }

  SumTarget target(const Rank<T>& rank, const Sums& sums) const override {
    SumTarget to = Comm<T>::target(rank, sums);
    to.out = rank.host_sums.data() + sums.first;
    return to;
  }
  bool by_value() const override { return true; }
  double total(int slot) const override { return totals_[at(slot)]; }
  void preset(int slot, double value) override { totals_[at(slot)] = value; }

  void begin_sum(const Ranks& ranks, const Sums& sums) override {
    const OnDevice here(ranks.front()->device);
    ranks.front()->compute.record(ranks.front()->summed);
    sums_ = sums;
    open_ = &sums_;
  }
  void end_sum(const Ranks& ranks, const Sums& sums) override {
    const Rank<T>& rank = *ranks.front();
    if (sums.overlapped) {
      if (open_ != nullptr) begin_all_reduce(rank);
      std::vector<MPI_Request> one = {reduction_};
      finish(one);
      reduction_ = MPI_REQUEST_NULL;
      return;
    }
    open_ = nullptr;
    rank.summed.wait(Deadline(wait_limit_), "the sums of a GPU");
    check_mpi(MPI_Allreduce(rank.host_sums.data() + sums.first, totals_.data() + sums.first,
                            sums.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
              "MPI_Allreduce");
  }

  double slowest(double seconds) override { return mpi_largest(seconds); }

 private:
  static std::size_t index(HaloVector which) { return static_cast<std::size_t>(which); }
  static MPI_Datatype type() { return std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE; }

  void post(Rank<T>& rank, HaloVector which) {
    T* const out = staged_ ? outgoing_.data() : rank.buffer.data();
    T* const in = staged_ ? incoming_[index(which)].data() : rank.vector(which) + rank.rows;
    const int tag = static_cast<int>(which);
    for (std::size_t k = 0; k < rank.neighbours.size(); ++k) {
      const Neighbour& neighbour = rank.neighbours[k];
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(MPI_Send_init(out + rank.first_sent[k], neighbour.sent, type(), neighbour.pe, tag,
                              MPI_COMM_WORLD, &request),
                "MPI_Send_init");
      sends_[index(which)].push_back(request);
      check_mpi(MPI_Recv_init(in + neighbour.first_ghost, neighbour.received, type(), neighbour.pe,
                              tag, MPI_COMM_WORLD, &request),
                "MPI_Recv_init");
      receives_[index(which)].push_back(request);
    }
  }

  static void start(std::vector<MPI_Request>& requests) {
    check_mpi(MPI_Startall(static_cast<int>(requests.size()), requests.data()), "MPI_Startall");
  }
  // MPI_Waitall with a bound: twice that of a GPU, so that the process speaks first whose GPU does
  // not answer, and not those that wait for its messages.
  void finish(std::vector<MPI_Request>& requests) const {
    const Deadline deadline(2.0 * wait_limit_);
    int done = 0;
    for (unsigned look = 1; done == 0; ++look) {
      check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                            MPI_STATUSES_IGNORE),
                "MPI_Testall");
      if (look % 1024 == 0 && deadline.over()) give_up(deadline, "messages of other processes");
    }
  }

  void begin_all_reduce(const Rank<T>& rank) {
    if (!open_->overlapped) return;
    rank.summed.wait(Deadline(wait_limit_), "the sums of a GPU");
    check_mpi(MPI_Iallreduce(rank.host_sums.data() + open_->first, totals_.data() + open_->first,
                             open_->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &reduction_),
              "MPI_Iallreduce");
    open_ = nullptr;
  }

  bool staged_;
  double wait_limit_;
  MappedArray<T> outgoing_;
  std::array<MappedArray<T>, 2> incoming_;                    // by vector
  std::array<std::vector<MPI_Request>, 2> sends_, receives_;  // persistent, by vector
  std::array<double, kSumSlots> totals_ = {};
  Sums sums_;
  const Sums* open_ = nullptr;  // begun, and not handed to MPI yet
  MPI_Request reduction_ = MPI_REQUEST_NULL;
};

}  // namespace cpufree::baselines
