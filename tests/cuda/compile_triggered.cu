// Triggered operations as device code: the verbs of blocks, a block as the NIC, all-reduces of
// vectors and Jacobi iterations. Compiled, and no more.
#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/triggered/device/packet_allreduce.hpp"
#include "cpufree/triggered/device/trigger_nic.hpp"
#include "cpufree/triggered/device/triggered_jacobi.hpp"

namespace triggered_check {

using namespace cpufree;
using GpuPort = gpu_p2p::Port;

struct Mover {
  static constexpr bool signals = false;
  __device__ void put(GpuPort& port, std::byte* to, int pe, const std::byte* from,
                      std::uint64_t bytes) {
    for (std::uint64_t k = 0; k < bytes; k += sizeof(float))
      port.put(reinterpret_cast<float*>(to + k), pe, *reinterpret_cast<const float*>(from + k));
  }
  __device__ void get(GpuPort& port, std::byte* to, int pe, std::byte* from, std::uint64_t bytes) {
    for (std::uint64_t k = 0; k < bytes; k += sizeof(float))
      *reinterpret_cast<float*>(to + k) = *port.peer(reinterpret_cast<float*>(from + k), pe);
  }
  __device__ void fired(TriggerTag, const TriggerFields&) {}
};

struct Args {
  TriggerBoard board;
  TriggerTable table;
  TriggerNic<GpuPort, Mover>::Memory memory;
};

__global__ void nic(const __grid_constant__ gpu_p2p::Shared shared, Args args) {
  GpuPort port(shared, nullptr);
  Mover mover;
  TriggerNic<GpuPort, Mover>(port, args.board, args.table, args.memory, mover).run();
}

__global__ void verbs(const __grid_constant__ gpu_p2p::Shared shared, TriggerBoard board) {
  GpuPort port(shared, nullptr);
  Triggers<GpuPort> triggers(port, board, port.pe());
  TriggerFields fields;
  fields.given = TriggerFields::target;
  TriggerTag tag;
  if (triggers.trigger(TriggerGrain::item, {0, 0}, port.lanes()) &&
      triggers.trigger({1, 0}, fields) && triggers.wait_done({1, 0}) &&
      triggers.wait_signal(0, 0, 1) && TriggerQueue<GpuPort>(port, board, 1).next(tag))
    triggers.end();
}

template <class T>
__global__ void sum(const __grid_constant__ gpu_p2p::Shared shared, TriggerBoard board,
                    VectorReduceArgs<T> args) {
  GpuPort port(shared, nullptr);
  Triggers<GpuPort> triggers(port, board, port.pe());
  TriggerTransport<GpuPort> by_triggers(triggers, 0, 0);
  StoreTransport<GpuPort> by_stores(port, board.signals);
  VectorAllReduce<GpuPort, T, TriggerTransport<GpuPort>>(port, by_triggers, args).sum();
  VectorAllReduce<GpuPort, T, StoreTransport<GpuPort>>(port, by_stores, args, 1).sum();
  using Packets = typename ValuePacket<T>::Type;
  const PacketReduceArgs<T> packets{
      {ReduceWay::packets, args.schedule.pes, args.schedule.blocks, args.schedule.count},
      args.values,
      reinterpret_cast<Packets*>(args.inbox)};
  PacketAllReduce<GpuPort, T>(port, packets).sum();
}

template <class T>
__global__ void jacobi(const __grid_constant__ gpu_p2p::Shared shared, TriggerBoard board,
                       TriggeredJacobiArgs<T> args) {
  GpuPort port(shared, nullptr);
  Triggers<GpuPort> triggers(port, board, port.pe());
  TriggeredJacobi<GpuPort, T>(port, board, triggers, args).run();
}

template __global__ void sum<float>(const __grid_constant__ gpu_p2p::Shared, TriggerBoard,
                                    VectorReduceArgs<float>);
template __global__ void sum<double>(const __grid_constant__ gpu_p2p::Shared, TriggerBoard,
                                     VectorReduceArgs<double>);
template __global__ void jacobi<float>(const __grid_constant__ gpu_p2p::Shared, TriggerBoard,
                                       TriggeredJacobiArgs<float>);
template __global__ void jacobi<double>(const __grid_constant__ gpu_p2p::Shared, TriggerBoard,
                                        TriggeredJacobiArgs<double>);

}  // namespace triggered_check
