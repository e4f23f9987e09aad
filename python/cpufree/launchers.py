"""What launchers say to the processes that they start, in environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import overload

from cpufree.errors import InvalidInputError

_HERE = "127.0.0.1"
# Steps of Slurm from here on are no steps that srun has made: the batch script, and others.
_SLURM_FIRST_SPECIAL_STEP = 0xFFFFFF00
# Variables that say which process this is, and those that say of how many, where they are alone.
_NUMBERS = {
    "CPUFREE_RANK": "CPUFREE_RANKS",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
    "PMIX_RANK": "CPUFREE_RANKS",
}


@dataclass(frozen=True)
class Launched:
    """Which of several processes this one is."""

    rank: int
    ranks: int
    local_rank: int | None
    """Among the processes of this machine; None: the launcher does not say."""
    launcher: str
    """Who has started the processes, such as "Open MPI"; "cpufree": our own."""
    job: str
    """What processes of this run have in common, and no others on these machines."""
    host: str = ""
    """Where rank 0 runs; 127.0.0.1: all ranks are on this machine; "": not known."""


def find(values: Mapping[str, str]) -> Launched | None:
    """Return what the launcher of this process says in its environment, None if there was none.

    A program that was started by one of several launchers, such as torchrun in a job of Slurm, goes
    by the innermost one.

    Raises:
        InvalidInputError: a variable is no number, or the variables do not fit together.
    """
    for launcher in (_from_cpufree, _from_torchrun, _from_open_mpi, _from_slurm, _from_pmi):
        found = launcher(values)
        if found is not None:
            break
    else:
        _refuse_rank_without_number(values)
        return None
    if not 0 <= found.rank < found.ranks:
        raise InvalidInputError(
            f"{found.launcher} says that this process is rank {found.rank} of {found.ranks}; "
            "ranks count from 0"
        )
    return found


def _refuse_rank_without_number(values: Mapping[str, str]) -> None:
    """Raise InvalidInputError where this is one of several processes, of an unknown number.

    Each would take itself for the only one, and do, and write, all of it.
    """
    for name, number in _NUMBERS.items():
        if rank := values.get(name, "").strip():
            raise InvalidInputError(
                f"environment variable {name} says that this process is rank {rank}, but {number} "
                f"does not say of how many: set {number} to their number, the same in all of them, "
                f"or unset {name} where this process is to work alone"
            )


def _from_cpufree(values: Mapping[str, str]) -> Launched | None:
    """Return what `cpufree run` says, or a user; PMIx says the rank, but not how many there are."""
    name = "CPUFREE_RANK" if values.get("CPUFREE_RANK", "").strip() else "PMIX_RANK"
    if not values.get(name, "").strip() or not values.get("CPUFREE_RANKS", "").strip():
        return None
    return Launched(
        _natural(values, name),
        _natural(values, "CPUFREE_RANKS"),
        _natural(values, "CPUFREE_LOCAL_RANK", missing=None),
        "cpufree",
        values.get("PMIX_NAMESPACE", ""),
    )


def _from_torchrun(values: Mapping[str, str]) -> Launched | None:
    needed = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if not all(values.get(name) for name in needed):
        return None
    run = [values.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")]
    ranks = _natural(values, "WORLD_SIZE")
    together = _natural(values, "LOCAL_WORLD_SIZE", missing=None) == ranks
    return Launched(
        _natural(values, "RANK"),
        ranks,
        _natural(values, "LOCAL_RANK", missing=None),
        "torchrun",
        "-".join(["torchrun", values["MASTER_PORT"], *run]),
        _HERE if together else values["MASTER_ADDR"],
    )


def _from_open_mpi(values: Mapping[str, str]) -> Launched | None:
    if not values.get("OMPI_COMM_WORLD_RANK") or not values.get("OMPI_COMM_WORLD_SIZE"):
        return None
    ranks = _natural(values, "OMPI_COMM_WORLD_SIZE")
    together = _natural(values, "OMPI_COMM_WORLD_LOCAL_SIZE", missing=None) == ranks
    run = [values.get(name, "") for name in ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")]
    return Launched(
        _natural(values, "OMPI_COMM_WORLD_RANK"),
        ranks,
        _natural(values, "OMPI_COMM_WORLD_LOCAL_RANK", missing=None),
        "Open MPI",
        "-".join(["ompi", *run]) if any(run) else "",
        _HERE if together else "",
    )


def _from_slurm(values: Mapping[str, str]) -> Launched | None:
    """Return what srun says; the batch script itself is no rank, though it has these variables.

    Nor is a process of MPICH's mpirun: srun starts mpirun's own helpers, one on each node, and
    their ranks inherit the helpers' numbers. Slurm's own PMI repeats the numbers of Slurm.
    """
    step = values.get("SLURM_STEP_ID", values.get("SLURM_STEPID", ""))
    batch = not step.isdigit() or int(step) >= _SLURM_FIRST_SPECIAL_STEP
    tasks = "SLURM_STEP_NUM_TASKS" if values.get("SLURM_STEP_NUM_TASKS") else "SLURM_NTASKS"
    if batch or not values.get("SLURM_PROCID") or not values.get(tasks):
        return None
    pmi = [values.get(name, "").strip() for name in ("PMI_RANK", "PMI_SIZE")]
    own = [values.get(name, "").strip() for name in ("SLURM_PROCID", tasks)]
    # The helpers set MPI_LOCALRANKID, too, also where their ranks' numbers happen to be Slurm's.
    if all(pmi) and (pmi != own or values.get("MPI_LOCALRANKID", "").strip()):
        return None
    nodes = values.get("SLURM_STEP_NODELIST") or values.get("SLURM_JOB_NODELIST", "")
    first = first_node(nodes)
    return Launched(
        _natural(values, "SLURM_PROCID"),
        _natural(values, tasks),
        _natural(values, "SLURM_LOCALID", missing=None),
        "Slurm",
        f"slurm-{values.get('SLURM_JOB_ID', '')}-{step}",
        _HERE if first and first == nodes.strip() else first,
    )


def _from_pmi(values: Mapping[str, str]) -> Launched | None:
    """Return what MPICH and its kin say; processes of one machine have one parent there."""
    if not values.get("PMI_RANK") or not values.get("PMI_SIZE"):
        return None
    ranks = _natural(values, "PMI_SIZE")
    together = _natural(values, "MPI_LOCALNRANKS", missing=None) == ranks
    return Launched(
        _natural(values, "PMI_RANK"),
        ranks,
        _natural(values, "MPI_LOCALRANKID", missing=None),
        "PMI",
        f"pmi-{os.getppid()}" if together else "",
        _HERE if together else "",
    )


def first_node(nodes: str) -> str:
    """Return the first of Slurm's list of nodes: "gpu[03-07,9],login" -> "gpu03"."""
    found = re.match(r"([^,\[]*)(?:\[([0-9]+)[^\]]*\])?([^,\[]*)", nodes.strip())
    return "".join(part or "" for part in found.groups()) if found else ""


@overload
def _natural(values: Mapping[str, str], name: str) -> int: ...
@overload
def _natural(values: Mapping[str, str], name: str, missing: None) -> int | None: ...
def _natural(values: Mapping[str, str], name: str, missing: int | None = 0) -> int | None:
    """Return a number from 0; `missing` where the variable is not set."""
    text = values.get(name, "").strip()
    if not text:
        return missing
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise InvalidInputError(f"environment variable {name}={text!r} is no number from 0")
    return int(text)
