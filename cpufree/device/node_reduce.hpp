// All-reduce in two levels, where PEs are in several nodes: the flat all-reduce (allreduce.hpp)
// among the blocks of a node; then block 0 of each PE of the node, all of which have the node's
// sums, tells those PEs of other nodes that are its charge; then every block adds up the nodes'
// sums in one fixed order. One hop between nodes, none after it, and every PE hears from each other
// node once: of node n, from the PE at its own place there (place modulo n's size). Where nodes are
// machines with a network card for each GPU, all cards share the work, each for its own rail.
//
// Every PE of a node has the same bits of the node's sums, and all add the nodes' sums in the order
// of nodes: every block gets bitwise the same result, the same in each run, and has heard from
// every block of every PE: it is a barrier too, with the reservation of allreduce.hpp. Notes go
// with the sums.
//
// Let `notice(n, r, e)` be the put by which PE r hears of node n in epoch e.
//
// Slots and flags have two parities. No two puts of one parity to the same slot are on their way
// together, and none comes before the slot has been read (write after read): notice(n, r, e + 2) is
// sent once its sender has the sums of its node n of e + 2, to which every block of n contributed;
// each of these had finished e + 1 before, so it had the sums of r's node of e + 1, to which every
// block of r contributed; each of these had finished e before, that is, had waited for notice(n, r,
// e), and read it (its packets of e + 1 are stored after the barrier of `scatter`). With one flag
// for both parities, e could come after e + 1, and e + 1 be taken for e.
//
// Source (write after read). Block 0 of a PE writes its `out` of e again in e + 2. By the same
// argument every r that it tells had waited for notice(n, r, e) by then, whose signal comes after
// the values: they have been read.
//
// The slots of the flat all-reduce are those of the blocks of one node: its proof holds as it is.
#pragma once

#include "cpufree/device/allreduce.hpp"

namespace cpufree {

// Room for one node's sums and notes.
inline constexpr int kNodeValues = 2 * kReduceWidth;

// Doubles of NodeBoard::in and of `out`, flags of NodeBoard::flags.
CPUFREE_FN std::int64_t node_in_count(int nodes) { return std::int64_t{2} * nodes * kNodeValues; }
CPUFREE_FN std::int64_t node_out_count() { return std::int64_t{2} * kNodeValues; }
CPUFREE_FN std::int64_t node_flag_count(int nodes) { return std::int64_t{2} * nodes; }

template <Port P>
class NodeReduce {
 public:
  CPUFREE_KERNEL_FN NodeReduce(P& port, Packet* slots, Epoch epoch = 0)
      : port_(port), flat_(port, slots, epoch) {}

  CPUFREE_KERNEL_FN Epoch epoch() const { return flat_.epoch(); }
  CPUFREE_KERNEL_FN void go_on_from(Epoch epoch) { flat_.go_on_from(epoch); }

  // As of AllReduce.
  template <int K>
  CPUFREE_KERNEL_FN void push(const double (&partial)[K]) {
    flat_.push(partial);
  }
  template <int K>
  CPUFREE_KERNEL_FN bool pull(double (&total)[K], unsigned& notes, bool gone) {
    return flat_.pull(total, notes, gone) && join_nodes(total, notes);
  }
  template <int K, class F>
  CPUFREE_KERNEL_FN bool sum(const double (&partial)[K], double (&total)[K], unsigned& notes,
                             bool gone, F&& meanwhile) {
    return flat_.sum(partial, total, notes, gone, meanwhile) && join_nodes(total, notes);
  }
  // Threads keep their totals: what the port could bring again is those of the node.
  template <int K>
  CPUFREE_KERNEL_FN void recall(double (&)[K]) {}

 private:
  CPUFREE_KERNEL_FN const Remote& remote() const { return port_.remote(); }
  CPUFREE_KERNEL_FN const Nodes& nodes() const { return remote().nodes; }
  CPUFREE_KERNEL_FN int my_node() const { return nodes().of_pe[port_.pe()]; }
  CPUFREE_KERNEL_FN int slot(int node) const {
    return static_cast<int>(epoch() & 1U) * nodes().count + node;
  }

  // From the sums and notes of my node to those of all.
  template <int K>
  CPUFREE_KERNEL_FN bool join_nodes(double (&total)[K], unsigned& notes) {
    if (port_.block() == 0) tell(total, notes);
    if (!await_nodes()) return false;
    double sums[K] = {};
    const int mine = my_node();
    for (int node = 0; node < nodes().count; ++node) {
      const double* const in = remote().board.in + slot(node) * kNodeValues;
      for (int k = 0; k < K; ++k) sums[k] += node == mine ? total[k] : in[k];
      if (node != mine) notes |= static_cast<unsigned>(in[K]);
    }
    for (int k = 0; k < K; ++k) total[k] = sums[k];
    return true;
  }

  // Sends the sums of my node to the PEs of other nodes that are my charge.
  template <int K>
  CPUFREE_KERNEL_FN void tell(const double (&total)[K], unsigned notes) {
    static_assert(K < kNodeValues);
    double* const out = remote().board.out + static_cast<int>(epoch() & 1U) * kNodeValues;
    if (port_.lane() == 0) {
      for (int k = 0; k < K; ++k) out[k] = total[k];
      out[K] = static_cast<double>(notes);
    }
    publish_block(port_);
    const int mine = my_node();
    double* const in = remote().board.in + slot(mine) * kNodeValues;
    Flag* const flag = remote().board.flags + slot(mine);
    for (int node = 0; node < nodes().count; ++node) {
      if (node == mine) continue;
      for (int at = nodes().place[port_.pe()]; at < nodes().size(node); at += nodes().size(mine))
        port_.put_signal(in, nodes().pe(node, at), out, K + 1, flag, epoch());
    }
  }

  // Until all other nodes have told my PE their sums.
  CPUFREE_KERNEL_FN bool await_nodes() {
    const int mine = my_node();
    const int place = nodes().place[port_.pe()];
    bool here = true;
    for (int node = port_.lane(); here && node < nodes().count; node += port_.lanes()) {
      if (node == mine) continue;
      const int teller = nodes().pe(node, place % nodes().size(node));
      here = wait_flag(port_, remote().board.flags + slot(node), epoch(),
                       WaitSite{Channel::node_reduction, teller, 0});
    }
    if (port_.lane() < nodes().count) port_.acquire(Scope::system);
    if (!port_.all(here)) return false;
    port_.see_signals();
    return true;
  }

  P& port_;
  AllReduce<P> flat_;
};

}  // namespace cpufree
