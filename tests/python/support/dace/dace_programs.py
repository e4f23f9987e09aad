"""Distributed programs of DaCe: written after the thesis and the samples, on local arrays."""

from __future__ import annotations

import dace
import numpy as np

lN, lNx, lNy, lNz = (dace.symbol(n, dace.int64) for n in ("lN", "lNx", "lNy", "lNz"))
rank, size = (dace.symbol(n, dace.int32) for n in ("rank", "size"))
nn, ns, nw, ne = (dace.symbol(n, dace.int32) for n in ("nn", "ns", "nw", "ne"))
noff, soff, woff, eoff = (dace.symbol(n, dace.int32) for n in ("noff", "soff", "woff", "eoff"))
n0l, n0h, n1l, n1h, n2l, n2h = (
    dace.symbol(n, dace.int32) for n in ("n0l", "n0h", "n1l", "n1h", "n2l", "n2h")
)
o0l, o0h, o1l, o1h, o2l, o2h = (
    dace.symbol(n, dace.int32) for n in ("o0l", "o0h", "o1l", "o1h", "o2l", "o2h")
)
MPI_Request = dace.opaque("MPI_Request")


@dace.program
def jacobi_1d(TSTEPS: dace.int64, lA: dace.float64[lN + 2], lB: dace.float64[lN + 2]):
    for t in range(1, TSTEPS):
        if rank > 0:
            dace.comm.Recv(lA[0], rank - 1, t)
            dace.comm.Send(lA[1], rank - 1, t)
        if rank < size - 1:
            dace.comm.Send(lA[-2], rank + 1, t)
            dace.comm.Recv(lA[-1], rank + 1, t)
        if rank == 0:
            lB[2:-1] = 0.33333 * (lA[1:-2] + lA[2:-1] + lA[3:])
        elif rank == size - 1:
            lB[1:-2] = 0.33333 * (lA[:-3] + lA[1:-2] + lA[2:-1])
        else:
            lB[1:-1] = 0.33333 * (lA[:-2] + lA[1:-1] + lA[2:])
        if rank > 0:
            dace.comm.Recv(lB[0], rank - 1, t)
            dace.comm.Send(lB[1], rank - 1, t)
        if rank < size - 1:
            dace.comm.Send(lB[-2], rank + 1, t)
            dace.comm.Recv(lB[-1], rank + 1, t)
        if rank == 0:
            lA[2:-1] = 0.33333 * (lB[1:-2] + lB[2:-1] + lB[3:])
        elif rank == size - 1:
            lA[1:-2] = 0.33333 * (lB[:-3] + lB[1:-2] + lB[2:-1])
        else:
            lA[1:-1] = 0.33333 * (lB[:-2] + lB[1:-1] + lB[2:])


@dace.program
def jacobi_2d(
    TSTEPS: dace.int64, lA: dace.float64[lNx + 2, lNy + 2], lB: dace.float64[lNx + 2, lNy + 2]
):
    req = np.empty((8,), dtype=MPI_Request)
    for _t in range(1, TSTEPS):
        dace.comm.Isend(lA[1, 1:-1], nn, 0, req[0])
        dace.comm.Isend(lA[-2, 1:-1], ns, 1, req[1])
        dace.comm.Isend(lA[1:-1, 1], nw, 2, req[2])
        dace.comm.Isend(lA[1:-1, -2], ne, 3, req[3])
        dace.comm.Irecv(lA[0, 1:-1], nn, 1, req[4])
        dace.comm.Irecv(lA[-1, 1:-1], ns, 0, req[5])
        dace.comm.Irecv(lA[1:-1, 0], nw, 3, req[6])
        dace.comm.Irecv(lA[1:-1, -1], ne, 2, req[7])
        dace.comm.Waitall(req)
        lB[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff] = 0.2 * (
            lA[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff]
            + lA[1 + noff : lNx + 1 - soff, woff : lNy - eoff]
            + lA[1 + noff : lNx + 1 - soff, 2 + woff : lNy + 2 - eoff]
            + lA[2 + noff : lNx + 2 - soff, 1 + woff : lNy + 1 - eoff]
            + lA[noff : lNx - soff, 1 + woff : lNy + 1 - eoff]
        )
        dace.comm.Isend(lB[1, 1:-1], nn, 0, req[0])
        dace.comm.Isend(lB[-2, 1:-1], ns, 1, req[1])
        dace.comm.Isend(lB[1:-1, 1], nw, 2, req[2])
        dace.comm.Isend(lB[1:-1, -2], ne, 3, req[3])
        dace.comm.Irecv(lB[0, 1:-1], nn, 1, req[4])
        dace.comm.Irecv(lB[-1, 1:-1], ns, 0, req[5])
        dace.comm.Irecv(lB[1:-1, 0], nw, 3, req[6])
        dace.comm.Irecv(lB[1:-1, -1], ne, 2, req[7])
        dace.comm.Waitall(req)
        lA[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff] = 0.2 * (
            lB[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff]
            + lB[1 + noff : lNx + 1 - soff, woff : lNy - eoff]
            + lB[1 + noff : lNx + 1 - soff, 2 + woff : lNy + 2 - eoff]
            + lB[2 + noff : lNx + 2 - soff, 1 + woff : lNy + 1 - eoff]
            + lB[noff : lNx - soff, 1 + woff : lNy + 1 - eoff]
        )


