"""NVSHMEM's library: where it lies, whether it can be used, and how much memory it is to have."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from cpufree.bench.core.problem_folder import Arrays
from cpufree.env import for_nvshmem
from cpufree.host import find_library

NAME = "libnvshmem_host.so.3"
RANK = (sys.executable, "-m", "cpufree.bench.contenders.nvshmem_rank")
PROBE_SECONDS = 60.0
OWN_BYTES = 64 << 20  # beside what a problem needs: signals, sums, and what NVSHMEM itself takes


def find() -> str:
    """Return the path of NVSHMEM's library in pip's package, "" where that is not installed.

    With "", the baseline looks where the system looks.
    """
    return find_library("nvidia.nvshmem", NAME)


def problem() -> str:
    """Return why the library cannot be used here, "" where it can.

    It is tried in a process of its own, which it may take down.
    """
    try:
        done = subprocess.run(
            [*RANK, "probe", find()],
            env=for_nvshmem(OWN_BYTES),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"NVSHMEM could not be tried: {error}"
    except ValueError:
        said = done.stderr.decode(errors="replace").strip()[-1000:]
        return f"loading NVSHMEM ended its process (status {done.returncode}): {said}"
    return "" if answer["ok"] else str(answer["error"])


def heap_bytes(a: Arrays, pes: int) -> int:
    """Return bytes of symmetric memory that suffice for a problem on N PEs, however uneven.

    Two vectors with ghosts, of which none is longer than the system, and a buffer, in which a row
    lies once at most for each of the others.
    """
    rows = a.indptr.size - 1
    most = rows if a.part is None else int(np.bincount(a.part, minlength=pes).max())
    return (2 * rows + (pes - 1) * most) * a.data.itemsize + OWN_BYTES
