// Kernels of all-reduces, Jacobi iterations, long runs and programs of domains.
#include "cpufree/triggered/device/packet_allreduce.hpp"
#include "cpufree/triggered/gpu/verbs.cuh"

namespace cpufree::triggered {

namespace {

// Whole numbers, whose sums are exact.
template <class T>
__device__ T summand(int pe, std::int64_t k, std::uint32_t epoch) {
  return static_cast<T>(pe + 1 + (k + epoch) % 7);
}
template <class T>
__device__ T sum_of(int pes, std::int64_t k, std::uint32_t epoch) {
  return static_cast<T>(pes * (pes + 1) / 2) +
         static_cast<T>(pes) * static_cast<T>((k + epoch) % 7);
}

template <class T, class Reduce>
__device__ void sum_all(GpuPort& port, Reduce& reduce, const GpuReduceArgs& args) {
  const VectorSchedule& s = args.schedule;
  T* const values = reinterpret_cast<T*>(args.values);
  const std::int64_t begin = s.part(port.block()) + port.lane(), end = s.part(port.block() + 1);
  unsigned long long wrong = 0;
  for (std::uint32_t e = 0; e < args.repeats; ++e) {
    if (e == args.warm_up && port.lane() == 0)
      args.times[2 * port.block()] = gpu_p2p::nanoseconds();
    if (args.checks != 0U) {
      for (std::int64_t k = begin; k < end; k += port.lanes())
        values[k] = summand<T>(port.pe(), k, args.epoch + e);
      port.sync_block();
    }
    if (!reduce.sum()) return;
    for (std::int64_t k = begin; args.checks != 0U && k < end; k += port.lanes())
      wrong += values[k] == sum_of<T>(port.pes(), k, args.epoch + e) ? 0 : 1;
  }
  port.sync_block();
  if (port.lane() == 0) args.times[2 * port.block() + 1] = gpu_p2p::nanoseconds();
  if (wrong != 0) atomicAdd(args.wrong, wrong);
}

template <class T, class Transport>
__device__ void sum_with(GpuPort& port, Transport& transport, const GpuReduceArgs& args) {
  const VectorReduceArgs<T> vectors{args.schedule, reinterpret_cast<T*>(args.values),
                                    reinterpret_cast<T*>(args.inbox)};
  VectorAllReduce<GpuPort, T, Transport> reduce(port, transport, vectors, args.epoch);
  sum_all<T>(port, reduce, args);
}

template <class T, ReduceBy kBy>
__global__ void __launch_bounds__(1024, 1) reduce(const __grid_constant__ gpu_p2p::Shared shared,
                                                  const __grid_constant__ GpuReduceArgs args) {
  GpuPort port(shared, nullptr);
  if constexpr (kBy == ReduceBy::stores) {
    StoreTransport<GpuPort> by_stores(port, args.verbs.board.signals);
    sum_with<T>(port, by_stores, args);
  } else if constexpr (kBy == ReduceBy::packets) {
    const PacketReduceArgs<T> vectors{args.schedule, reinterpret_cast<T*>(args.values),
                                      reinterpret_cast<typename ValuePacket<T>::Type*>(args.inbox)};
    PacketAllReduce<GpuPort, T> by_packets(port, vectors, args.epoch);
    sum_all<T>(port, by_packets, args);
  } else {
    using Verbs = GpuVerbs<kBy == ReduceBy::words>;
    Verbs verbs(port, args.verbs, port.pe());
    TriggerTransport<GpuPort, typename Verbs::Type> by_triggers(verbs.verbs(), 0, 0);
    sum_with<T>(port, by_triggers, args);
    verbs.keep();
  }
}

template <class T, bool kCounts>
__global__ void __launch_bounds__(1024, 1) jacobi(const __grid_constant__ gpu_p2p::Shared shared,
                                                  const __grid_constant__ GpuJacobiArgs args) {
  GpuPort port(shared, nullptr);
  GpuVerbs<kCounts> verbs(port, args.verbs, port.pe());
  const TriggeredJacobiArgs<T> mine{args.shape, reinterpret_cast<T*>(args.values), args.iterations};
  TriggeredJacobi<GpuPort, T, typename GpuVerbs<kCounts>::Type>(port, args.verbs.board,
                                                                verbs.verbs(), mine)
      .run();
  verbs.keep();
}

// Iteration `args.iterations` of the same strips. Rows next to another strip of the PE are stored
// into its ghosts; those for another PE are left to the host.
template <class T>
__global__ void __launch_bounds__(1024, 1)
    jacobi_step(const __grid_constant__ gpu_p2p::Shared shared,
                const __grid_constant__ GpuJacobiArgs args) {
  GpuPort port(shared, nullptr);
  const StripShape& s = args.shape;
  T* const values = reinterpret_cast<T*>(args.values);
  const int block = port.block(), number = port.pe() * s.blocks + block;
  const int from = static_cast<int>((args.iterations + 1) % 2);
  const int to = static_cast<int>(args.iterations % 2);
  const std::int64_t rows = s.first(number + 1) - s.first(number);
  for (std::int64_t row = 0; row < rows; ++row) {
    RowsAround<T> around{};
    around.before = values + s.place(block, from, row - 1);
    around.centre = values + s.place(block, from, row);
    around.after = values + s.place(block, from, row + 1);
    T* const out = values + s.place(block, to, row);
    for_each(port, 1, s.columns - 1,
             [&](std::int32_t x, int) { out[x] = jacobi_point<2, false>(around, x); });
  }
  port.sync_block();
  for (int side = 0; side < 2; ++side) {
    StripEdge edge;
    if (!edge_of(s, port.pe(), block, side, edge) || edge.pe != port.pe()) continue;
    const T* const mine = values + s.place(block, to, edge.row);
    T* const ghost = values + s.place(edge.block, to, edge.ghost);
    for_each(port, 1, s.columns - 1, [&](std::int32_t x, int) { ghost[x] = mine[x]; });
  }
}

__device__ std::uint64_t soaked(int pe, std::uint32_t epoch, std::int64_t k) {
  return (std::uint64_t{epoch} * 16 + static_cast<std::uint64_t>(pe) + 1) * 0x9e3779b97f4a7c15U +
         static_cast<std::uint64_t>(k);
}

// Of each channel, two buffers in turn. Source e % 2 is written again once `done` of e - 2 has
// come; the left neighbour's target once it knows, by the second signal, that e - 2 has been read
// there.
template <bool kCounts>
__global__ void __launch_bounds__(1024, 1)
    soak(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ SoakArgs args) {
  GpuPort port(shared, nullptr);
  GpuVerbs<kCounts> both(port, args.verbs, port.pe());
  auto& triggers = both.verbs();
  const int left = (port.pe() + port.pes() - 1) % port.pes();
  const int right = (port.pe() + 1) % port.pes();
  auto* const source = reinterpret_cast<std::uint64_t*>(args.verbs.board.heap + args.source);
  const auto* const target =
      reinterpret_cast<const std::uint64_t*>(args.verbs.board.heap + args.target);
  const int channel = port.block() / args.blocks;
  const auto operation = static_cast<std::uint32_t>(2 * channel);
  const std::int64_t words = args.words * (port.blocks() / args.blocks);  // of all channels
  const std::int64_t first =
      args.words * channel + port.block() % args.blocks * port.lanes() + port.lane();
  const std::int64_t end = args.words * (channel + 1);
  const std::int64_t step = std::int64_t{args.blocks} * port.lanes();
  unsigned long long sum = 0, wrong = 0;
  for (std::uint32_t e = args.first_epoch; e < args.first_epoch + args.epochs; ++e) {
    const std::int64_t slot = (e % 2) * words;
    if (e >= 2 && (!triggers.wait_done({operation, e - 2}) ||
                   !triggers.wait_signal(2 * channel + 1, e - 2, right)))
      return;
    for (std::int64_t k = first; k < end; k += step) source[slot + k] = soaked(port.pe(), e, k);
    if (!triggers.trigger(TriggerTag{operation, e}) || !triggers.wait_signal(2 * channel, e, left))
      return;
    for (std::int64_t k = first; k < end; k += step) {
      const std::uint64_t got = __ldcg(target + slot + k);
      sum += got;
      wrong += got == soaked(left, e, k) ? 0 : 1;
    }
    // Its own done proves that the word of the second tag is free; waited for at the end.
    if (!triggers.trigger(TriggerTag{operation + 1, e})) return;
  }
  const std::uint32_t last = args.first_epoch + args.epochs - 1;
  if (!triggers.wait_done({operation, last}) || !triggers.wait_done({operation + 1, last})) return;
  atomicAdd(args.sums, sum);
  if (wrong != 0) atomicAdd(args.sums + 1, wrong);
  both.keep();
}

template <bool kCounts>
__global__ void __launch_bounds__(1024, 1)
    flood(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ FloodArgs args) {
  GpuPort port(shared, nullptr);
  GpuVerbs<kCounts> verbs(port, args.verbs, port.pe());
  if (verbs.verbs().trigger(TriggerGrain::uniform_kernel, {0, 0}, args.items))
    verbs.verbs().wait_done({0, 0});
  verbs.keep();
}

// The program of a block. What it triggers at other PEs' NICs goes by verbs of its own.
template <bool kCounts>
class GpuInterpreter {
 public:
  __device__ GpuInterpreter(GpuPort& port, const StepsArgs& args)
      : port_(port), args_(args), own_(port, args.verbs, port.pe()) {}

