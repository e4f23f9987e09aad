"""Processes of a team, started one by one, and how they ended."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cpufree.distributed import Team, launch

SMALL = "gen:poisson2d?nx=40,ny=40"
PROGRAM = Path(__file__).with_name("rank_program.py")
ROWS_PROGRAM = Path(__file__).with_name("rank_rows_program.py")
# Seconds until a test takes what it waits for to hang. It measures nothing: what is to come comes
# as soon as the machine allows, and what would come in its place never does.
PATIENCE = 120.0
LIMIT = "120"  # CPUFREE_JOIN_LIMIT


@dataclass(frozen=True)
class Ended:
    """How one rank ended."""

    code: int
    out: str
    err: str


def free_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean() -> dict[str, str]:
    """Return the environment of the tests without what launchers set."""
    ours = ("CPUFREE_", "OMPI_", "PMI", "SLURM_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


def start(words: Sequence[str], rank: int, ranks: int, place: str, **more: str) -> subprocess.Popen:  # type: ignore[type-arg]
    """Start one rank."""
    environment = clean() | {
        "CPUFREE_RANK": str(rank),
        "CPUFREE_RANKS": str(ranks),
        "CPUFREE_RENDEZVOUS": place,
        "CPUFREE_JOIN_LIMIT": LIMIT,
        "NO_COLOR": "1",
        "COLUMNS": "200",
        **more,
    }
    return subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(processes: Sequence[subprocess.Popen]) -> list[Ended]:  # type: ignore[type-arg]
    """Wait for all; none may outlast its time."""
    ended = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=PATIENCE)
            ended.append(Ended(process.returncode, out, err))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return ended


def team(
    what: str, place: str, ranks: int = 3, program: Path = PROGRAM, **more: str
) -> list[Ended]:
    """Run a program of the tests as a number of ranks."""
    words = [str(program), what]
    return finish([start(words, rank, ranks, place, **more) for rank in range(ranks)])


def team_of(rank: int = 0, machines: tuple[str, ...] = ("here", "here")) -> Team:
    """Return a team that cannot talk."""
    team: Team = object.__new__(Team)
    team.rank, team.size = rank, len(machines)
    team.members = [{"machine": machine} for machine in machines]
    return team


def all_say(ended: Sequence[Ended], words: str, ranks: Sequence[int]) -> None:
    """Check that these ranks have failed with a message that has these words."""
    for rank in ranks:
        assert ended[rank].code == 4, ended
        assert words in ended[rank].out, ended


def cli(words: Sequence[str]) -> list[str]:
    """Return the words of the command line for `start`."""
    return ["-m", "cpufree", *words]


def launched(*words: str, ranks: int = 3) -> Ended:
    """Run `cpufree run`."""
    return finish([start(cli(["run", "-n", str(ranks), *words]), 0, 1, "", CPUFREE_RANK="")])[0]


def children(pid: int) -> list[int]:
    """Return the ranks that a launcher has started, in their order."""
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = {}
    for child in map(int, words):
        rank = environment_of(child).get("CPUFREE_RANK", "")
        if rank:
            found[int(rank)] = child
    return [found[rank] for rank in sorted(found)]


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment of a process."""
    lines = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def wait_until_at_work(ranks: Callable[[], Sequence[int]], count: int) -> None:
    """Return once these processes, of the engine cpu_processes, compute.

    Each maps the memory of all right before its kernel starts, which computes in other threads.
    Only what those compute from then on counts: threads have also laid out the matrix.
    """
    before: dict[int, dict[str, int]] = {}

    def at_work() -> bool:
        pids = ranks()
        for pid in pids:
            maps = Path(f"/proc/{pid}/maps").read_text()
            if pid not in before and maps.count("memfd:cpufree") >= count:
                before[pid] = _ticks_beside(pid)
        return len(pids) == count and all(_has_computed(pid, before.get(pid)) for pid in pids)

    wait_until(at_work)


def _has_computed(pid: int, before: dict[str, int] | None) -> bool:
    """Return whether a thread other than the first has computed for a tenth of a second since."""
    if before is None:
        return False
    return any(ticks >= before.get(thread, 0) + 10 for thread, ticks in _ticks_beside(pid).items())


def _ticks_beside(pid: int) -> dict[str, int]:
    """Return how long each thread but the first has computed, in hundredths of a second."""
    ticks = {}
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        if stat.parent.name != str(pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ticks[stat.parent.name] = int(stat.read_text().rpartition(")")[2].split()[11])
    return ticks


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what must come."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def launch_pair(program: Callable[[int], str]) -> int:
    """Have our launcher start two ranks, each with a program of its own; return its exit code."""
    words = "import os, signal, sys, time; rank = int(os.environ['CPUFREE_RANK']); "
    words += f"exec({[program(0), program(1)]!r}[rank])"
    return launch.launch([sys.executable, "-c", words], 2)
