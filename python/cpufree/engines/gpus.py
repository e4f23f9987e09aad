"""The GPUs of this machine: which there are, which can be used, which are asked for."""

from __future__ import annotations

import operator
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cpufree.env import gpu_numbers
from cpufree.errors import EngineError, InvalidInputError, UnsupportedError
from cpufree.extension import load_core

# The kernels use instructions that came with compute capability 8.0 (Ampere).
LEAST_CAPABILITY = (8, 0)
# Of GPUs that the kernels have run on; for others they are compiled, which is all that is known.
TRIED_CAPABILITIES = ((9, 0),)
# Packages whose import or first use starts CUDA: it may run where one of them is loaded.
OTHERS_ON_GPUS = ("cupy", "jax", "numba.cuda", "torch")
# What is there once a driver is loaded: NVIDIA's on Linux and within Windows, AMD's.
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
# By the vendor whose GPUs this build has an engine for: what its runtime is called, what lists
# GPUs, and the variable that leaves some of them out.
RUNTIMES = {
    "NVIDIA": ("CUDA", "nvidia-smi", "CUDA_VISIBLE_DEVICES"),
    "AMD": ("HIP", "rocminfo", "HIP_VISIBLE_DEVICES"),
}
_asked = threading.Event()
INSTEAD = "leave the engine to 'auto', or choose 'cpu_threads'"


@dataclass(frozen=True)
class Gpu:
    """A GPU; `index` is the runtime's number, which counts what CUDA_VISIBLE_DEVICES leaves."""

    index: int
    name: str
    memory_bytes: int
    compute_capability: tuple[int, int]
    uuid: str = ""
    """The driver's name for it, which no other GPU of any machine has."""
    kind: str = ""
    """What kernels for it are called after where that is not its compute capability: gfx942."""

    @property
    def usable(self) -> bool:
        """Whether the engine cuda_p2p runs on it."""
        return self.compute_capability >= LEAST_CAPABILITY

    @property
    def tried(self) -> bool:
        """Whether the kernels have run on a GPU of this kind."""
        return not self.kind and self.compute_capability in TRIED_CAPABILITIES

    def free_bytes(self) -> int:
        """Return the memory that is free now; the runtime is started on the GPU for that.

        Raises EngineError where the GPU refuses contexts.
        """
        return int(load_core().gpu_free_bytes(self.index))

    def room(self) -> int:
        """Return the memory that is free now, 0 where the GPU refuses contexts."""
        try:
            return self.free_bytes()
        except EngineError:  # full, or another program's alone
            return 0

    @property
    def capability(self) -> str:
        """The compute capability as text, such as 9.0."""
        return ".".join(map(str, self.compute_capability))


def find() -> list[Gpu]:
    """Return all GPUs that the driver shows, by number; the first call starts the driver."""
    _asked.set()
    found = [
        Gpu(
            index=int(gpu["index"]),
            name=str(gpu["name"]),
            memory_bytes=int(gpu["memory_bytes"]),
            compute_capability=(
                int(gpu["compute_capability"][0]),
                int(gpu["compute_capability"][1]),
            ),
            uuid=str(gpu.get("uuid", "")),
            kind=str(gpu.get("kind", "")),
        )
        for gpu in load_core().gpus()
    ]
    return sorted(found, key=lambda gpu: gpu.index)


def driver_is_ahead() -> bool:
    """Return whether `find` would be the first to start a driver: that takes tenths of a second.

    Not where there is none, nor where a package that uses GPUs may have started it. Nothing is
    started.
    """
    running = _asked.is_set() or any(name in sys.modules for name in OTHERS_ON_GPUS)
    return not running and any(map(os.path.exists, DRIVERS))


def usable(there: Iterable[Gpu]) -> list[Gpu]:
    """Return those of the GPUs that the engine runs on."""
    return [gpu for gpu in there if gpu.usable]


def never_run(there: Iterable[Gpu]) -> str:
    """Return why `auto` leaves these GPUs alone, "" where it does not: kernels for AMD's GPUs have
    been compiled, and have never run on one.
    """
    kinds = sorted({gpu.kind for gpu in there if gpu.kind})
    if not kinds:
        return ""
    return (
        f"kernels for {' and '.join(kinds)} have never run on such a GPU: to try them, choose "
        "engine='cuda_p2p', and compare a first solve with cpu_threads"
    )


def absence(there: Sequence[Gpu]) -> str:
    """Return in a few words why no GPU can be used, "" where one can."""
    if usable(there):
        return ""
    if there:
        least = ".".join(map(str, LEAST_CAPABILITY))
        listed = ", ".join(f"GPU {gpu.index} ({gpu.name}) has {gpu.capability}" for gpu in there)
        return f"compute capability {least} or higher is needed, and {listed}"
    core = load_core()
    if not core.gpu_vendor():
        return "this build has no CUDA"
    return str(core.gpu_note()).rstrip(".") or f"{runtime()[0]} lists no GPU"


