"""How fast memory is, measured in the same run: the triad on the CPU, a copy on a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from cpufree.bench.core.machine import caches, last_level_bytes
from cpufree.bench.core.processes import kill_session
from cpufree.bench.core.triad import BYTES_PER_ELEMENT, Triad, TriadError, array_elements
from cpufree.env import for_worker

ROUNDS = 5
COPY_BYTES = 1 << 30
COPY_SECONDS = 120.0


def measure_rate(gpus: tuple[int, ...] | None, cores: int) -> dict[str, Any]:
    """Return what was measured and its bytes per second, of all cores or of one GPU, or why not."""
    return measure_triad(cores) if gpus is None else measure_copy(gpus[0])


def measure_triad(cores: int) -> dict[str, Any]:
    """Return the rates of the triad on N cores."""
    elements = array_elements(last_level_bytes(caches()))
    try:
        with Triad(elements, cores) as triad:
            triad.run(1)
            seconds = [triad.run(2) for _ in range(ROUNDS)]
            if triad.wrong():
                raise TriadError(f"the triad computed {triad.wrong()} wrong elements")
    except TriadError as error:
        return {"what": "triad", "error": str(error)}
    rates = [BYTES_PER_ELEMENT * elements / value for value in seconds]
    return {"what": "triad", "bytes_per_second": rates}


def measure_copy(device: int) -> dict[str, Any]:
    """Return the rates of copies within a GPU, made in a process of their own."""
    command = [sys.executable, "-m", "cpufree.bench.core.device_copy"]
    command += map(str, (device, COPY_BYTES, ROUNDS))
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=for_worker(),
        start_new_session=True,
    ) as process:
        try:
            out, said = process.communicate(timeout=COPY_SECONDS)
        except subprocess.TimeoutExpired:
            return {"what": "copy", "error": f"it took more than {COPY_SECONDS:.0f} s"}
        finally:
            kill_session(process.pid)
    if process.returncode:
        return {"what": "copy", "error": said.strip()[-400:]}
    return {"what": "copy", "bytes_per_second": json.loads(out)["bytes_per_second"]}
