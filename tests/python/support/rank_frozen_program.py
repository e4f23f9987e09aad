"""Two ranks, of which one is stopped, as a program: its first argument says what they do."""

from __future__ import annotations

import os
import signal
import sys
import time

from rank_program import main, say

from cpufree import distributed
from cpufree.distributed import pulse
from cpufree.distributed import team as team_module


def stop(team: distributed.Team) -> None:
    """The rank of the second argument is stopped while the other waits for it, not for long."""
    team_module.GRACE = 1.0
    team.barrier("all are here")
    if team.rank == int(sys.argv[2]):
        while not os.path.exists(sys.argv[3]):  # the hub may be here, and the other one wait for it
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGSTOP)
    open(sys.argv[3], "w").close()
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


def stop_where_nobody_waits(team: distributed.Team) -> None:
    """Rank 0 is stopped for a while, in which the other does something else."""
    pulse.STOPPED_LIMIT = 0.1
    team.barrier("all are here")
    if team.rank == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        time.sleep(2.0)
        os.kill(team.members[0]["pid"], signal.SIGCONT)
        time.sleep(0.5)
    with team.working():
        team.barrier("the end")
    say("met")


if __name__ == "__main__":
    sys.exit(main(globals()))