  __device__ void run() {
    for (std::int64_t k = args_.first[port_.block()]; k < args_.first[port_.block() + 1]; ++k)
      if (!take(args_.steps[k], k)) break;
    own_.keep();
  }

 private:
  __device__ double* doubles(std::uint64_t place) const {
    return reinterpret_cast<double*>(args_.verbs.board.heap + place);
  }
  template <class F>
  __device__ bool each(const Step& step, F&& value) {
    port_.sync_block();
    for (std::int64_t k = port_.lane(); k < step.count; k += port_.lanes())
      doubles(step.place)[k] = value(k);
    port_.sync_block();
    return true;
  }

  __device__ bool take(const Step& step, std::int64_t number) {
    const double* const from = doubles(step.from);
    switch (step.kind) {
      case Step::Kind::store:
        return each(step, [&](std::int64_t k) { return args_.values[step.first + k]; });
      case Step::Kind::copy:
        return each(step, [&](std::int64_t k) { return __ldcg(from + k); });
      case Step::Kind::add:
        return each(step, [&](std::int64_t k) {
          return __ldcg(doubles(step.place) + k) + __ldcg(from + k);
        });
      case Step::Kind::trigger:
        return trigger(step);
      case Step::Kind::wait_done:
        return own_.verbs().wait_done(step.tag);
      case Step::Kind::wait_signal:
        return own_.verbs().wait_signal(step.number, step.tag.epoch, step.pe);
      default:
        return arrival(step, number);
    }
  }

