"""The process of the other PE of a probe: `python -m cpufree.model.ways.probe_peer BYTES`.

It reads JSON lines and answers each with one: {"address": [process, file]} with its own, then
{"connected": true}, then {"order": arguments of Probe.run} as often as wanted. It ends when there
are no more lines.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from cpufree.errors import CpufreeError
from cpufree.extension import load_core


def serve(window_bytes: int) -> None:
    """Carry out orders until there are no more."""
    probe = load_core().Probe(2, 1, window_bytes, 1)
    for line in sys.stdin:
        given = json.loads(line)
        answer: dict[str, Any] = {}
        if "address" in given:
            probe.connect([tuple(given["address"]), probe.address()])
            answer["address"] = probe.address()
        elif "order" in given:
            probe.run(*given["order"])
            answer["disturbances"] = probe.disturbances()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    try:
        serve(int(sys.argv[1]))
    except CpufreeError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(1)
