// The kernel of a probe: exchanges between pairs of PEs, 2k and 2k + 1, block with block, and the
// time that they take by the clock of the first one's block. All pairs and blocks exchange at the
// same time; a run with one of each measures messages without contention.
#pragma once

#include "cpufree/device/allreduce.hpp"
#include "cpufree/probes/ways.hpp"

namespace cpufree {

// Ticks that a look at the clock takes itself, which every time contains once.
template <Port P>
CPUFREE_KERNEL_FN std::uint64_t cost_of_looking(P& port) {
  std::uint64_t least = ~std::uint64_t{0};
  for (int k = 0; k < 32; ++k) {
    const std::uint64_t begin = port.ticks();
    const std::uint64_t passed = port.ticks() - begin;
    least = passed < least ? passed : least;
  }
  return least;
}

// Runs exchanges and keeps their times. `Exchange` has `bool run(spent)`, which adds ticks to
// `spent` and turns false where a wait was given up, and `wrong`.
template <Port P, class Exchange>
CPUFREE_KERNEL_FN void time_exchanges(P& port, const ProbeArgs& args, Exchange& exchange) {
  const bool keeps_time = port.pe() == 0 && port.block() == 0 && port.lane() == 0;
  if (keeps_time) {
    args.clock->look = cost_of_looking(port);
    args.clock->ticks[0] = port.ticks(), args.clock->now[0] = port.now();
  }
  for (std::int32_t n = 0; n < args.warm_ups + args.repeats; ++n) {
    std::uint64_t spent = 0;
    if (!exchange.run(spent)) break;
    if (keeps_time && n >= args.warm_ups) args.ticks[n - args.warm_ups] = spent;
  }
  if (keeps_time) args.clock->ticks[1] = port.ticks(), args.clock->now[1] = port.now();
  args.wrong[port.block() * port.lanes() + port.lane()] = exchange.wrong;
}

// Messages of a link that sends and receives.
template <class P, class Link>
struct MessageExchange {
  P& port;
  const ProbeArgs& args;
  Link link;
  Epoch epoch;
  std::int64_t wrong = 0;

  CPUFREE_KERNEL_FN MessageExchange(P& port_, const ProbeArgs& args_)
      : port(port_), args(args_), link(port_, args_), epoch(args_.epoch) {}

  CPUFREE_KERNEL_FN bool first() const { return (port.pe() & 1) == 0; }

  CPUFREE_KERNEL_FN bool run(std::uint64_t& spent) {
    switch (args.mode) {
      case ProbeMode::window:
        return window(spent);
      case ProbeMode::send:
        return send(spent);
      case ProbeMode::receive:
        return receive(spent);
      default:
        return round_trips(spent);
    }
  }

 private:
  CPUFREE_KERNEL_FN bool round_trips(std::uint64_t& spent) {
    const std::uint64_t begin = port.ticks();
    bool here = true;
    for (std::int32_t r = 0; here && r < args.rounds; ++r) {
      ++epoch;
      if (first()) link.send(epoch, 0, args.values);
      here = link.receive(epoch, 0, args.values, wrong);
      if (here && !first()) link.send(epoch, 0, args.values);
    }
    spent = port.ticks() - begin;
    return here;
  }

  CPUFREE_KERNEL_FN bool window(std::uint64_t& spent) {
    const std::uint64_t begin = port.ticks();
    bool here = true;
    for (std::int32_t k = 0; here && k < args.messages; ++k) {
      ++epoch;
      if (first())
        link.send(epoch, k, args.values);
      else
        here = link.receive(epoch, k, args.values, wrong);
    }
    here = here && answer(!first());
    spent = port.ticks() - begin;
    return here;
  }

  // The time of what the sender does, who may then write the same place again.
  CPUFREE_KERNEL_FN bool send(std::uint64_t& spent) {
    ++epoch;
    if (!first()) return link.receive(epoch, 0, args.values, wrong) && answer(true);
    const std::uint64_t begin = port.ticks();
    link.send(epoch, 0, args.values);
    spent = port.ticks() - begin;
    return answer(false);
  }

