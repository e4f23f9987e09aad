// A kernel of one's own over the port between nodes, traced; tools/check_remote.sh compiles it.
#include "cpufree/device/channel.hpp"
#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/engines/remote/port.cuh"
#include "cpufree/trace/traced.hpp"

namespace cpufree {

struct ExchangeArgs {
  remote::Seat seat;
  ArrivalBoard board;
  double* vector;
  const TraceRing* rings;
};

// An exchange of a vector with PEs of the same node, and of others.
extern "C" __global__ void traced_exchange(const __grid_constant__ gpu_p2p::Shared shared,
                                           const __grid_constant__ ExchangeArgs args) {
  extern __shared__ double2 fast[];
  remote::Port<gpu_p2p::Port> port(args.seat, shared.leave, shared,
                                   reinterpret_cast<std::byte*>(fast));
  run_traced(port, args.rings, [&](auto& traced) {
    Arrivals arrivals(traced, args.board);
    arrivals.begin();
    arrivals.arrive_remote();
    arrivals.arrive_afar(args.vector);
    arrivals.arrive_local();
    if (arrivals.wait_local()) arrivals.wait_halo();
  });
  port.finish();
}

}  // namespace cpufree