  __device__ bool trigger(const Step& step) {
    if (step.pe == port_.pe()) return send(own_, step);
    GpuVerbs<kCounts> other(port_, args_.verbs, step.pe);
    const bool good = send(other, step);
    other.keep();
    port_.sync_block();  // what is kept is read by the next
    return good;
  }
  __device__ bool send(GpuVerbs<kCounts>& to, const Step& step) {
    if constexpr (kCounts)
      return to.verbs().trigger(step.tag);
    else
      return to.verbs().trigger(step.tag, step.fields);
  }

  __device__ bool arrival(const Step& step, std::int64_t number) {
    TriggerQueue<GpuPort> queue(port_, args_.verbs.board, step.pe, args_.taken[step.pe]);
    TriggerTag tag;
    if (!queue.next(tag)) return false;
    if (port_.lane() == 0) {
      args_.arrivals[number] = tag;
      args_.taken[step.pe] = queue.taken();
    }
    port_.sync_block();
    return true;
  }

  GpuPort& port_;
  const StepsArgs& args_;
  GpuVerbs<kCounts> own_;
};

template <bool kCounts>
__global__ void __launch_bounds__(256, 1)
    steps(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ StepsArgs args) {
  GpuPort port(shared, nullptr);
  GpuInterpreter<kCounts>(port, args).run();
}

template <class K>
const void* address(K* kernel) {
  return reinterpret_cast<const void*>(kernel);
}

template <class T>
const void* reduce_of(ReduceBy by) {
  switch (by) {
    case ReduceBy::stores:
      return address(reduce<T, ReduceBy::stores>);
    case ReduceBy::packets:
      return address(reduce<T, ReduceBy::packets>);
    case ReduceBy::rings:
      return address(reduce<T, ReduceBy::rings>);
    default:
      return address(reduce<T, ReduceBy::words>);
  }
}

}  // namespace

const void* reduce_kernel(ReduceBy by, bool single) {
  return single ? reduce_of<float>(by) : reduce_of<double>(by);
}
const void* jacobi_kernel(bool counts, bool single) {
  if (single) return counts ? address(jacobi<float, true>) : address(jacobi<float, false>);
  return counts ? address(jacobi<double, true>) : address(jacobi<double, false>);
}
const void* jacobi_step_kernel(bool single) {
  return single ? address(jacobi_step<float>) : address(jacobi_step<double>);
}
const void* soak_kernel(bool counts) { return counts ? address(soak<true>) : address(soak<false>); }
const void* flood_kernel(bool counts) {
  return counts ? address(flood<true>) : address(flood<false>);
}
const void* steps_kernel(bool counts) {
  return counts ? address(steps<true>) : address(steps<false>);
}

}  // namespace cpufree::triggered
