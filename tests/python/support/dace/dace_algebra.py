"""Kernels of NPBench's list that are linear algebra and the like, rewritten after the textbooks.

Those of dace_kernels.py are on grids; dace_algebra_cases.py says which of these run.
"""

from __future__ import annotations

import dace
import numpy as np

I, J, K, N, M = (dace.symbol(n, dace.int64) for n in "IJKNM")  # noqa: E741
C64 = dace.complex128


@dace.program
def gemm(A: dace.float64[N, K], B: dace.float64[K, M], C: dace.float64[N, M]):
    C[:] = 1.5 * A @ B + 1.2 * C


@dace.program
def gesummv(A: dace.float64[N, N], B: dace.float64[N, N], x: dace.float64[N], y: dace.float64[N]):
    y[:] = 1.5 * A @ x + 1.2 * B @ x


@dace.program
def k2mm(
    A: dace.float64[N, K], B: dace.float64[K, J], C: dace.float64[J, M], D: dace.float64[N, M]
):
    D[:] = 1.5 * A @ B @ C + 1.2 * D


@dace.program
def k3mm(
    A: dace.float64[N, K], B: dace.float64[K, J], C: dace.float64[J, I], D: dace.float64[I, M],
    out: dace.float64[N, M],
):  # fmt: skip
    out[:] = (A @ B) @ (C @ D)


@dace.program
def atax(A: dace.float64[N, M], x: dace.float64[M], y: dace.float64[M]):
    y[:] = (A @ x) @ A


@dace.program
def bicg(
    A: dace.float64[N, M], p: dace.float64[M], r: dace.float64[N], q: dace.float64[N],
    s: dace.float64[M],
):  # fmt: skip
    s[:] = r @ A
    q[:] = A @ p


@dace.program
def mvt(
    A: dace.float64[N, N], x1: dace.float64[N], x2: dace.float64[N], y1: dace.float64[N],
    y2: dace.float64[N],
):  # fmt: skip
    x1[:] = x1 + A @ y1
    x2[:] = x2 + y2 @ A


@dace.program
def gemver(
    A: dace.float64[N, N], u1: dace.float64[N], v1: dace.float64[N], u2: dace.float64[N],
    v2: dace.float64[N], w: dace.float64[N], x: dace.float64[N], y: dace.float64[N],
    z: dace.float64[N],
):  # fmt: skip
    A[:] = A + np.reshape(u1, (N, 1)) * v1 + np.reshape(u2, (N, 1)) * v2
    x[:] = x + 1.2 * (y @ A) + z
    w[:] = w + 1.5 * (A @ x)


@dace.program
def doitgen(A: dace.float64[I, J, K], C4: dace.float64[K, K]):
    A[:] = np.reshape(np.reshape(A, (I * J, K)) @ C4, (I, J, K))


@dace.program
def covariance(data: dace.float64[N, M], cov: dace.float64[M, M]):
    mean = np.sum(data, axis=0) / N
    centred = data - mean
    cov[:] = np.transpose(centred) @ centred / (N - 1.0)


@dace.program
def correlation(data: dace.float64[N, M], corr: dace.float64[M, M]):
    mean = np.sum(data, axis=0) / N
    centred = data - mean
    deviation = np.sqrt(np.sum(centred * centred, axis=0) / N)
    scaled = centred / (np.sqrt(1.0 * N) * deviation)
    corr[:] = np.transpose(scaled) @ scaled


@dace.program
def softmax(A: dace.float64[I, J, N, M], out: dace.float64[I, J, N, M]):
    top = np.max(A, axis=3)
    e = np.exp(A - np.reshape(top, (I, J, N, 1)))
    total = np.sum(e, axis=3)
    out[:] = e / np.reshape(total, (I, J, N, 1))


@dace.program
def mlp(
    x: dace.float64[N, I], w1: dace.float64[I, J], b1: dace.float64[J], w2: dace.float64[J, K],
    b2: dace.float64[K], out: dace.float64[N, K],
):  # fmt: skip
    hidden = np.maximum(x @ w1 + b1, 0.0)
    last = hidden @ w2 + b2
    top = np.max(last, axis=1)
    e = np.exp(last - np.reshape(top, (N, 1)))
    total = np.sum(e, axis=1)
    out[:] = e / np.reshape(total, (N, 1))


@dace.program
def azimint_naive(data: dace.float64[N], radius: dace.float64[N], out: dace.float64[16]):
    top = np.max(radius)
    ones = np.ones((N,), dtype=np.float64)
    zeros = np.zeros((N,), dtype=np.float64)
    for k in range(16):
        below = np.where(radius < top * (k + 1) / 16, ones, zeros)
        inside = np.where(radius >= top * k / 16, below, zeros)
        out[k] = np.sum(data * inside) / np.sum(inside)


