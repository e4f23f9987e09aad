"""Two ranks, of which one is stopped, as a program: its first argument says what they do."""

from __future__ import annotations

import os
import signal
import sys
import time

from rank_program import main

from cpufree import distributed
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


if __name__ == "__main__":
    sys.exit(main(globals()))
