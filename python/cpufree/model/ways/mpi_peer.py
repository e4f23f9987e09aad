"""A process of a way of MPI: `mpirun -n 2 python -m cpufree.model.ways.mpi_peer KIND GPUS BYTES`.

Rank 0 reads JSON lines and answers each with one: "order", arguments of MpiMessages.times, with the
seconds. Rank 1 is told by it. Both end when there are no more lines.
"""

from __future__ import annotations

import json
import sys
import time

from cpufree.errors import CpufreeError
from cpufree.extension import load_part

PASSED_ON = 1.0
"""Seconds in which mpirun passes on what was printed: after an abort, or an exit, it need not."""


def serve(kind: str, gpus: list[int], size: int) -> None:
    """Carry out orders until there are no more."""
    MpiMessages = load_part("_mpi_messages", "messages of MPI").MpiMessages
    messages = MpiMessages(kind, gpus, size)
    lead = messages.rank == 0
    while True:
        line = MpiMessages.broadcast(sys.stdin.readline() if lead else "")
        if not line:
            MpiMessages.finish()
            return
        try:
            seconds = messages.times(*json.loads(line)["order"])
        except CpufreeError as error:
            print(json.dumps({"error": f"says: {error}"}), flush=True)
            time.sleep(PASSED_ON)
            MpiMessages.abort(1)
        if lead:
            print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    try:
        serve(sys.argv[1], [int(gpu) for gpu in sys.argv[2].split(",") if gpu], int(sys.argv[3]))
    except CpufreeError as error:
        print(json.dumps({"error": f"says: {error}"}), flush=True)
        time.sleep(PASSED_ON)
        sys.exit(1)
