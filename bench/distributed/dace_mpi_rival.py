"""The distributed Jacobi of dace_distributed.py, driven by the host, a process for each GPU.

Usage: mpirun -np RANKS python bench/distributed/dace_mpi_rival.py CASE, which gpu_dace.py does

It does what DaCe's generator makes of the program where MPI does not reach the memory of GPUs, as
the thesis describes it (section 5.2): in each update the boundary is copied to the host, four
messages are begun and awaited, what has arrived is copied back, a kernel is launched, and the
stream is awaited. Written by hand, with CuPy: DaCe is not needed.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/python/support/dace"))

import numpy as np
from dace_distributed import points_of
from dace_grids import jacobi_2d_of

KERNEL = r"""
extern "C" __global__ void update(const double* a, double* b, long long rows, long long columns,
                                  long long i0, long long i1, long long j0, long long j1) {
  const long long j = j0 + blockIdx.x * (long long)blockDim.x + threadIdx.x;
  const long long i = i0 + blockIdx.y * (long long)blockDim.y + threadIdx.y;
  if (i >= i1 || j >= j1) return;
  const long long k = i * columns + j;
  b[k] = 0.2 * ((((a[k] + a[k - 1]) + a[k + 1]) + a[k + columns]) + a[k - columns]);
}
"""
REPEATS = 5


class Rank:
    """One rank's arrays on its GPU, and its buffers on the host."""

    def __init__(self, cupy: Any, mpi: Any, shape: tuple[int, int]) -> None:
        self.cupy, self.mpi, self.comm = cupy, mpi, mpi.COMM_WORLD
        rank, size = self.comm.Get_rank(), self.comm.Get_size()
        given = jacobi_2d_of(shape, 2)(rank, size)
        self.arrays = [cupy.asarray(given[n]) for n in ("lA", "lB")]
        self.peers = [given[n] for n in ("nn", "ns", "nw", "ne")]
        self.bounds = (
            1 + given["noff"], shape[0] + 1 - given["soff"],
            1 + given["woff"], shape[1] + 1 - given["eoff"],
        )  # fmt: skip
        self.update = cupy.RawKernel(KERNEL, "update", options=("-fmad=false",))
        pinned = cupy.cuda.alloc_pinned_memory
        lengths = [shape[1], shape[1], shape[0], shape[0]]
        self.out = [np.frombuffer(pinned(8 * n), np.float64, n) for n in lengths]
        self.into = [np.frombuffer(pinned(8 * n), np.float64, n) for n in lengths]

    def edges(self, u: Any) -> list[tuple[Any, Any]]:
        """Return what is sent and where it arrives, for each neighbour."""
        c = slice(1, -1)
        return [(u[1, c], u[0, c]), (u[-2, c], u[-1, c]), (u[c, 1], u[c, 0]), (u[c, -2], u[c, -1])]

    def half(self, a: Any, b: Any) -> None:
        """Exchange the boundary of `a`, then compute `b`."""
        stream = self.cupy.cuda.get_current_stream()
        live = [k for k, peer in enumerate(self.peers) if peer >= 0]
        edges = self.edges(a)
        for k in live:
            self.cupy.ascontiguousarray(edges[k][0]).get(out=self.out[k], blocking=False)
        stream.synchronize()
        back = (1, 0, 3, 2)
        requests = [self.comm.Isend(self.out[k], self.peers[k], k) for k in live]
        requests += [self.comm.Irecv(self.into[k], self.peers[k], back[k]) for k in live]
        self.mpi.Request.Waitall(requests)
        for k in live:
            edges[k][1][:] = self.cupy.asarray(self.into[k])
        i0, i1, j0, j1 = self.bounds
        grid = (-(-(j1 - j0) // 64), -(-(i1 - i0) // 8))
        rows, columns = a.shape
        self.update(grid, (64, 8), (a, b, *map(int, (rows, columns, i0, i1, j0, j1))))
        stream.synchronize()

    def seconds(self, steps: int) -> float:
        """Return the seconds of N steps."""
        a, b = self.arrays
        self.comm.Barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            self.half(a, b)
            self.half(b, a)
        self.comm.Barrier()
        return time.perf_counter() - begin


def main() -> None:
    """Measure a step of a case; rank 0 prints the answer."""
    cupy: Any = importlib.import_module("cupy")
    MPI: Any = importlib.import_module("mpi4py.MPI")
    comm = MPI.COMM_WORLD
    cupy.cuda.Device(comm.Get_rank() % cupy.cuda.runtime.getDeviceCount()).use()
    _, ranks, shape = points_of(sys.argv[1])
    assert comm.Get_size() == ranks
    rank = Rank(cupy, MPI, shape)
    rank.seconds(20)
    steps = 200 if shape[0] < 2048 else 50
    seconds = statistics.median(rank.seconds(steps) / steps for _ in range(REPEATS))
    if comm.Get_rank() == 0:
        print(json.dumps({"seconds": seconds, "steps": steps}), flush=True)


if __name__ == "__main__":
    main()
