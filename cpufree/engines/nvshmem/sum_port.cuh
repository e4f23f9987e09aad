// The port on GPUs that reach one another's memory, whose sums over PEs are NVSHMEM's: to compare
// with (device/library_reduce.hpp).
#pragma once

#include <cstddef>
#include <utility>

#include "cpufree/device/port.hpp"
#include "cpufree/engines/nvshmem/calls.cuh"

namespace cpufree::nvshmem {

template <class Base>
class SumPort : public Base {
 public:
  // `base`: what Base is made of.
  template <class... A>
  __device__ explicit SumPort(const LibraryBoard& board, A&&... base)
      : Base(std::forward<A>(base)...), board_(board) {}

  __device__ const LibraryBoard& library() const { return board_; }
  // Knows no bound: where a PE never calls it, the host has the team given up (CudaRunner::listen).
  __device__ void sum_over_pes(double* to, const double* from, int count) {
    nvshmem::sum(to, from, static_cast<std::size_t>(count));
  }

 private:
  const LibraryBoard& board_;
};

}  // namespace cpufree::nvshmem
