// Kernels with one fault each, for tests of hang reports: text that is compiled in place of a
// solver's kernel. The environment variable FAULT says which: kind, channel ("flag" or "sum"), PE,
// block, the other PE, and epoch.
#include <cstdlib>
#include <sstream>
#include <string>

#include "cpufree/device/allreduce.hpp"
#include "cpufree/solvers/study.hpp"
#include "cpufree/trace/traced.hpp"

namespace faulty {

using cpufree::Epoch, cpufree::Flag, cpufree::Packet;

struct Fault {
  std::string kind = "none", channel;
  int pe = -1, block = -1, other = -1;
  Epoch epoch = 0;
  double seconds = 0.0;

  static Fault chosen() {
    Fault fault;
    if (const char* text = std::getenv("FAULT"))
      std::istringstream(text) >> fault.kind >> fault.channel >> fault.pe >> fault.block >>
          fault.other >> fault.epoch >> fault.seconds;
    return fault;
  }
};

// What is done to messages: by the network beneath the tracer, or by the program above it.
template <class P, bool kProgram>
class FaultyPort : public P {
 public:
  FaultyPort(const P& port, const Fault& fault) : P(port), fault_(&fault) {}

  void put_flag(Flag* flag, int pe, Epoch epoch) {
    if (!hits("flag", pe, epoch)) return P::put_flag(flag, pe, epoch);
    if (fault_->kind == "swapped") P::put_flag(flag, third(), epoch);
    if (fault_->kind == "under-counted") P::put_flag(flag, pe, epoch - 1);
  }
  void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    const Epoch epoch = cpufree::tag_epoch(tag);
    if (!hits("sum", pe, epoch)) return P::put_packet(packet, pe, value, tag);
    if (fault_->kind == "under-counted")
      P::put_packet(packet, pe, value, cpufree::make_tag(epoch - 1, 0U));
  }

 private:
  bool hits(const char* channel, int to, Epoch epoch) const {
    const bool mine = kProgram ? fault_->kind == "omitted" || fault_->kind == "swapped" ||
                                     fault_->kind == "under-counted"
                               : fault_->kind == "dropped";
    return mine && fault_->channel == channel && fault_->pe == this->pe() &&
           fault_->block == this->block() && fault_->other == to && fault_->epoch == epoch;
  }
  // A neighbour of mine that is not the one meant, or any other PE.
  int third() const {
    const int pes = this->pes(), me = this->pe();
    const int left = (me + pes - 1) % pes, right = (me + 1) % pes;
    return fault_->other == right ? left : right;
  }

  const Fault* fault_;
};

// Blocks of the same thread go on meanwhile.
template <class P>
void rest(P& port, double seconds) {
  const std::uint64_t begin = port.now();
  auto wait = port.start_wait();
  while (1e-9 * static_cast<double>(port.now() - begin) < seconds) port.keep_waiting(wait);
}

// Neighbours on a ring signal each other, then all sum, again and again.
template <class P, class Args>
void ring(P& port, const Args& args, const Fault& fault) {
  Flag* const flags = const_cast<Flag*>(args.shares[port.block()].board.flags);
  cpufree::AllReduce<P> reduction(port, args.slots);
  const int pes = port.pes(), me = port.pe();
  const int neighbours[2] = {(me + pes - 1) % pes, (me + 1) % pes};
  const auto slot = [&](int pe) { return flags + pe * port.blocks() + port.block(); };
  for (Epoch epoch = 1; epoch <= 8; ++epoch) {
    const bool here = fault.pe == me && fault.block == port.block() && fault.epoch == epoch;
    if (here && fault.kind == "killed") return;
    if (here && (fault.kind == "late" || fault.kind == "stopped")) rest(port, fault.seconds);
    for (const int to : neighbours) port.put_flag(slot(me), to, epoch);
    for (const int from : neighbours) {
      const bool wrong = here && fault.kind == "threshold" && fault.other == from;
      const Epoch want = epoch + (wrong ? 2 : 0);
      if (!cpufree::wait_flag(port, slot(from), want,
                              {cpufree::Channel::halo_arrival, from, port.block()}))
        return;
    }
    double sum[1] = {1.0};
    unsigned notes = 0;
    reduction.push(sum);
    if (!reduction.pull(sum, notes, false)) return;
  }
}

template <class P, class Args, class F>
void traced(P& port, const Args& args, F&& kernel) {
  const Fault fault = Fault::chosen();
  FaultyPort<P, false> network(port, fault);
  cpufree::run_traced(network, args.traces, [&](auto& traced) {
    FaultyPort<std::remove_reference_t<decltype(traced)>, true> program(traced, fault);
    kernel(program, fault);
  });
}

template <class P, class Args>
void ring_kernel(P& port, const Args& args) {
  traced(port, args, [&](auto& program, const Fault& fault) { ring(program, args, fault); });
}

template <template <class, class> class Algorithm, class M, class P, class Matrix>
void solver_kernel(P& port, const cpufree::SolveArgs<Matrix>& args) {
  traced(port, args, [&](auto& program, const Fault&) {
    using Program = std::remove_reference_t<decltype(program)>;
    cpufree::solve_in<Algorithm, M, cpufree::StudiedContext<Program, Matrix, cpufree::AnySlices>>(
        program, args);
  });
}

}  // namespace faulty
