"""A process of a way of NVSHMEM: `python -m cpufree.model.ways.nvshmem_peer`.

It reads JSON lines and answers each with one: "identify" with an identity of the pair, "rank" once
both have started, "order", arguments of HostWay.times, with the seconds that rank 0 measures. It
ends, without what NVSHMEM does at an end, when there are no more lines.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from cpufree.env import preset_remote
from cpufree.errors import CpufreeError
from cpufree.extension import load_gpu_core


def serve() -> None:
    """Carry out orders until there are no more."""
    preset_remote("nvshmem", one_machine=True)
    core = load_gpu_core()
    way: Any = None
    for line in sys.stdin:
        given = json.loads(line)
        answer: dict[str, Any] = {}
        if "identify" in given:
            answer["identity"] = core.nvshmem_id(given["library"]).hex()
        elif "rank" in given:
            way = core.HostWay(
                given["way"], [given["gpu"]], given["bytes"], given["library"],
                bytes.fromhex(given["identity"]), given["kernels"], given["rank"],
            )  # fmt: skip
        elif "order" in given:
            answer["seconds"] = way.times(*given["order"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    try:
        serve()
    except CpufreeError as error:
        print(json.dumps({"error": f"says: {error}"}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # its partner may be gone, and NVSHMEM would wait for it
