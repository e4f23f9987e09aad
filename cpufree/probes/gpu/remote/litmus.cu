// The litmus test as CUDA launches it, linked with the calls of a library (cmake/remote.cmake).
#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/engines/remote/port.cuh"
#include "cpufree/probes/gpu/litmus_args.hpp"

namespace cpufree {

extern "C" __global__ void __launch_bounds__(kLitmusThreads, 1)
    cpufree_litmus(const __grid_constant__ gpu_p2p::Shared shared,
                   const __grid_constant__ RemoteLitmusArgs args) {
  extern __shared__ double2 fast[];
  remote::Port<gpu_p2p::Port> port(args.seat, shared.leave, shared,
                                   reinterpret_cast<std::byte*>(fast));
  litmus_kernel(port, args.litmus);
  port.finish();
}

}  // namespace cpufree
