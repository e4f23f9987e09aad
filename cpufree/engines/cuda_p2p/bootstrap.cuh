// Which GPUs there are, and whether they reach one another's memory.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "cpufree/engines/cuda_p2p/memory.cuh"

namespace cpufree::cuda_p2p {

// Lets every device address every other one's memory. Throws Unsupported that names the first pair
// for which that, or atomics over the link, is impossible.
inline void connect(const std::vector<int>& devices) {
  for (const int from : devices) {
    const OnDevice here(from);
    for (const int to : devices) {
      if (from == to) continue;
      int reaches = 0;
      int atomics = 0;
      check(cudaDeviceCanAccessPeer(&reaches, from, to), "cudaDeviceCanAccessPeer");
      check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to),
            "cudaDeviceGetP2PAttribute");
      if (reaches == 0 || atomics == 0)
        throw Unsupported("GPU " + std::to_string(from) + " cannot " +
                          (reaches == 0 ? "address the memory of" : "do native atomics on") +
                          " GPU " + std::to_string(to) +
                          "; use one of them, or GPUs that are linked "
                          "by NVLink (nvidia-smi topo -m shows which are)");
      const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled)
        static_cast<void>(cudaGetLastError());
      else
        check(status, "cudaDeviceEnablePeerAccess");
    }
  }
}

}  // namespace cpufree::cuda_p2p