@dace.program
def nbody(
    steps: dace.int64, mass: dace.float64[N], x: dace.float64[N], y: dace.float64[N],
    vx: dace.float64[N], vy: dace.float64[N],
):  # fmt: skip
    ax = np.zeros((N,), dtype=np.float64)
    ay = np.zeros((N,), dtype=np.float64)
    for _t in range(steps):
        dx = np.reshape(x, (1, N)) - np.reshape(x, (N, 1))
        dy = np.reshape(y, (1, N)) - np.reshape(y, (N, 1))
        r = (dx * dx + dy * dy + 0.01) ** 1.5
        ax[:] = (dx / r) @ mass
        ay[:] = (dy / r) @ mass
        vx[:] = vx + 0.01 * ax
        vy[:] = vy + 0.01 * ay
        x[:] = x + 0.01 * vx
        y[:] = y + 0.01 * vy


@dace.program
def mandelbrot1(
    x: dace.float64[M], y: dace.float64[N], zr: dace.float64[N, M], zi: dace.float64[N, M],
    count: dace.int64[N, M],
):  # fmt: skip
    for _n in range(12):
        inside = zr * zr + zi * zi < 4.0
        count[:] = np.where(inside, count + 1, count)
        real = np.where(inside, zr * zr - zi * zi + x, zr)
        zi[:] = np.where(inside, 2.0 * zr * zi + np.reshape(y, (N, 1)), zi)
        zr[:] = real


@dace.program
def conv2d(
    x: dace.float64[I, N, M, J], w: dace.float64[3, 3, J, K], b: dace.float64[K],
    out: dace.float64[I, N - 2, M - 2, K],
):  # fmt: skip
    for n, i, j, k in dace.map[0:I, 0 : N - 2, 0 : M - 2, 0:K]:
        out[n, i, j, k] = b[k]
    for n, i, j, k, p, q, c in dace.map[0:I, 0 : N - 2, 0 : M - 2, 0:K, 0:3, 0:3, 0:J]:
        out[n, i, j, k] += x[n, i + p, j + q, c] * w[p, q, c, k]


@dace.program
def scattering(G: dace.float64[I, J, N, N], D: dace.float64[I, J], out: dace.float64[I, J, N, N]):
    for e, k, a, b, c in dace.map[0:I, 0:J, 0:N, 0:N, 0:N]:
        out[e, k, a, b] += G[e, k, a, c] * D[e, k] * G[e, k, c, b]


@dace.program
def syrk(A: dace.float64[N, K], C: dace.float64[N, N]):
    for i in range(N):
        C[i, : i + 1] = 1.2 * C[i, : i + 1]
        for k in range(K):
            C[i, : i + 1] += 1.5 * A[i, k] * A[: i + 1, k]


@dace.program
def syr2k(A: dace.float64[N, K], B: dace.float64[N, K], C: dace.float64[N, N]):
    for i in range(N):
        C[i, : i + 1] = 1.2 * C[i, : i + 1]
        for k in range(K):
            C[i, : i + 1] += A[: i + 1, k] * 1.5 * B[i, k] + B[: i + 1, k] * 1.5 * A[i, k]


@dace.program
def symm(A: dace.float64[N, N], B: dace.float64[N, M], C: dace.float64[N, M]):
    for i in range(N):
        for j in range(M):
            C[:i, j] += 1.5 * B[i, j] * A[i, :i]
        C[i, :] = 1.2 * C[i, :] + 1.5 * A[i, i] * B[i, :]


@dace.program
def trmm(A: dace.float64[N, N], B: dace.float64[N, M]):
    for i in range(N):
        for j in range(M):
            B[i, j] += np.sum(A[i + 1 :, i] * B[i + 1 :, j])
    B[:] = 1.5 * B


@dace.program
def trisolv(L: dace.float64[N, N], x: dace.float64[N], b: dace.float64[N]):
    for i in range(N):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


@dace.program
def cholesky(A: dace.float64[N, N]):
    for i in range(N):
        for j in range(i):
            A[i, j] = (A[i, j] - np.sum(A[i, :j] * A[j, :j])) / A[j, j]
        A[i, i] = np.sqrt(A[i, i] - np.sum(A[i, :i] * A[i, :i]))


@dace.program
def lu(A: dace.float64[N, N]):
    for k in range(N - 1):
        A[k + 1 :, k] = A[k + 1 :, k] / A[k, k]
        for i in range(k + 1, N):
            A[i, k + 1 :] -= A[i, k] * A[k, k + 1 :]


@dace.program
def ludcmp(A: dace.float64[N, N], b: dace.float64[N], y: dace.float64[N]):
    for k in range(N - 1):
        A[k + 1 :, k] = A[k + 1 :, k] / A[k, k]
        for i in range(k + 1, N):
            A[i, k + 1 :] -= A[i, k] * A[k, k + 1 :]
    for i in range(N):
        y[i] = b[i] - np.sum(A[i, :i] * y[:i])