  // The time of reading a message that has come.
  CPUFREE_KERNEL_FN bool receive(std::uint64_t& spent) {
    ++epoch;
    if (!first()) {
      link.send(epoch, 0, args.values);
      return answer(false);
    }
    if constexpr (Link::reads_apart) {
      if (!link.await(epoch)) return false;
      const std::uint64_t begin = port.ticks();
      wrong += link.read(epoch, 0, args.values);
      port.sync_block();
      spent = port.ticks() - begin;
    } else if (!link.receive(epoch, 0, args.values, wrong)) {
      return false;
    }
    return answer(true);
  }

  CPUFREE_KERNEL_FN bool answer(bool mine) {
    ++epoch;
    if (!mine) return link.receive(epoch, args.messages, 1, wrong);
    link.send(epoch, args.messages, 1);
    return true;
  }
};

// Gets. The partner fills what is got before, and waits until it has been.
template <class P>
struct GetExchange {
  P& port;
  const ProbeArgs& args;
  GetLink<P> link;
  Epoch epoch;
  std::int64_t wrong = 0;

  CPUFREE_KERNEL_FN GetExchange(P& port_, const ProbeArgs& args_)
      : port(port_), args(args_), link(port_, args_), epoch(args_.epoch) {}

  CPUFREE_KERNEL_FN bool run(std::uint64_t& spent) {
    bool here = true;
    for (std::int32_t r = 0; here && r < args.rounds; ++r)
      here = (port.pe() & 1) == 0 ? get(spent) : offer();
    return here;
  }

 private:
  CPUFREE_KERNEL_FN bool is_window() const { return args.mode == ProbeMode::window; }

  CPUFREE_KERNEL_FN bool offer() {
    ++epoch;
    for (std::int32_t k = 0; k < args.messages; ++k) link.fill(epoch, k, args.values);
    if (is_window()) link.fill(epoch, args.messages, 1);
    link.signal(epoch);
    return link.await(epoch);
  }
  CPUFREE_KERNEL_FN bool get(std::uint64_t& spent) {
    ++epoch;
    if (!link.await(epoch)) return false;
    const std::uint64_t begin = port.ticks();
    for (std::int32_t k = 0; k < args.messages; ++k) wrong += link.get(epoch, k, args.values);
    if (is_window()) wrong += link.get(epoch, args.messages, 1);
    spent += port.ticks() - begin;
    link.signal(epoch);
    return true;
  }
};

// Flags that order nothing, one way and back.
template <class P>
struct FlagExchange {
  P& port;
  const ProbeArgs& args;
  ProbeLink<P> link;
  Epoch epoch;
  std::int64_t wrong = 0;

  CPUFREE_KERNEL_FN FlagExchange(P& port_, const ProbeArgs& args_)
      : port(port_), args(args_), link(port_, args_), epoch(args_.epoch) {}

  CPUFREE_KERNEL_FN bool run(std::uint64_t& spent) {
    const std::uint64_t begin = port.ticks();
    bool here = true;
    for (std::int32_t r = 0; port.lane() == 0 && here && r < args.rounds; ++r) {
      ++epoch;
      if ((port.pe() & 1) == 0) link.put_flag(epoch);
      here = link.wait_flag(epoch);
      if (here && (port.pe() & 1) != 0) link.put_flag(epoch);
    }
    spent = port.ticks() - begin;
    return port.all(here);
  }
};

// Sums of K values over all threads of all blocks of all PEs, which all of them get.
template <class P, int K>
struct SumExchange {
  P& port;
  const ProbeArgs& args;
  AllReduce<P> reduce;
  std::int64_t wrong = 0;

  CPUFREE_KERNEL_FN SumExchange(P& port_, const ProbeArgs& args_)
      : port(port_), args(args_), reduce(port_, args_.slots, args_.epoch) {}