@dace.program
def heat_3d(
    TSTEPS: dace.int64,
    lA: dace.float64[lNx + 2, lNy + 2, lNz + 2],
    lB: dace.float64[lNx + 2, lNy + 2, lNz + 2],
):
    req = np.empty((12,), dtype=MPI_Request)
    for _t in range(1, TSTEPS):
        dace.comm.Isend(lA[1, 1:-1, 1:-1], n0l, 0, req[0])
        dace.comm.Isend(lA[-2, 1:-1, 1:-1], n0h, 1, req[1])
        dace.comm.Isend(lA[1:-1, 1, 1:-1], n1l, 2, req[2])
        dace.comm.Isend(lA[1:-1, -2, 1:-1], n1h, 3, req[3])
        dace.comm.Isend(lA[1:-1, 1:-1, 1], n2l, 4, req[4])
        dace.comm.Isend(lA[1:-1, 1:-1, -2], n2h, 5, req[5])
        dace.comm.Irecv(lA[0, 1:-1, 1:-1], n0l, 1, req[6])
        dace.comm.Irecv(lA[-1, 1:-1, 1:-1], n0h, 0, req[7])
        dace.comm.Irecv(lA[1:-1, 0, 1:-1], n1l, 3, req[8])
        dace.comm.Irecv(lA[1:-1, -1, 1:-1], n1h, 2, req[9])
        dace.comm.Irecv(lA[1:-1, 1:-1, 0], n2l, 5, req[10])
        dace.comm.Irecv(lA[1:-1, 1:-1, -1], n2h, 4, req[11])
        dace.comm.Waitall(req)
        for i, j, k in dace.map[
            1 + o0l : lNx + 1 - o0h, 1 + o1l : lNy + 1 - o1h, 1 + o2l : lNz + 1 - o2h
        ]:
            lB[i, j, k] = (
                0.125 * (lA[i + 1, j, k] - 2.0 * lA[i, j, k] + lA[i - 1, j, k])
                + 0.125 * (lA[i, j + 1, k] - 2.0 * lA[i, j, k] + lA[i, j - 1, k])
                + 0.125 * (lA[i, j, k + 1] - 2.0 * lA[i, j, k] + lA[i, j, k - 1])
                + lA[i, j, k]
            )
        dace.comm.Isend(lB[1, 1:-1, 1:-1], n0l, 0, req[0])
        dace.comm.Isend(lB[-2, 1:-1, 1:-1], n0h, 1, req[1])
        dace.comm.Isend(lB[1:-1, 1, 1:-1], n1l, 2, req[2])
        dace.comm.Isend(lB[1:-1, -2, 1:-1], n1h, 3, req[3])
        dace.comm.Isend(lB[1:-1, 1:-1, 1], n2l, 4, req[4])
        dace.comm.Isend(lB[1:-1, 1:-1, -2], n2h, 5, req[5])
        dace.comm.Irecv(lB[0, 1:-1, 1:-1], n0l, 1, req[6])
        dace.comm.Irecv(lB[-1, 1:-1, 1:-1], n0h, 0, req[7])
        dace.comm.Irecv(lB[1:-1, 0, 1:-1], n1l, 3, req[8])
        dace.comm.Irecv(lB[1:-1, -1, 1:-1], n1h, 2, req[9])
        dace.comm.Irecv(lB[1:-1, 1:-1, 0], n2l, 5, req[10])
        dace.comm.Irecv(lB[1:-1, 1:-1, -1], n2h, 4, req[11])
        dace.comm.Waitall(req)
        for i, j, k in dace.map[
            1 + o0l : lNx + 1 - o0h, 1 + o1l : lNy + 1 - o1h, 1 + o2l : lNz + 1 - o2h
        ]:
            lA[i, j, k] = (
                0.125 * (lB[i + 1, j, k] - 2.0 * lB[i, j, k] + lB[i - 1, j, k])
                + 0.125 * (lB[i, j + 1, k] - 2.0 * lB[i, j, k] + lB[i, j - 1, k])
                + 0.125 * (lB[i, j, k + 1] - 2.0 * lB[i, j, k] + lB[i, j, k - 1])
                + lB[i, j, k]
            )