@dace.program
def durbin(r: dace.float64[N], y: dace.float64[N]):
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, N):
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + np.sum(r[:k] * y[:k])) / beta
        y[:k] = y[:k] + alpha * y[:k]
        y[k] = alpha


@dace.program
def gramschmidt(A: dace.float64[N, M], R: dace.float64[M, M], Q: dace.float64[N, M]):
    for k in range(M):
        R[k, k] = np.sqrt(np.sum(A[:, k] * A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, M):
            R[k, j] = np.sum(Q[:, k] * A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]


@dace.program
def adi(steps: dace.int64, u: dace.float64[N, N], v: dace.float64[N, N], p: dace.float64[N, N]):
    for _t in range(steps):
        for j in range(1, N - 1):
            p[1:-1, j] = 0.3 / (0.4 * p[1:-1, j - 1] + 1.0)
            v[j, 1:-1] = (u[1:-1, j - 1] + u[1:-1, j] + u[1:-1, j + 1]) * p[1:-1, j]
        u[1:-1, 1:-1] = v[1:-1, 1:-1]


@dace.program
def deriche(image: dace.float64[N, M], y: dace.float64[N, M]):
    y[:, 0] = 0.2 * image[:, 0]
    for j in range(1, M):
        y[:, j] = 0.2 * image[:, j] + 0.5 * y[:, j - 1]


@dace.program
def vadv(w: dace.float64[I, J, K], u: dace.float64[I, J, K], c: dace.float64[I, J, K]):
    for k in range(1, K):
        c[:, :, k] = w[:, :, k] / (1.0 + w[:, :, k] * c[:, :, k - 1])
        u[:, :, k] = u[:, :, k] - c[:, :, k] * u[:, :, k - 1]


@dace.program
def nussinov(seq: dace.int64[N], table: dace.int64[N, N]):
    for i in range(N - 2, -1, -1):
        for j in range(i + 1, N):
            table[i, j] = max(table[i + 1, j], table[i, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])


@dace.program
def spmv(rows: dace.int64[N + 1], columns: dace.int64[K], values: dace.float64[K],
         x: dace.float64[M], y: dace.float64[N]):  # fmt: skip
    for i in range(N):
        y[i] = values[rows[i] : rows[i + 1]] @ x[columns[rows[i] : rows[i + 1]]]


@dace.program
def crc16(data: dace.int64[N], out: dace.int64[1]):
    crc = dace.int64(0xFFFF)
    for k in range(N):
        b = data[k]
        for _bit in range(8):
            odd = (crc & 1) ^ (b & 1)
            crc = (crc >> 1) ^ (0x8408 * odd)
            b = b >> 1
    out[0] = crc


@dace.program
def azimint_hist(data: dace.float64[N], radius: dace.float64[N], out: dace.float64[16]):
    for k in dace.map[0:N]:
        place = dace.int64(radius[k] * 16)
        out[place] += data[k]


@dace.program
def mandelbrot2(z: C64[N, M], c: C64[N, M]):
    for _n in range(12):
        z[:] = z * z + c


@dace.program
def contour_integral(A: C64[N, N], x: C64[N, M], out: C64[N, M]):
    out[:] = A @ x


@dace.program
def stockham_fft(x: C64[N], y: C64[N]):
    y[:] = x


@dace.program
def lenet(
    x: dace.float64[I, N, M],
    w: dace.float64[3, 3],
    out: dace.float64[I, (N - 2) // 2, (M - 2) // 2],
):
    c = np.zeros((I, N - 2, M - 2), dtype=np.float64)
    for p in range(3):
        for q in range(3):
            c[:] = c + w[p, q] * x[:, p : N - 2 + p, q : M - 2 + q]
    for n, i, j in dace.map[0:I, 0 : (N - 2) // 2, 0 : (M - 2) // 2]:
        out[n, i, j] = max(
            max(c[n, 2 * i, 2 * j], c[n, 2 * i + 1, 2 * j]),
            max(c[n, 2 * i, 2 * j + 1], c[n, 2 * i + 1, 2 * j + 1]),
        )


@dace.program
def resnet(x: dace.float64[I, N, M, J], w: dace.float64[J, J], out: dace.float64[I, N, M, J]):
    flat = np.reshape(x, (I * N * M, J)) @ w
    mean = np.sum(flat, axis=0) / (1.0 * I * N * M)
    centred = flat - mean
    spread = np.sum(centred * centred, axis=0) / (1.0 * I * N * M)
    made = centred / np.sqrt(spread + 1e-5)
    out[:] = np.maximum(np.reshape(made, (I, N, M, J)) + x, 0.0)
