"""The process whose memory host-ipc writes to: `python -m cpufree.model.ways.ipc_peer GPU BYTES`.

It prints "handle" and the handle of its memory in hexadecimal, or "error" and what is wrong, and
ends when its input does.
"""

from __future__ import annotations

import sys

from cpufree.errors import CpufreeError
from cpufree.extension import load_gpu_core


def serve(gpu: int, size: int) -> None:
    """Keep memory until there is no more input."""
    memory = load_gpu_core().IpcMemory(gpu, size)
    print("handle", memory.handle().hex(), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    try:
        serve(int(sys.argv[1]), int(sys.argv[2]))
    except CpufreeError as error:
        print("error", str(error).replace("\n", " "), flush=True)
        sys.exit(1)
