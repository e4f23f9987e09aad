"""CUDA starts on GPUs that a system is sure to use while that is still being read or generated.

The driver and the context of a GPU take some tenths of a second, nearly all of it waiting. What is
wrong with a GPU is told where it is asked for later, as it is where nothing was started early.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any

from cpufree import options
from cpufree.engines import gpus
from cpufree.engines.asked import Asked
from cpufree.env import Env
from cpufree.extension import load_core

LARGE_FILE = 4 << 20
"""Bytes from which a file holds enough nonzeros that "auto" takes a GPU, whatever its format."""


def start_gpus(asked: Asked, env: Env, source: Any) -> threading.Thread | None:
    """Begin to start CUDA on GPUs that are sure to be used; None: none is.

    Args:
        asked: by the call. env: by the environment, where the call leaves it open.
        source: what names the matrix, if anything does: a small file may be for the CPU.

    Returns:
        The thread that does it, which ends by itself.
    """
    if not sure_of_gpus(asked, env, source):
        return None
    thread = threading.Thread(target=_start, args=(asked, env), daemon=True)
    thread.start()
    return thread


def sure_of_gpus(asked: Asked, env: Env, source: Any) -> bool:
    """Return whether GPUs are asked for by name, or will be taken if there are some."""
    engine = env.engine if asked.engine == "auto" else asked.engine
    if engine in ("cpu_threads", *options.DISTRIBUTED):
        return False
    if engine == "cuda_p2p" or asked.devices != "auto":
        return True
    if not isinstance(source, (str, os.PathLike)):
        return False
    with contextlib.suppress(OSError, ValueError):
        return os.path.getsize(source) >= LARGE_FILE
    return False


def _start(asked: Asked, env: Env) -> None:
    # Whatever is wrong is told to who asks for a GPU.
    with contextlib.suppress(Exception):
        there = [gpu.index for gpu in gpus.usable(gpus.find())]
        for number in numbers_of(asked, env, there):
            load_core().gpu_free_bytes(number)


def numbers_of(asked: Asked, env: Env, there: list[int]) -> list[int]:
    """Return the GPUs that are sure to be used, out of those there are: the first ones, if open."""
    named = asked.devices if asked.devices != "auto" else env.gpus
    pool = [n for n in there if isinstance(named, str) or n in named]
    if named != "auto":
        return pool
    pes = asked.pes if asked.pes != "auto" else env.pes
    return pool[: pes if isinstance(pes, int) else 1]
