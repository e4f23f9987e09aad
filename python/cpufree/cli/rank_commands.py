"""Commands in several processes: our own launcher, and what ranks of any launcher do."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from cpufree import distributed, options
from cpufree.cli.commands import explain
from cpufree.cli.option_types import as_option
from cpufree.env import Env, RankEnv
from cpufree.errors import CpufreeError, CpufreeWarning, UnsupportedError
from cpufree.output_file import Draft, takes_place_of_file
from cpufree.text import counted

# Commands of `cpufree` that work together where they are started as ranks.
DISTRIBUTED = ("solve", "stencil", "program", "doctor")
IN_ONE_PROCESS = ("info", "convert", "generate", "suite", "bench", "run")

EPILOG = """
[bold]Examples[/bold]

  cpufree run -n 8 solve A.mtx.gz --out x.npy

  cpufree run -n 4 solve gen:poisson2d?nx=512,ny=512 --engine cpu_processes

  cpufree run -n 4 stencil jacobi2d --grid 8192x8192 --iters 10000

  cpufree run -n 8 --label python program.py

mpirun, srun and torchrun start the same commands, on one machine or on many.
"""


def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND...", help="A command of cpufree, or a program."),
    ],
    ranks_: Annotated[int, as_option(options.RANKS)],
    label: Annotated[
        bool, typer.Option("--label", help="Begin each line of output with the rank's number.")
    ] = False,
) -> None:
    """Start a command as N processes of this machine, which work together."""
    from cpufree.distributed.launch import launch, program

    if command[0] in IN_ONE_PROCESS:
        what = f"'{command[0]}' works in one process: start it without run"
        raise typer.BadParameter(what, param_hint="COMMAND")
    raise typer.Exit(launch(program(command, DISTRIBUTED), ranks_, label))


@contextlib.contextmanager
def as_rank(engine: str) -> Iterator[tuple[str, bool]]:
    """Be a rank where a launcher has started several; yield the engine, and who speaks.

    An engine of one process, asked for by name, keeps processes apart: they may solve different
    systems, and all of them speak.
    """
    if engine == "auto":
        engine = Env.read().engine
    if engine not in ("auto", *options.DISTRIBUTED) or (
        engine == "auto" and distributed.is_rank() is None
    ):
        yield engine, True
        return
    if engine != "cpu_processes":
        discover_gpus()
    team = distributed.join()
    with team.working(lambda error: explain(error)[0]):
        if engine == "auto":
            engine = choose_engine(team)
        if engine in options.PROCESSES_ON_GPUS:
            discover_library(engine)
        if team.rank != 0:
            warnings.simplefilter("ignore", CpufreeWarning)  # rank 0 has them too
        yield engine, team.rank == 0
        sys.stdout.flush()
        # A launcher may end all ranks once the first one has ended.
        team.barrier("the end")
    distributed.leave()


@contextlib.contextmanager
def silent_copies() -> Iterator[None]:
    """Let rank 0 of `cpufree run` alone say what is wrong with the command line of all."""
    try:
        env = RankEnv.read()
    except CpufreeError:  # reported where the variables are needed
        env = None
    copy = env is not None and env.launcher == "cpufree" and env.rank != 0
    with contextlib.redirect_stderr(io.StringIO()) if copy else contextlib.nullcontext():
        yield


def discover_gpus() -> None:
    """Let the GPUs' driver start while ranks meet."""
    from cpufree.engines import gpus, remote

    remote.discover_early(gpus.find)


def discover_library(engine: str) -> None:
    """Let the library be found while the matrix is read."""
    from cpufree.engines import remote

    remote.discover_early(remote.OF_ENGINE[engine].version)


def choose_engine(team: distributed.Team) -> str:
    """Return the engine for all ranks: GPUs where all of them see some."""
    from cpufree.engines import gpus, remote

    there = [
        facts["gpus"] for facts in team.tell_all("engine", {"gpus": len(gpus.usable(gpus.find()))})
    ]
    if not any(there):
        return "cpu_processes"
    if not all(there):
        without = there.index(0)
        raise UnsupportedError(
            f"rank {without} ({team.members[without]['host']}) sees no GPU that can be used, but "
            f"others do: give each rank one, or choose --engine cpu_processes"
        )
    return remote.choose(team)


def can_write_together(path: str | None, team: distributed.Team) -> bool:
    """Whether the ranks can write this file by `write_together`; of no file they can."""
    if not path:
        return True
    # Machines that map one file do not see one another's writes on every file system.
    one = team.size_here == team.size
    return path.lower().endswith(".npy") and one and takes_place_of_file(path)


def write_together(
    path: str, shape: tuple[int, ...], where: Any, values: NDArray[Any], what: str
) -> str:
    """Write an array into one .npy file, each rank its own values; return where it lies.

    All ranks are on one machine, and see the file under that name. Where one fails, none is left.
    """
    team = distributed.current()
    assert team is not None
    draft = Draft(path) if team.rank == 0 else None
    try:
        name = "" if draft is None else draft.name
        if draft is not None:
            np.lib.format.open_memmap(name, "w+", values.dtype, shape).flush()
        name = team.tell_all(f"a file for the {what}", {"name": name})[0]["name"]
        file = np.lib.format.open_memmap(name, "r+")
        file[where] = values
        file.flush()
        team.barrier(f"the {what} is written")
        if draft is not None:
            draft.finish()
    except BaseException:
        if draft is not None:
            draft.discard()
        raise
    return f"{what} in {path}, written by {counted(team.size, 'rank')}"


def end_of_rank(error: Exception, code: int, line: str) -> tuple[int, str | None]:
    """Return exit code and message for an error; None where another rank tells it."""
    return distributed.settle(error, line, code)
