"""Who can be measured: by name, how each is started, and what is missing where it cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cpufree.bench.contenders import nvshmem
from cpufree.bench.contenders.extension import load_baselines
from cpufree.bench.contenders.roles import STENCILS, device_driven
from cpufree.bench.core.entry import BASELINE, OURS, PEER, Entry, parse_peer
from cpufree.bench.core.protocol import Contender
from cpufree.bench.stencil.plan import METHOD
from cpufree.errors import InvalidInputError, UnsupportedError

# What each needs is known to the extension that has them.
BASELINES = ("copy", "overlap", "p2p", "nccl", "nccl_graph", "flags_graph", "nvshmem")
# Not host-driven: the GPUs meet without the host.
DEVICE_DRIVEN = device_driven(STENCILS)
# What the extensions take, whatever is not between the harness and them alone.
ENGINE_TUNING = (
    *("blocks", "halo_steps", "thickness", "halo", "check_every", "wait_limit"),
    *("boundary_blocks", "sweep", "rows"),
)
BASELINE_TUNING = (
    *("threads", "unroll", "depth", "wait_limit", "nccl_library", "nvshmem_library", "exchange"),
)
WORKER = ("{python}", "-m", "cpufree.bench.stencil.worker")


def make(name: str) -> Contender:
    """Return the built-in contender of this name; InvalidInputError where there is none."""
    from cpufree.bench.stencil.solvers import BaselineSolver, EngineSolver, NumpySolver

    if name == "cpufree":
        return EngineSolver()
    if name == "numpy":
        return NumpySolver()
    if name == "nvshmem":
        from cpufree.bench.stencil.nvshmem_solver import NvshmemSolver

        return NvshmemSolver()
    if name in BASELINES:
        return BaselineSolver(name)
    known = ", ".join(("cpufree", "numpy", *BASELINES))
    raise InvalidInputError(f"there is no built-in contender {name!r}; there are {known}")


def find(peers: Sequence[str] = ()) -> dict[str, Entry]:
    """Return all contenders by name: built in, and given as texts NAME=COMMAND.

    Raises InvalidInputError for a text that is none.
    """
    entries = [
        Entry("cpufree", OURS, (*WORKER, "cpufree"), (METHOD,), tuning=ENGINE_TUNING),
        *_baselines(),
        Entry("numpy", PEER, (*WORKER, "numpy"), (METHOD,), cpu_only=True, tuning=()),
        *map(parse_peer, peers),
    ]
    return {entry.name: entry for entry in entries}


def _baselines() -> Iterable[Entry]:
    try:
        kinds = {str(kind["name"]): kind for kind in load_baselines().stencil_kinds()}
        missing = "this build does not have it"
    except UnsupportedError as error:
        kinds, missing = {}, str(error)
    for name in BASELINES:
        why = missing
        if name in kinds:
            why = "" if kinds[name]["available"] else str(kinds[name]["why_not"])
            if name == "nvshmem" and not why:
                why = nvshmem.problem()
        yield Entry(name, BASELINE, (*WORKER, name), (METHOD,), why, tuning=BASELINE_TUNING)
