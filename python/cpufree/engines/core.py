"""What is asked of the compiled core."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cpufree.extension import COMPILER, find_compiler, load_core, set_compiler, with_kernels

__all__ = ["COMPILER", "find_compiler"]

if TYPE_CHECKING:
    from cpufree._core import GpuInfo, SlabPlan, System
    from cpufree.matrix.problem import CsrMatrix


def load() -> ModuleType:
    """Return the extension; UnsupportedError where it does not load."""
    return load_core()


def load_for(engine: str) -> ModuleType:
    """Return the extension; for an engine on GPUs, it knows then where kernels come from.

    Where they are not built in, they are compiled when they are first used.
    """
    core = load()
    return with_kernels(core) if engine in ("cuda_p2p", "nvshmem") else core


def load_for_programs() -> ModuleType:
    """Return the extension; it knows then where the kernels of programs on GPUs come from.

    These are always compiled when they are first used.
    """
    core = load()
    set_compiler(core)
    return core


def kernels_compiled() -> bool:
    """Return whether GPU kernels are compiled when they are first used; else they are built in."""
    return bool(load().kernels_compiled())


def kernel_compiler() -> str:
    """Return name, version and path of the compiler of GPU kernels, "" where they are built in.

    Raises:
        UnsupportedError: it is missing or too old.
    """
    return str(load_for("cuda_p2p").kernel_compiler())


def make_system(
    *arrays: Any,
    pes: int,
    blocks: int,
    engine: str,
    gpus: tuple[int, ...],
    tuning: dict[str, Any] | None = None,
    team: Any = None,
) -> System:
    """Return a System: arrays are indptr, indices, data, part and order.

    With a team, every member makes its part of one System together with the others.
    """
    where = (pes, blocks, engine, list(gpus))
    more = (tuning or {}, team) if tuning or team is not None else ()
    system: System = load_for(engine).System(*arrays, *where, *more)
    return system


def make_system_there(
    matrix: tuple[Any, ...],
    blocks: int,
    gpus: tuple[int, ...],
    tuning: dict[str, Any],
) -> System:
    """Return a System of a matrix on a GPU, of which GpuCsr.addresses tells."""
    system: System = load_for("cuda_p2p").System(*matrix, blocks, list(gpus), tuning)
    return system


def most_nonzeros_by_host() -> int:
    """Return the nonzeros up to which GPUs leave it to the host to lay a matrix out."""
    return int(load().most_nonzeros_by_host)


def plan_slab(*arguments: Any) -> SlabPlan:
    """Return the share of this rank in a system whose rows all ranks give together.

    Arguments are the number of its first row, the rows of all ranks, indptr, indices and data, the
    tolerance for asymmetry (below 0: entries are not checked), and the team.
    """
    plan: SlabPlan = load().SlabPlan(*arguments)
    return plan


def update_system(system: System, matrix: CsrMatrix) -> bool:
    """Have a System take the values of a matrix with its pattern; False: they do not fit."""
    return bool(system.update(matrix.indptr, matrix.indices, matrix.data))


def solve(system: System, b: Any, x0: Any, out: Any, options: Any, progress: Any) -> Any:
    """Solve with a System; return its outcome."""
    return system.solve(b, x0, out, options, progress)


def solve_columns(
    system: System, vectors: Sequence[tuple[Any, Any, Any]], options: Any, progress: Any
) -> Any:
    """Solve with a System for 2, 4 or 8 right-hand sides together; return the outcome of each.

    Args:
        vectors: right-hand side, guess or None, and array for x or None, of each; guesses and
            arrays for all or for none.
    """
    b, x0, out = (list(part) for part in zip(*vectors, strict=True))
    guesses = None if x0[0] is None else x0
    return system.solve_columns(b, guesses, None if out[0] is None else out, options, progress)


def refuses_columns(system: System) -> str:
    """Return why a System does not solve several right-hand sides together, "" where it does."""
    return str(system.refuses_columns())


def available_cores() -> int:
    """Return the cores that this process may use, by its affinity mask and its quota."""
    return int(load().available_cores())


def cuda_built() -> bool:
    """Return whether the extension was compiled with CUDA."""
    return bool(load().cuda_built())


def made_with() -> dict[str, str]:
    """Return the versions of compiler and CUDA runtime of the extension, as far as they are known.

    An extension that was built from older sources does not tell.
    """
    core = load()
    runtime = core.cuda_runtime() if hasattr(core, "cuda_runtime") else ""
    found = {"core_compiler": getattr(core, "compiler", ""), "cuda_runtime": runtime}
    return {name: version for name, version in found.items() if version}


def gpus() -> list[GpuInfo]:
    """Return the GPUs that the driver lists, none where there is no driver or no CUDA."""
    found: list[GpuInfo] = load().gpus()
    return found


def gpu_note() -> str:
    """Return why there are no GPUs, "" where there are some."""
    return str(load().gpu_note())


def gpu_free_bytes(number: int) -> int:
    """Return the memory of a GPU that is free now; CUDA is started on it for that."""
    return int(load().gpu_free_bytes(number))


def gpu_is_started(number: int) -> bool:
    """Return whether CUDA runs on a GPU in this process; nothing is started."""
    return bool(load().gpu_is_started(number))


def registers_3d_seconds(
    shape: Sequence[int],
    periodic: Sequence[bool],
    single: bool,
    source: bool,
    pes: int,
    blocks: int,
) -> float:
    """Return the predicted seconds of an iteration in registers; 0: they do not hold the grid."""
    found = load().registers_3d_seconds(list(shape), list(periodic), single, source, pes, blocks)
    return float(found)


def start_nvshmem(team: Any, library: str, gpu: int, room: int) -> None:
    """Start NVSHMEM in a thread of its own, with bytes of room, unless it runs."""
    load().start_nvshmem(team, library, gpu, room)


def await_nvshmem() -> None:
    """Return once NVSHMEM has started, if it was; raise what that raised."""
    load().await_nvshmem()


def peer_problem(numbers: tuple[int, ...]) -> str:
    """Return which two GPUs do not reach one another's memory, "" where all do."""
    return str(load().peer_problem(list(numbers))) if len(numbers) > 1 else ""
