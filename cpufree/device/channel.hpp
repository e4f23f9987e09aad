// Arrival boards: the channel over which blocks tell one another that vector entries are in place.
//
// Every PE has a board of pes x blocks flags in its own (symmetric) memory. Slot (q, c) is written
// by block c of PE q alone, with the number of the exchange: one writer per flag, monotone epochs.
// An exchange `e` of a vector v, seen from block a of PE m:
//
//   1. a writes its boundary entries of v, and puts them into the ghost entries of its neighbours;
//   2. arrive_remote: slot (m, a) of the boards of the PEs in `notify` becomes e;
//   3. a writes its interior entries of v;
//   4. arrive_local: slot (m, a) of PE m's own board becomes e;
//   5. wait_local: all blocks of PE m in `await_local` have arrived; a reads interior rows'
//   operands;
//   6. wait_halo: all blocks (q, c) in `await` have arrived; a reads ghosts.
//
// Where halos are small, they travel as packets that carry e (Context): 1 puts packets, 2 and 6
// fall away, and a reader of a ghost waits for its packet. With halos of blocks (block_halo.hpp)
// the rows of other blocks of the PE are ghosts, too: of 4 only the block's barrier is left, and 5
// falls away; each packet is fetched once by one thread of the block, for all to read after a
// barrier. All that follows holds for them as it does for ghosts of other PEs: blocks read one
// another's rows mutually or not at all.
//
// Visibility (read after write). A reader that saw slot (q, c) reach e acquires after it; the
// writer published before it stored e, and published all that its block wrote before. So the
// entries of v that (q, c) wrote in 1 (and 3, for the own PE) are visible in 5 and 6.
//
// Reuse (write after read). The matrix has a symmetric pattern, so block a reads a ghost that block
// (q, c) puts exactly if (q, c) reads a ghost that a puts: `await` of a holds (q, c) if and only if
// `await` of (q, c) holds (m, a). Let v be exchanged in e and again in f > e. The puts of f by a
// must not overtake reads of e by (q, c). They do not if one of these holds between e and f:
//   (i)  an all-reduce to which every block contributes sums that depend on its reads of e (cg,
//        prcg: p . A p);
//   (ii) another exchange g, e < g < f, of another vector: a has waited in g for (q, c), which
//        arrived in g only after it had finished its reads of e (Chebyshev, pipecg: two scratch
//        vectors taken in turn).
// The same argument with `await_local` and `wait_local` covers entries of v read by other blocks of
// the same PE. Which of the two holds is said where the vector is exchanged.
//
// With packets, (ii) needs a block barrier between the reads of e by all threads of (q, c) and its
// first put of g: a packet speaks for one thread only. No slot of a packet then ever holds a later
// epoch than the one waited for.
//
// PEs of other nodes (RemotePort). There a block stores nothing entry by entry: in 1 it puts what
// such a PE reads behind the ghosts of its own PE's vector, side by side, and in 2 (arrive_afar)
// sends each PE all of it in one put_signal, right into the ghosts that it is: ghosts are numbered
// by owner and the owner's row, so those that one block owns are neighbours. The signal is that of
// slot (m, a). All above holds as it does for direct PEs, the flag being set once the values are
// there; what is new is that puts overtake one another, and read their source late. Every exchange
// is waited for (5, 6) before the next one begins:
//
// Signals (one flag, several puts). A flag must not fall back from e + 1 to e, nor stand for values
// that are still on their way. So slots of other nodes have two flags, for even and odd exchanges,
// and no two puts of one parity from a to a PE are ever on their way together: a begins e + 2 once
// it has waited in e + 1 for all of `await`; these arrived in e + 1 once they had waited in e, also
// for a; and at least one of them is on each PE that a sends to. So a's put of e is over, and has
// been waited for: the flag never holds a later epoch than the one waited for.
//
// Source (write after read). a writes the values behind the ghosts again when it writes v again, in
// f: as soon, and no sooner, as the ghosts that they went to are written again. Both proofs of
// reuse say that then those who read these ghosts of e have done so; they had seen the signal of e,
// which comes after the values; so by then the source of e has been read.
#pragma once

#include "cpufree/device/wait.hpp"

namespace cpufree {

struct ArrivalBoard {
  Flag* flags = nullptr;                      // symmetric, arrival_flag_count
  const std::int32_t* notify = nullptr;       // PEs of my node that read ghosts of this block
  const std::int32_t* await = nullptr;        // slots (pe * blocks + block) whose ghosts I read
  const std::int32_t* await_local = nullptr;  // other blocks of my PE whose rows I read
  std::int32_t notify_count = 0;
  std::int32_t await_count = 0;
  std::int32_t await_local_count = 0;
};

// Flags of a board. With several nodes the second half is for exchanges of odd numbers.
CPUFREE_FN std::int64_t arrival_flag_count(int pes, int blocks, int nodes) {
  return std::int64_t{pes} * blocks * (nodes > 1 ? 2 : 1);
}

template <Port P>
class Arrivals {
 public:
  // `epoch`: of the last exchange that took place.
  CPUFREE_KERNEL_FN Arrivals(P& port, const ArrivalBoard& board, Epoch epoch = 0)
      : port_(port),
        board_(board),
        first_local_(port.lane() < board.await_local_count ? board.await_local[port.lane()] : 0),
        first_halo_(port.lane() < board.await_count ? board.await[port.lane()] : 0),
        epoch_(epoch) {}

