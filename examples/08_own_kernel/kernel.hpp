// A kernel of our own over the port: put-with-signal between two PEs, and an all-reduce among all.
//
// A PE is a GPU, or a group of CPU threads. A kernel is a function template over the port
// (cpufree/device/port.hpp), compiled for each engine from this one source. In CUDA's terms:
//
//   port.block(), port.blocks()    blockIdx.x, gridDim.x
//   port.lane(), port.lanes()      threadIdx.x, blockDim.x   (on CPU threads: 0 and 1)
//   port.sync_block()              __syncthreads()
//   port.pe(), port.pes()          which GPU this is, and how many run the kernel
//   port.put(p, pe, value)         *p = value, in the memory of another PE
//
// All blocks of all PEs run at the same time, so they may wait for one another. "Symmetric" memory
// has the same layout on every PE: `put` takes the address of my object and writes that of the PE.
#pragma once

#include <cstdint>

#include "cpufree/device/allreduce.hpp"
#include "cpufree/device/block.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/device/wait.hpp"

namespace own {

using cpufree::Channel;
using cpufree::Epoch;
using cpufree::Flag;
using cpufree::Packet;
using cpufree::Port;
using cpufree::Scope;

inline constexpr int kValues = 256;      // of one message
inline constexpr int kRounds = 1000;     // of the ping-pong
inline constexpr int kPieces = 1 << 20;  // of the integral

// Results of a PE, read by the host when all kernels have ended.
struct Outcome {
  double value = 0.0;  // of the message after the last round
  double pi = 0.0;
};

// A kernel takes one struct, the same for all blocks of a PE.
struct Args {
  double* mailbox = nullptr;   // symmetric: kValues
  Flag* arrived = nullptr;     // symmetric: how many messages have come into the mailbox
  Packet* slots = nullptr;     // symmetric: of the all-reduce
  Outcome* outcome = nullptr;  // memory that the host reads
  int absent = -1;             // a PE that does nothing, to see how waits end
};

// The symmetric memory of a PE, as offsets. The host allocates `layout.bytes()` zeros on each PE.
struct Memory {
  cpufree::SymmetricLayout layout;
  cpufree::Symmetric<double> mailbox = layout.reserve<double>(kValues);
  cpufree::Symmetric<Flag> arrived = layout.reserve<Flag>(1);
  cpufree::Symmetric<Packet> slots;

  Memory(int pes, int blocks) {
    const auto packets = cpufree::reduce_slot_count(pes, blocks);
    slots = layout.reserve<Packet>(static_cast<std::size_t>(packets));
  }
  Args args(std::byte* heap) const {
    Args a;
    a.mailbox = mailbox.at(heap), a.arrived = arrived.at(heap), a.slots = slots.at(heap);
    return a;
  }
};

// Put with signal: the block writes value(i) into the mailbox of PE `to`, then raises its flag to
// `epoch`. The barrier collects the writes of all threads; `publish` is the fence that orders them
// before the flag.
template <Port P, class F>
CPUFREE_KERNEL_FN void send(P& port, const Args& args, int to, Epoch epoch, F&& value) {
  for (int i = port.lane(); i < kValues; i += port.lanes())
    port.put(args.mailbox + i, to, value(i));
  port.sync_block();
  if (port.lane() != 0) return;
  port.publish(Scope::system);
  port.put_flag(args.arrived, to, epoch);
}

// Waits until the flag in my memory has reached `epoch`; then the block may read its mailbox. The
// wait is bounded: false after the time limit, or once another PE has given up. The host then finds
// a record of who waited for whom. `all` is a barrier, and tells all threads how the wait ended.
template <Port P>
CPUFREE_KERNEL_FN bool receive(P& port, const Args& args, int from, Epoch epoch) {
  bool here = true;
  if (port.lane() == 0) {
    here = cpufree::wait_flag(port, args.arrived, epoch, {Channel::halo_arrival, from, 0});
    port.acquire(Scope::system);
  }
  return port.all(here);
}

// PE 0 and PE 1 send a message to and fro; each adds 1 to every value that it receives.
//
// One mailbox on each PE is enough: the sender of message e + 1 has received the answer to message
// e, and that was sent after message e had been read. Flags hold numbers that only grow, so none
// has to be reset.
template <Port P>
CPUFREE_KERNEL_FN bool ping_pong(P& port, const Args& args) {
  const int me = port.pe();
  if (me > 1 || port.block() != 0) return true;
  const int other = 1 - me;
  const auto next = [&](int i) { return args.mailbox[i] + 1.0; };
  for (Epoch round = 1; round <= kRounds; ++round) {
    if (me == 0) send(port, args, other, round, next);
    if (!receive(port, args, other, round)) return false;
    if (me == 1) send(port, args, other, round, next);
  }
  return true;
}

// pi as the integral of 4 / (1 + x^2) from 0 to 1, its pieces shared out among all threads of all
// PEs. Every block gets the sum, with the same bits.
template <Port P>
CPUFREE_KERNEL_FN bool integrate(P& port, const Args& args, double& pi) {
  const int ranks = port.pes() * port.blocks() * port.lanes();
  const int rank = (port.pe() * port.blocks() + port.block()) * port.lanes() + port.lane();
  double partial[1] = {0.0};
  for (int i = rank; i < kPieces; i += ranks) {
    const double x = (i + 0.5) / kPieces;
    partial[0] += 4.0 / (1.0 + x * x) / kPieces;
  }
  cpufree::AllReduce<P> reduction(port, args.slots);
  double total[1];
  unsigned notes = 0;  // of the host, such as a time limit; not used here
  if (!reduction.sum(partial, total, notes, false, [] {})) return false;
  pi = total[0];
  return true;
}

// What every block of every PE runs. Where a wait has ended without success, leave: the others do
// so too, as the engine tells them.
template <Port P>
CPUFREE_KERNEL_FN void kernel(P& port, const Args& args) {
  if (port.pe() == args.absent) return;
  double pi = 0.0;
  if (!ping_pong(port, args)) return;
  if (!integrate(port, args, pi)) return;
  if (port.block() != 0 || port.lane() != 0) return;
  args.outcome->value = args.mailbox[0];
  args.outcome->pi = pi;
}

}  // namespace own
