"""Constructs of programs of DaCe about rows, arrays of three axes, and tasklets."""

from __future__ import annotations

# Holes as in dace_random_odd.py.
ROWS = {
    "rows in loops": (
        "for t in range(N):\n    A[t, :] = x * u[t]",
        "for t in range(1, N):\n    A[t, :] = A[t - 1, :] + x",
        "for t in range(N):\n    u[t] = A[t, :] @ x",
        "for t in range(N):\n    u[t] = np.sum(A[t, :])",
        "for t in range(M):\n    x[t] = np.sum(A[t, :t])",
        "for t in range(M):\n    x[t] = np.max(A[t, t:])",
        "for t in range(M - 1, -1, -1):\n    x[t] = np.sum(A[t, :t])",
        "for t in range(M):\n    A[:, t] = A[:, t] - np.mean(A[:, t])",
        "for t in range({n}):\n    A[:, t] += A[:, t + 1]",
        "for t in range(N - {n}):\n    u[t:t + {n}] = v[t]",
    ),
    "points in loops": (
        "for i in range(N):\n    for j in range(M):\n        A[i, j] = B[i, j] * 2.0 + i",
        "for i in range(1, N):\n    u[i] = u[i - 1] + v[i]",
        "for i in range(N - 2, -1, -1):\n    u[i] -= u[i + 1]",
        "for i in range(M):\n    x[i] -= A[i, :i] @ x[:i]\n    x[i] = x[i] / 2.0",
        "for i in range(1, M):\n    for j in range(i):\n        A[i, j] = A[j, i]",
        "for i in range(1, M):\n    for j in range(i, M):\n        A[i, j] += B[j, i] * {s}",
        "for t in range({n}):\n    for i in range(1, N - 1):\n"
        "        u[i] = 0.5 * (u[i - 1] + u[i + 1])",
        "for t in range({n}):\n    w[t] = u[2]\n    u[:] = u * 0.5 + v[t]",
        "for t in range(N):\n    if u[t] > c:\n        break\n    v[t] = u[t]",
        "for i in range(N):\n    for j in range(M):\n        if A[i, j] > c:\n            break\n"
        "        A[i, j] = {s}",
        "a = 0.0\nfor t in range(N):\n    if v[t] < 0.0:\n        continue\n    a += v[t]\n"
        "u[0] = a",
        "for t in range(N):\n    u[t] = v[N - 1 - t]",
        "for t in range({n}):\n    for r in range({n}):\n        u[t] = u[t] + A[r, t]",
    ),
    "rows in maps": (
        "for i in dace.map[0:N]:\n    A[i, :] = x * u[i]",
        "for i in dace.map[0:N]:\n    u[i] = np.sum(A[i, :])",
        "for i in dace.map[0:N]:\n    A[i, 1:] = A[i, 1:] + B[i, :-1]",
        "for i in dace.map[0:N]:\n    u[i] = A[i, :] @ x",
        "for j in dace.map[0:M]:\n    A[:, j] = u * x[j]",
        "for i in dace.map[0:M]:\n    u[i] = np.sum(A[i, :i])",
    ),
    "loops in maps": (
        "for i in dace.map[0:N]:\n    for j in range(1, M):\n        A[i, j] += A[i, j - 1]",
        "for i in dace.map[0:N]:\n    for t in range({n}):\n        u[i] = u[i] * 0.5 + v[i]",
        "for j in dace.map[0:M]:\n    for i in range(N - 2, -1, -1):\n"
        "        A[i, j] -= A[i + 1, j]",
        "for i in dace.map[0:N]:\n    a = 0.0\n    for j in range(M):\n        if A[i, j] > a:\n"
        "            a = A[i, j]\n    u[i] = a",
        "for i in dace.map[0:N]:\n    a = u[i]\n    while a > 1.0:\n        a = a * 0.5\n"
        "    v[i] = a",
        "for i, j in dace.map[0:N, 0:M]:\n    a = 0.0\n    for l in range(M):\n"
        "        a += B[i, l] * A[l, j]\n    D[i, j] = a",
        "for i in dace.map[0:N]:\n    a = 0.0\n    for j in range(M):\n        if A[i, j] < c:\n"
        "            continue\n        a += A[i, j]\n    v[i] = a",
    ),
    "three axes": (
        "C[:, 1:, :] = C[:, :-1, :] * 0.5",
        "C[1:-1] = C[2:] + C[:-2]",
        "A[:] = C[:, :, 0]",
        "A[:] = np.sum(C, axis=2)",
        "u[:] = np.sum(C, axis=(1, 2))",
        "C[:, :, 1] = A",
        "for i, j, l in dace.map[0:N, 0:M, 0:3]:\n    C[i, j, l] = A[i, j] + l",
        "C[2, :, :] = C[1, :, :]",
        "A[1:, 1:] = C[:-1, 1:, 2] - C[1:, :-1, 0]",
        "u[:] = C[:, 1, 2]",
        "C[:, 0, 0] = u",
        "x[:] = np.max(C, axis=(0, 2))",
        "C[1, 2, :] = C[2, 1, :] + {s}",
        "for t in range(3):\n    C[:, :, t] = A * t",
        "for i in dace.map[0:N]:\n    for j in dace.map[0:M]:\n        for l in dace.map[0:3]:\n"
        "            C[i, j, l] = u[i] + x[j]",
        "C[:] = np.where(C > c, C, {s})",
        "a = np.sum(C[:, 1:, 1])\nu[0] = a",
    ),
    "transposed": (
        "D[:] = np.transpose(A[:M, :])[:, :] + 0.0 * A[:M, :]\nu[0] = D[1, 2]",
        "for i, j in dace.map[0:M, 0:M]:\n    B[i, j] = A[j, i]",
        "for i in dace.map[0:M]:\n    A[i, i] = {s}",
        "for i, j in dace.map[0:M, 0:M]:\n    B[i, j] = A[j, M - 1 - i] * c",
        "for i in dace.map[0:N]:\n    v[N - 1 - i] = u[i]",
        "A[:M, :] = B[:M, :] @ A[:M, :]",
    ),
}
TASKLETS = {
    "tasklet": (
        "a << u[i]\no >> v[i]\no = a * 2.0",
        "a << u[i]\nb << v[i]\no >> w[i]\no = max(a, b)",
        "a << u[i]\nb << A[i, 1]\no >> w[i]\np >> v[i]\no = a + b\np = a - b",
        "a << u[i]\no >> u[i]\no = a + i",
        "a << u[i]\no >> w[i]\nif a > 0.5:\n    o = a\nelse:\n    o = -a",
        "a << u[i]\no >> w[i]\nt = a * a\no = t + 1.0",
        "a << u[i]\no >> w[i]\no = a if a > 0.0 else 0.0",
    ),
    "joined": (
        "a << u[i]\no >> x(1, lambda a, b: a + b)[0]\no = a",
        "a << u[i]\no >> x(1, lambda a, b: max(a, b))[1]\no = a * 2.0",
        "a << A[i, 1]\no >> v(1, lambda a, b: a + b)[i]\no = a",
        "a << u[i]\no >> x(1, lambda a, b: min(a, b))[2]\no = a",
    ),
}
