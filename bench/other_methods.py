"""minres and bicgstab against cg, by products with A, and against loops that the host drives.

Seconds are those of one product: an iteration of bicgstab has two. The system of minres is a
shifted Laplacian, that of bicgstab convection and diffusion, that of cg the Laplacian: all of the
same pattern. Beside them, on one GPU with CuPy: CuPy's minres, and both methods as the host drives
them, with vectors updated by fused kernels of CuPy and a wait for each scalar.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from cpufree import Solver, generate
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import iterating


def systems(n: int) -> dict[str, sp.csr_array]:
    """Return the matrix of each method, n points along each side of a cube."""
    A = sp.csr_array(generate.poisson3d(n, n, n))
    rows = A.shape[0]
    wind = sp.diags_array([np.full(rows, 0.5), np.full(rows - 1, -0.5)], offsets=[0, -1])
    mask = sp.csr_array(A != 0).astype(float)
    return {
        "cg": A,
        "minres": sp.csr_array(A - 0.3 * sp.eye_array(rows)),
        "bicgstab": sp.csr_array(A + wind.tocsr().multiply(mask)),
    }


def per_product(call: Callable[[], dict[str, Any]], products: int) -> Callable[[], dict[str, Any]]:
    def each() -> dict[str, Any]:
        return {name: seconds / products for name, seconds in call().items()}

    return each


def lanczos(az: Any, v: Any, before: Any, d: Any, e: Any) -> Any:
    return az - d * v - e * before


def direction(z: Any, w: Any, before: Any, a1: Any, a2: Any, a3: Any) -> Any:
    return (z - a3 * before - a2 * w) / a1


def moved(x: Any, w: Any, length: Any) -> Any:
    return x + length * w


def less(r: Any, v: Any, alpha: Any) -> Any:
    return r - alpha * v


def biorthogonal(r: Any, p: Any, v: Any, beta: Any, omega: Any) -> Any:
    return r + beta * (p - omega * v)


def moved_twice(x: Any, p: Any, s: Any, alpha: Any, omega: Any) -> Any:
    return x + alpha * p + omega * s


def minres_by_host(cupy: Any, A: Any, b: Any, inverse: Any, iterations: int) -> Any:
    """Minimal residuals, one kernel for each loop over vectors; reference/minres.hpp."""
    next_v, next_w, next_x = map(cupy.fuse(), (lanczos, direction, moved))
    x, v_before, w_before, w = (cupy.zeros_like(b) for _ in range(4))
    v, z = b.copy(), inverse * b
    gamma = eta = float(cupy.sqrt(v @ z))
    gamma_before, c_before, c, s_before, s = 1.0, 1.0, 1.0, 0.0, 0.0
    for _ in range(iterations):
        z = z / gamma
        az = A @ z
        delta = float(az @ z)
        v_before, v = v, next_v(az, v, v_before, delta / gamma, gamma / gamma_before)
        z_next = inverse * v
        gamma_before, before, gamma = gamma, gamma, float(cupy.sqrt(z_next @ v))
        alpha0 = c * delta - c_before * s * before
        alpha1 = float(np.hypot(alpha0, gamma))
        alpha2, alpha3 = s * delta + c_before * c * before, s_before * before
        c_before, s_before, c, s = c, s, alpha0 / alpha1, gamma / alpha1
        w_before, w = w, next_w(z, w, w_before, alpha1, alpha2, alpha3)
        x = next_x(x, w, c * eta)
        eta, z = -s * eta, z_next
    return x


def bicgstab_by_host(cupy: Any, A: Any, b: Any, inverse: Any, iterations: int) -> Any:
    """Stabilised biconjugate gradients in the same way; reference/bicgstab.hpp."""
    next_r, next_p, next_x = map(cupy.fuse(), (less, biorthogonal, moved_twice))
    x, r = cupy.zeros_like(b), b.copy()
    p, shadow = r, r
    rho = float(shadow @ r)
    for _ in range(iterations):
        mp = inverse * p
        v = A @ mp
        alpha = rho / float(shadow @ v)
        s = next_r(r, v, alpha)
        ms = inverse * s
        t = A @ ms
        omega = float(t @ s) / float(t @ t)
        x = next_x(x, mp, ms, alpha, omega)
        r = next_r(s, t, omega)
        rho, last = float(shadow @ r), rho
        p = next_p(r, p, v, rho / last * (alpha / omega), omega)
    return x


def by_cupy(
    given: dict[str, sp.csr_array], b: np.ndarray, iterations: int
) -> Iterator[tuple[str, Call]]:
    """Yield what CuPy does on the GPU, timed until it has ended."""
    import cupy
    import cupyx.scipy.sparse as csp
    import cupyx.scipy.sparse.linalg as csl

    right = cupy.asarray(b)

    def timed(run: Callable[[], Any], products: int) -> Call:
        def call() -> dict[str, Any]:
            cupy.cuda.Device().synchronize()
            begin = time.perf_counter()
            run()
            cupy.cuda.Device().synchronize()
            return {"seconds": (time.perf_counter() - begin) / products}

        return call

    for method, loop in (("minres", minres_by_host), ("bicgstab", bicgstab_by_host)):
        A = csp.csr_matrix(given[method].astype(np.float64))
        inverse = 1.0 / cupy.asarray(np.abs(given[method].diagonal()))
        products = iterations * (2 if method == "bicgstab" else 1)

        def run(loop: Any = loop, A: Any = A, inverse: Any = inverse) -> Any:
            return loop(cupy, A, right, inverse, iterations)

        yield f"{method}, driven by the host", timed(run, products)
    A = csp.csr_matrix(given["minres"])
    seen: list[int] = []

    def theirs() -> None:
        seen.clear()
        csl.minres(A, right, tol=0.0, maxiter=iterations, callback=lambda _: seen.append(1))

    yield "CuPy's minres", timed(theirs, iterations)


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    given = systems(case.n)
    n = given["cg"].shape[0]
    b = np.random.default_rng(0).standard_normal(n)
    case.facts.update(rows=n, nnz=int(given["cg"].nnz))
    solvers = {
        name: Solver(A, engine=case.engine, pes=case.pes, pc=case.pc, method=name)
        for name, A in given.items()
    }
    calls: dict[str, Call] = {}
    for name, solver in solvers.items():
        one = iterating(solver, b, case.iterations)
        calls[name] = per_product(one, 2 if name == "bicgstab" else 1)
    on_gpu = solvers["cg"].gpus and case.pes == 1 and importlib.util.find_spec("cupy")
    if on_gpu and case.pc == "jacobi":
        calls |= dict(by_cupy(given, b, case.iterations))
    try:
        yield calls
    finally:
        for solver in solvers.values():
            solver.close()


BENCH = Bench(
    name="other-methods",
    set_up=set_up,
    axes={
        "n": (128, 64),
        "pc": ("jacobi", "none"),
        "engine": ("auto",),
        "pes": (1,),
        "iterations": (60,),
    },
    cpu={"n": (80,), "pes": (2,)},
    quick={"n": (16,), "iterations": (10,)},
    ours="cg",
    unit="µs",
    pause=0.02,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