def runtime() -> tuple[str, str, str]:
    """Return name, command that lists GPUs and variable of the runtime that this build is for."""
    return RUNTIMES.get(load_core().gpu_vendor(), RUNTIMES["NVIDIA"])


def remedy(there: Sequence[Gpu]) -> str:
    """Return what to do where no GPU can be used, "" where nothing helps."""
    if there:
        return ""
    if load_core().gpu_vendor():
        return f"{runtime()[1]} shows what the driver sees, cpufree doctor what cpufree sees"
    return (
        "where CUDA's runtime is installed, rebuild in the source tree: "
        "pip install . -C cmake.define.CPUFREE_CUDA=ON"
    )


def require_usable(engine: str = "cuda_p2p") -> list[Gpu]:
    """Return the GPUs that an engine runs on; UnsupportedError where there is none."""
    there = find()
    problem = absence(there)
    if problem:
        ways_out = "; or ".join(filter(None, [remedy(there), INSTEAD]))
        raise UnsupportedError(f"engine '{engine}' cannot be used here: {problem}; {ways_out}")
    return usable(there)


def parse(value: Any) -> str | tuple[int, ...]:
    """Return what a user gives as gpus: "auto", "all", or device numbers.

    A number that is there several times is that of a GPU which as many PEs share.

    Raises:
        InvalidInputError: neither of these, a number alone, or an empty list.
    """
    if isinstance(value, str):
        try:
            return gpu_numbers(value)
        except ValueError as error:
            raise _refuse(value, str(error)) from None
    if isinstance(value, Iterable):
        listed = list(value)
        if not listed:
            raise _refuse(value, "no device is named")
        return tuple(_device_number(number, value) for number in listed)
    if hasattr(value, "__index__") and not isinstance(value, bool):
        number = operator.index(value)
        raise InvalidInputError(
            f"gpus is {number}, which is ambiguous: pes={number} asks for {number} GPUs, "
            f"gpus=[{number}] for device {number}"
        )
    raise _refuse(value, "that is no list")


def _device_number(number: Any, listed: Any) -> int:
    try:
        device = operator.index(number)
    except TypeError:
        raise _refuse(listed, f"{number!r} is no device number") from None
    if isinstance(number, bool) or device < 0:
        raise _refuse(listed, f"{number!r} is no device number")
    return device


def unrepeated(numbers: tuple[int, ...], name: str, why: str) -> tuple[int, ...]:
    """Return the numbers; InvalidInputError, which says why not, where one is there twice."""
    for number, times in Counter(numbers).items():
        if times > 1:
            raise InvalidInputError(
                f"{name} names device {number} {times} times: {why}, name each once"
            )
    return numbers


def shared(numbers: Iterable[int]) -> dict[int, int]:
    """Return the PEs on each GPU that several share.

    >>> shared([0, 0, 1, 1, 2])
    {0: 2, 1: 2}
    """
    return {number: pes for number, pes in Counter(numbers).items() if pes > 1}


def select(numbers: Iterable[int], there: Sequence[Gpu], name: str) -> list[Gpu]:
    """Return the GPUs with these numbers.

    Raises:
        InvalidInputError: there is none of that number. UnsupportedError: it cannot be used.
    """
    known = {gpu.index: gpu for gpu in there}
    chosen = []
    for number in numbers:
        if number not in known:
            raise InvalidInputError(
                f"{name} names device {number}, but this machine shows {runtime()[0]} "
                f"{spell(list(known))}. Numbers count what {runtime()[2]} leaves"
            )
        gpu = known[number]
        if not gpu.usable:
            raise UnsupportedError(f"engine 'cuda_p2p' cannot use GPU {number}: {absence([gpu])}")
        chosen.append(gpu)
    return chosen


def spell(numbers: Sequence[int]) -> str:
    """Return device numbers in words: "GPU 3", "GPUs 0-2, 5", "GPU 0 (shared by 2)", "no GPU"."""
    if not numbers:
        return "no GPU"
    if together := shared(numbers):
        each = (
            f"{n} (shared by {together[n]})" if n in together else f"{n}"
            for n in dict.fromkeys(numbers)
        )
        return f"GPU{'' if len(set(numbers)) == 1 else 's'} {', '.join(each)}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"GPU{'' if len(numbers) == 1 else 's'} {', '.join(parts)}"


def peer_problem(chosen: Iterable[Gpu]) -> str:
    """Return which two GPUs do not reach one another's memory, "" where all do."""
    numbers = [gpu.index for gpu in chosen]
    return str(load_core().peer_problem(numbers)) if len(numbers) > 1 else ""


def models(chosen: Iterable[Gpu]) -> str:
    """Return how many there are of each model: "4 × NVIDIA H200". One that PEs share is one."""
    counts = Counter(gpu.name for gpu in dict.fromkeys(chosen))
    return ", ".join(f"{count} × {name}" for name, count in counts.items())


def _refuse(value: Any, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"gpus is {value!r}: {why}. Give 'auto', 'all', device numbers such as [0, 2], or a text "
        "such as '0,2-5'"
    )
