// The port of the testing engine whose sums over PEs are a library's, and the library: it writes
// what it likes into all results from when the first PE calls it, and reads what it is given once
// the last one has.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cpufree/engines/cpu_fibers/port.hpp"

namespace cpufree::cpu_fibers {

class SumLibrary {
 public:
  explicit SumLibrary(int pes) : calls_(static_cast<std::size_t>(pes)) {}

  // Returns once all PEs have called it. A wait that can never end kills the fiber: on a GPU it
  // would hang.
  void sum(Machine& machine, const Port& port, double* to, const double* from, int count) {
    if (come_ == 0) spoil(port, to, count);
    calls_[static_cast<std::size_t>(port.pe())] = {to, from};
    const std::int64_t round = rounds_;
    if (++come_ == calls_.size()) {
      finish(count);
      // The machine is not to think that those who wait here wait in vain.
      machine.store(&told_, &rounds_, sizeof(rounds_));
      return;
    }
    while (rounds_ == round) {
      machine.look();
      if (rounds_ == round && !machine.wait()) throw Killed{};
    }
  }

 private:
  struct Call {
    double* to = nullptr;
    const double* from = nullptr;
  };

  static void spoil(const Port& port, double* to, int count) {
    for (int pe = 0; pe < port.pes(); ++pe)
      for (int k = 0; k < count; ++k)
        port.peer(to, pe)[k] = std::numeric_limits<double>::quiet_NaN();
  }

  void finish(int count) {
    std::vector<double> sums(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < sums.size(); ++k) {
      for (const Call& call : calls_) sums[k] += call.from[k];
      for (const Call& call : calls_) call.to[k] = sums[k];
    }
    come_ = 0;
    ++rounds_;
  }

  std::vector<Call> calls_;  // of this round, by PE
  std::size_t come_ = 0;
  std::int64_t rounds_ = 0;
  std::int64_t told_ = 0;
};

class SumPort : public Port {
 public:
  SumPort(Machine& machine, int pe, int block, const LibraryBoard& board, SumLibrary& sums)
      : Port(machine, pe, block), machine_(machine), board_(board), sums_(sums) {}

  const LibraryBoard& library() const { return board_; }
  void sum_over_pes(double* to, const double* from, int count) {
    machine_.call();
    sums_.sum(machine_, *this, to, from, count);
    machine_.call();
  }

 private:
  Machine& machine_;
  const LibraryBoard& board_;
  SumLibrary& sums_;
};

static_assert(LibraryPort<SumPort> && !LibraryPort<Port>);

}  // namespace cpufree::cpu_fibers
