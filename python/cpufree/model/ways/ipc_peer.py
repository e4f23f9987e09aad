"""The process whose memory host-ipc writes to: `python -m cpufree.model.ways.ipc_peer GPU BYTES`.

It answers each line with the handle of its memory, or with what is wrong, and ends when there are
no more lines.
"""

from __future__ import annotations

import json
import sys

from cpufree.errors import CpufreeError
from cpufree.extension import load_gpu_core


def serve(gpu: int, size: int) -> None:
    """Keep memory until there is no more input."""
    memory = load_gpu_core().IpcMemory(gpu, size)
    for _ in sys.stdin:
        print(json.dumps({"handle": memory.handle().hex()}), flush=True)


if __name__ == "__main__":
    try:
        serve(int(sys.argv[1]), int(sys.argv[2]))
    except CpufreeError as error:
        print(json.dumps({"error": f"says: {error}"}), flush=True)
        sys.exit(1)
