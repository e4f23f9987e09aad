"""The backward pass of a solve that is differentiated, against the solve: by PyTorch and by JAX.

Seconds of whole calls with one Solver that is set up: "solve" from A and b to x, "backward" from a
random gradient with respect to x to those with respect to b and to the values of A, the same of
JAX inside jit, and Solver.solve alone. `iterations` are those of each.
"""

import importlib
import importlib.util
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix


class Counted:
    """A Solver that remembers how many iterations its solves took."""

    def __init__(self, solver: cpufree.Solver) -> None:
        self.solver, self.solve = solver, solver.solve
        self.iterations = 0
        solver.solve = self  # type: ignore[method-assign]

    def __call__(self, *given: Any, **options: Any) -> Any:
        result = self.solve(*given, **options)
        self.iterations = result.iterations
        return result


def tensors(A: Any, device: str) -> tuple[Any, Any, Any, Any, Any]:
    """Return A in compressed rows, b, and the gradient with respect to x, on a device."""
    torch = importlib.import_module("torch")
    rng = np.random.default_rng(1)
    arrays = [A.indptr, A.indices, A.data, *rng.standard_normal((2, A.shape[0]))]
    crow, col, values, b, toward = (torch.tensor(array).to(device) for array in arrays)
    return crow, col, values.requires_grad_(), b.requires_grad_(), toward


def calls_of_jax(A: Any, b: Any, toward: Any, **options: Any) -> dict[str, Any]:
    """Return the calls of JAX, where it is installed."""
    if importlib.util.find_spec("jax") is None:
        return {}
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    solve = importlib.import_module("cpufree.jax").solve
    indices, indptr = jax.numpy.asarray(A.indices), jax.numpy.asarray(A.indptr)
    data, right, back = (jax.numpy.asarray(v) for v in (A.data, b, toward))
    forward = jax.jit(lambda data, b: solve((data, indices, indptr), b, **options))
    backward = jax.jit(jax.vjp(forward, data, right)[1])
    return {
        "JAX, solve": lambda: forward(data, right).block_until_ready(),
        "JAX, backward": lambda: jax.block_until_ready(backward(back)),
    }


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    # PyTorch is an extra: a list of the benchmarks needs none.
    torch, ours = importlib.import_module("torch"), importlib.import_module("cpufree.torch")
    A = matrix(case)
    on_gpu = case.engine == "cuda_p2p"
    crow, col, values, b, toward = tensors(A, "cuda" if on_gpu else "cpu")
    where = {"engine": case.engine, "pes": case.pes, "pc": case.pc}
    # Each library's values are others, which one Solver for both would be given in turns.
    with cpufree.Solver(A, **where) as solver, cpufree.Solver(A, **where) as of_jax:
        counted, counted_jax = Counted(solver), Counted(of_jax)

        def clock() -> float:
            if on_gpu:
                torch.cuda.synchronize()
            return time.perf_counter()

        def timed(call: Any, counted: Counted = counted) -> dict[str, Any]:
            begin = clock()
            call()
            return {"seconds": clock() - begin, "iterations": counted.iterations}

        def forward() -> Any:
            return ours.solve((crow, col, values), b, solver=solver, rtol=case.rtol)

        x = forward()
        vectors = [v.detach().cpu().numpy() for v in (b, toward)]
        by_jax = calls_of_jax(A, *vectors, solver=of_jax, rtol=case.rtol)
        yield {
            "solve": lambda: timed(forward),
            "backward": lambda: timed(
                lambda: torch.autograd.grad(x, (values, b), toward, retain_graph=True)
            ),
            "Solver.solve": lambda: timed(lambda: counted(b.detach(), rtol=case.rtol)),
            **{name: partial(timed, call, counted_jax) for name, call in by_jax.items()},
        }


BENCH = Bench(
    name="gradients",
    set_up=set_up,
    axes={
        "matrix": (
            "gen:poisson3d?nx=128,ny=128,nz=128",
            "gen:lognormal3d?nx=96,ny=96,nz=96",
            "gen:flange_hex?r_out=40,t=8,pipe=20",
        ),
        "pc": ("jacobi", "amg"),
        "rtol": (1e-8,),
        "pes": (1,),
        "engine": ("cuda_p2p",),
    },
    cpu={
        "engine": ("cpu_threads",),
        "matrix": (
            "gen:poisson3d?nx=64,ny=64,nz=64",
            "gen:lognormal3d?nx=48,ny=48,nz=48",
            "gen:flange_hex?r_out=24,t=5,pipe=12",
        ),
    },
    quick={"matrix": ("gen:poisson2d?nx=64,ny=64",)},
    ours="solve",
    shown=("iterations",),
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