PROGRAMS = {"jacobi_1d": jacobi_1d, "jacobi_2d": jacobi_2d, "heat_3d": heat_3d}


@dace.program
def jacobi_2d_signals(
    TSTEPS: dace.int64, lA: dace.float64[lNx + 2, lNy + 2], lB: dace.float64[lNx + 2, lNy + 2]
):
    # A neighbour's ghosts of lA are read when its rows of lB come, and the other way round: so no
    # put overwrites what is still to be read.
    flags = np.zeros((8,), dtype=np.int64)
    for t in range(1, TSTEPS):
        dace.comm.PutmemSignal(lA[-1, 1:-1], lA[1, 1:-1], flags[0], t, nn)
        dace.comm.PutmemSignal(lA[0, 1:-1], lA[-2, 1:-1], flags[1], t, ns)
        dace.comm.PutmemSignal(lA[1:-1, -1], lA[1:-1, 1], flags[2], t, nw)
        dace.comm.PutmemSignal(lA[1:-1, 0], lA[1:-1, -2], flags[3], t, ne)
        if ns >= 0:
            dace.comm.SignalWait(flags[0], t)
        if nn >= 0:
            dace.comm.SignalWait(flags[1], t)
        if ne >= 0:
            dace.comm.SignalWait(flags[2], t)
        if nw >= 0:
            dace.comm.SignalWait(flags[3], t)
        lB[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff] = 0.2 * (
            lA[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff]
            + lA[1 + noff : lNx + 1 - soff, woff : lNy - eoff]
            + lA[1 + noff : lNx + 1 - soff, 2 + woff : lNy + 2 - eoff]
            + lA[2 + noff : lNx + 2 - soff, 1 + woff : lNy + 1 - eoff]
            + lA[noff : lNx - soff, 1 + woff : lNy + 1 - eoff]
        )
        dace.comm.PutmemSignal(lB[-1, 1:-1], lB[1, 1:-1], flags[4], t, nn)
        dace.comm.PutmemSignal(lB[0, 1:-1], lB[-2, 1:-1], flags[5], t, ns)
        dace.comm.Putmem(lB[1:-1, -1], lB[1:-1, 1], nw)
        dace.comm.SignalOp(flags[6], t, nw)
        dace.comm.Iput(lB[1:-1, 0], lB[1:-1, -2], ne)
        dace.comm.Quiet()
        dace.comm.SignalOp(flags[7], t, ne)
        if ns >= 0:
            dace.comm.SignalWait(flags[4], t)
        if nn >= 0:
            dace.comm.SignalWait(flags[5], t)
        if ne >= 0:
            dace.comm.SignalWait(flags[6], t)
        if nw >= 0:
            dace.comm.SignalWait(flags[7], t)
        lA[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff] = 0.2 * (
            lB[1 + noff : lNx + 1 - soff, 1 + woff : lNy + 1 - eoff]
            + lB[1 + noff : lNx + 1 - soff, woff : lNy - eoff]
            + lB[1 + noff : lNx + 1 - soff, 2 + woff : lNy + 2 - eoff]
            + lB[2 + noff : lNx + 2 - soff, 1 + woff : lNy + 1 - eoff]
            + lB[noff : lNx - soff, 1 + woff : lNy + 1 - eoff]
        )


