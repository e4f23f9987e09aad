"""Two ranks, of which one is stopped, as a program: its first argument says what they do."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
from rank_program import main, say
from ranks_here import is_stopped, wait_until

from cpufree import distributed
from cpufree.distributed import pulse
from cpufree.distributed import team as team_module


def stop_one(team: distributed.Team, stopped: int, file: str) -> None:
    """Stop a rank; the other one, which makes the file, goes on once that is so."""
    if team.rank == stopped:
        wait_until(lambda: os.path.exists(file))  # the hub may be here: the other has its answer
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        open(file, "w").close()
        wait_until(lambda: is_stopped(team.members[stopped]["pid"]))


def stop(team: distributed.Team) -> None:
    """The rank of the second argument is stopped while the other waits for it, not for long."""
    stopped = int(sys.argv[2])
    team_module.GRACE = 1.0 if stopped == 0 else 600.0
    team.barrier("all are here")
    stop_one(team, stopped, sys.argv[3])
    with team.working():
        team.all_gather("the end", b"", 0.5)


def stop_in_a_barrier(team: distributed.Team) -> None:
    """The rank of the second argument is stopped, and the others wait for it without a limit."""
    pulse.STOPPED_LIMIT = 1.5
    team.barrier("all are here")
    if team.rank == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGSTOP)
    with team.working():
        team.barrier("the end")


def stop_in_a_solve(team: distributed.Team) -> None:
    """The rank of the second argument is stopped in a solve that has a limit of time."""
    import cpufree

    def progress(iteration: int, residual: float) -> None:
        if team.rank == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGSTOP)

    n = 400_000
    cpufree.solve(cpufree.generate.poisson1d(n), np.ones(n), engine="cpu_processes", pc="none",
                  rtol=1e-12, progress=progress, time_limit=3.0)  # fmt: skip


def stop_in_a_solve_with_short_waits(team: distributed.Team) -> None:
    """The rank of the second argument is stopped in a solve whose waits are short."""
    import cpufree

    def progress(iteration: int, residual: float) -> None:
        if team.rank == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGSTOP)

    n = 400_000
    cpufree.solve(cpufree.generate.poisson1d(n), np.ones(n), engine="cpu_processes", pc="none",
                  rtol=1e-12, progress=progress, wait_limit=2.0)  # fmt: skip


def stop_where_nobody_waits(team: distributed.Team) -> None:
    """Rank 0 is stopped for a while, in which the other does something else."""
    pulse.STOPPED_LIMIT = 0.1
    team.barrier("all are here")
    stop_one(team, 0, sys.argv[2])
    if team.rank == 1:
        time.sleep(1.5)  # long enough to be told, if it mattered
        os.kill(team.members[0]["pid"], signal.SIGCONT)
        wait_until(lambda: not is_stopped(team.members[0]["pid"]))
    with team.working():
        team.barrier("the end")
    say("met")


if __name__ == "__main__":
    sys.exit(main(globals()))