  CPUFREE_KERNEL_FN Epoch epoch() const { return epoch_; }
  CPUFREE_KERNEL_FN void go_on_from(Epoch epoch) { epoch_ = epoch; }

  // Opens the next exchange. Called by all threads of the block before step 1.
  CPUFREE_KERNEL_FN void begin() { ++epoch_; }

  // Step 2: my boundary entries are put. No-op for a block without neighbours.
  CPUFREE_KERNEL_FN void arrive_remote() {
    if (board_.notify_count == 0) return;
    port_.sync_block();
    if (port_.lane() != 0) return;
    port_.publish(Scope::system);  // one fence for all neighbours
    for (std::int32_t k = 0; k < board_.notify_count; ++k)
      port_.put_flag(board_.flags + slot(port_.pe(), port_.block()), board_.notify[k], epoch_);
  }

  // Step 2 for PEs of other nodes. `vector`: the one exchanged, as my PE has it.
  template <class T>
  CPUFREE_KERNEL_FN void arrive_afar(T* vector)
    requires RemotePort<P>
  {
    const RemoteRuns mine = port_.remote().runs[port_.block()];
    if (mine.count == 0) return;
    publish_block(port_);
    for (std::int32_t k = 0; k < mine.count; ++k) {
      const RemoteRun run = mine.runs[k];
      const int to = remote_slot(port_.pe(), port_.block());
      port_.put_signal(vector + run.to, run.pe, vector + run.from, run.count, board_.flags + to,
                       epoch_);
    }
  }

  // Step 4: all my entries are in place.
  CPUFREE_KERNEL_FN void arrive_local() {
    port_.sync_block();
    if (board_.await_local_count == 0 || port_.lane() != 0) return;
    port_.publish(Scope::pe);
    port_.put_flag(board_.flags + slot(port_.pe(), port_.block()), port_.pe(), epoch_);
  }

  // Step 5. False: leave the kernel.
  CPUFREE_KERNEL_FN bool wait_local() {
    if (board_.await_local_count == 0) return true;
    bool here = true;
    for (int k = port_.lane(); here && k < board_.await_local_count; k += port_.lanes()) {
      const int block = k == port_.lane() ? first_local_ : board_.await_local[k];
      here = wait_for(port_.pe(), block, Channel::local_arrival);
    }
    if (port_.lane() < board_.await_local_count) port_.acquire(Scope::pe);
    return port_.all(here);
  }

  // Step 6. False: leave the kernel.
  CPUFREE_KERNEL_FN bool wait_halo() {
    if (board_.await_count == 0) return true;
    bool here = true;
    for (std::int32_t k = port_.lane(); here && k < board_.await_count; k += port_.lanes()) {
      const int source = k == port_.lane() ? first_halo_ : board_.await[k];
      here = wait_for(source / port_.blocks(), source % port_.blocks(), Channel::halo_arrival);
    }
    if (port_.lane() < board_.await_count) port_.acquire(Scope::system);
    const bool all = port_.all(here);
    if constexpr (RemotePort<P>)  // who reads of other nodes sends to them, too
      if (all && port_.remote().runs[port_.block()].count > 0) port_.see_signals();
    return all;
  }

 private:
  CPUFREE_KERNEL_FN int slot(int pe, int block) const { return pe * port_.blocks() + block; }

  CPUFREE_KERNEL_FN int remote_slot(int pe, int block) const {
    const int odd = static_cast<int>(epoch_ & 1U);
    return slot(pe, block) + odd * port_.pes() * port_.blocks();
  }

  // The slot in which a block of PE `pe` signals me.
  CPUFREE_KERNEL_FN int slot_from(int pe, int block) const {
    if constexpr (RemotePort<P>)
      if (!reaches(port_, pe)) return remote_slot(pe, block);
    return slot(pe, block);
  }

  CPUFREE_KERNEL_FN bool wait_for(int pe, int block, Channel channel) {
    return wait_flag(port_, board_.flags + slot_from(pe, block), epoch_,
                     WaitSite{channel, pe, block});
  }

  P& port_;
  const ArrivalBoard& board_;
  int first_local_;  // my first partners, at hand
  int first_halo_;
  Epoch epoch_;
};

}  // namespace cpufree