@dace.program
def fetches(src: dace.float64[lN], dst: dace.float64[lN], one: dace.float64[4], TSTEPS: dace.int64):
    flags = np.zeros((2,), dtype=np.int64)
    total = np.zeros((lN,), dtype=np.float64)
    for t in range(1, TSTEPS):
        src[:] = src + 1.0
        dace.comm.SignalOp(flags[0], t, (rank + size - 1) % size)
        dace.comm.SignalWait(flags[0], t)
        dace.comm.Getmem(dst[:], src[:], (rank + 1) % size)
        total[:] = total + dst
        dace.comm.P(one[1], 10.0 * t + rank, (rank + 1) % size)
        dace.comm.SignalOp(flags[1], t, (rank + 1) % size)
        dace.comm.SignalWait(flags[1], t)
    dst[:] = total


PROGRAMS["jacobi_2d_signals"] = jacobi_2d_signals


@dace.program
def halo_columns(
    TSTEPS: dace.int64, lA: dace.float64[lNx + 2, lNy + 2], lB: dace.float64[lNx + 2, lNy + 2]
):
    # Messages alone: columns of both arrays in turn, whose points lie a row apart.
    req = np.empty((4,), dtype=MPI_Request)
    for _t in range(1, TSTEPS):
        dace.comm.Isend(lA[1:-1, 1], nw, 0, req[0])
        dace.comm.Isend(lA[1:-1, -2], ne, 1, req[1])
        dace.comm.Irecv(lA[1:-1, 0], nw, 1, req[2])
        dace.comm.Irecv(lA[1:-1, -1], ne, 0, req[3])
        dace.comm.Waitall(req)
        dace.comm.Isend(lB[1:-1, 1], nw, 0, req[0])
        dace.comm.Isend(lB[1:-1, -2], ne, 1, req[1])
        dace.comm.Irecv(lB[1:-1, 0], nw, 1, req[2])
        dace.comm.Irecv(lB[1:-1, -1], ne, 0, req[3])
        dace.comm.Waitall(req)


PROGRAMS["halo_columns"] = halo_columns


@dace.program
def ring_gemm(
    lA: dace.float64[lNx, lNx * size], lB: dace.float64[lNx, lNy], lC: dace.float64[lNx, lNy]
):
    # Rows of A, B and C are divided; panels of B go round the ring of ranks, one in each turn.
    req = np.empty((2,), dtype=MPI_Request)
    panel = np.zeros((lNx, lNy), dtype=np.float64)
    panel[:] = lB
    for k in range(size):
        coming = np.zeros((lNx, lNy), dtype=np.float64)
        dace.comm.Isend(panel, (rank + size - 1) % size, 0, req[0])
        dace.comm.Irecv(coming, (rank + 1) % size, 0, req[1])
        first = ((rank + k) % size) * lNx
        lC[:] = lC + lA[:, first : first + lNx] @ panel
        dace.comm.Waitall(req)
        panel[:] = coming


PROGRAMS["ring_gemm"] = ring_gemm


@dace.program
def collect(
    a: dace.float64[lNx], b: dace.float64[lNx], columns: dace.float64[lNx, lNy],
    out: dace.float64[lNx], steps: dace.int64,
):  # fmt: skip
    flags = np.zeros((1,), dtype=np.int64)
    column = np.zeros((lNx,), dtype=np.float64)
    for t in range(1, steps + 1):
        dace.comm.Bcast(b, root=size - 1)
        out[:] = out + b * t
        dace.comm.Iget(column[:], columns[:, 2], (rank + 1) % size)
        dace.comm.SignalOp(flags[0], t, (rank + 1) % size)
        dace.comm.SignalWait(flags[0], t)
        a[:] = 0.5 * a + b + column
        columns[:, 2] = columns[:, 2] + 1.0


PROGRAMS["collect"] = collect