  CPUFREE_KERNEL_FN bool run(std::uint64_t& spent) {
    const std::uint64_t begin = port.ticks();
    double partial[K];
    double total[K];
    unsigned notes = 0;
    bool here = true;
    const int all = port.pes() * port.blocks() * port.lanes();
    for (std::int32_t r = 0; here && r < args.rounds; ++r) {
      CPUFREE_UNROLL
      for (int k = 0; k < K; ++k) partial[k] = r + k;
      here = reduce.sum(partial, total, notes, false, [] {});
      CPUFREE_UNROLL
      for (int k = 0; k < K; ++k) wrong += here && total[k] != double{1} * all * (r + k) ? 1 : 0;
    }
    spent = port.ticks() - begin;
    return here;
  }
};

// What a fence takes after stores to the partner. The partner does nothing.
template <class P>
struct FenceExchange {
  P& port;
  const ProbeArgs& args;
  StoreLink<P, ByBlock> link;
  std::int64_t wrong = 0;

  CPUFREE_KERNEL_FN FenceExchange(P& port_, const ProbeArgs& args_)
      : port(port_), args(args_), link(port_, args_) {}

  CPUFREE_KERNEL_FN bool run(std::uint64_t& spent) {
    if ((port.pe() & 1) != 0) return true;
    link.store(args.epoch, 0, args.values);
    port.sync_block();
    const std::uint64_t begin = port.ticks();
    if (port.lane() == 0) port.publish(Scope::system);
    spent = port.ticks() - begin;
    port.sync_block();
    return true;
  }
};

template <template <class...> class Exchange, Port P, class... More>
CPUFREE_KERNEL_FN void probe_as(P& port, const ProbeArgs& args) {
  Exchange<P, More...> exchange(port, args);
  time_exchanges(port, args, exchange);
}

template <int K, Port P>
CPUFREE_KERNEL_FN void probe_sums(P& port, const ProbeArgs& args) {
  SumExchange<P, K> exchange(port, args);
  time_exchanges(port, args, exchange);
}

// The modes that all ways share: those without a message.
template <Port P>
CPUFREE_KERNEL_FN void probe_without_message(P& port, const ProbeArgs& args) {
  if (args.mode == ProbeMode::flag) return probe_as<FlagExchange>(port, args);
  if (args.mode == ProbeMode::fence) return probe_as<FenceExchange>(port, args);
  if (args.values == 1) return probe_sums<1>(port, args);
  if (args.values == 2) return probe_sums<2>(port, args);
  if (args.values == 4) return probe_sums<4>(port, args);
  probe_sums<8>(port, args);
}

template <ProbeWay W, Port P>
CPUFREE_KERNEL_FN void probe_kernel(P& port, const ProbeArgs& args) {
  if (args.mode >= ProbeMode::flag) return probe_without_message(port, args);
  if constexpr (W == ProbeWay::get)
    probe_as<GetExchange>(port, args);
  else if constexpr (W == ProbeWay::packets)
    probe_as<MessageExchange, P, PacketLink<P>>(port, args);
  else if constexpr (W == ProbeWay::store_thread)
    probe_as<MessageExchange, P, StoreLink<P, ByThread>>(port, args);
  else if constexpr (W == ProbeWay::store_warp)
    probe_as<MessageExchange, P, StoreLink<P, ByWarp>>(port, args);
  else if constexpr (W == ProbeWay::bulk)
    probe_as<MessageExchange, P, BulkLink<P>>(port, args);
  else
    probe_as<MessageExchange, P, StoreLink<P, ByBlock>>(port, args);
}

// The same for a way that is known when it runs.
template <Port P>
CPUFREE_KERNEL_FN void probe_kernel(ProbeWay way, P& port, const ProbeArgs& args) {
  switch (way) {
    case ProbeWay::store_thread:
      return probe_kernel<ProbeWay::store_thread>(port, args);
    case ProbeWay::store_warp:
      return probe_kernel<ProbeWay::store_warp>(port, args);
    case ProbeWay::store_block:
      return probe_kernel<ProbeWay::store_block>(port, args);
    case ProbeWay::bulk:
      return probe_kernel<ProbeWay::bulk>(port, args);
    case ProbeWay::packets:
      return probe_kernel<ProbeWay::packets>(port, args);
    case ProbeWay::get:
      return probe_kernel<ProbeWay::get>(port, args);
  }
}

}  // namespace cpufree
