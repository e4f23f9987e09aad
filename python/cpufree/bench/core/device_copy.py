"""How fast a GPU copies its own memory: bytes per second, read and written.

    python -m cpufree.bench.core.device_copy DEVICE BYTES ROUNDS

prints the rates as JSON; the memory is freed with the process.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import importlib
import json
import site
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

COPIES = 5  # in a row, in one measurement


def measure_copy(engine: str, device: int, size: int, rounds: int) -> dict[str, Any]:
    """Return the raw bytes per second, read and written, of copies of `size` bytes on a device."""
    makers = COPIERS if engine == "cuda_p2p" else {"numpy": numpy_copier}
    missing = []
    for name, make in makers.items():
        try:
            copy = make(device, size)
        except Exception as error:  # the next may do: libraries fail in many ways
            missing.append(f"{name}: {type(error).__name__}: {error}")
            continue
        copy()  # warms up
        rates = []
        for _ in range(rounds):
            begin = time.perf_counter()
            copy()
            rates.append(2 * size * COPIES / (time.perf_counter() - begin))
        return {"device": device, "by": name, "bytes": size, "bytes_per_second": rates}
    raise RuntimeError("nothing here that copies on a GPU: " + "; ".join(missing))


def cupy_copier(device: int, size: int) -> Callable[[], None]:
    """Return a function that copies COPIES times and waits for the end."""
    cupy: Any = importlib.import_module("cupy")
    with cupy.cuda.Device(device):
        source, target = (cupy.zeros(size, cupy.uint8) for _ in range(2))

    def copy() -> None:
        with cupy.cuda.Device(device) as here:
            for _ in range(COPIES):
                target.data.copy_from_device_async(source.data, size)
            here.synchronize()

    return copy


def torch_copier(device: int, size: int) -> Callable[[], None]:
    """Return the same by PyTorch."""
    torch: Any = importlib.import_module("torch")
    source, target = (
        torch.zeros(size, dtype=torch.uint8, device=f"cuda:{device}") for _ in range(2)
    )

    def copy() -> None:
        for _ in range(COPIES):
            target.copy_(source)
        torch.cuda.synchronize(device)

    return copy


def find_cudart() -> str:
    """Return the CUDA runtime library; OSError where there is none."""
    found = ctypes.util.find_library("cudart")
    if found is not None:
        return found
    wheels = [f"{folder}/nvidia/*/lib/libcudart.so*" for folder in site.getsitepackages()]
    for pattern in ("/usr/local/cuda*/lib64/libcudart.so*", *wheels):
        if files := sorted(glob.glob(pattern)):
            return files[-1]
    raise OSError("libcudart was not found")


def cudart_copier(device: int, size: int) -> Callable[[], None]:
    """Return the same by the CUDA runtime itself."""
    library = ctypes.CDLL(find_cudart())

    def call(name: str, *arguments: Any) -> None:
        status = getattr(library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name} returned {status}")

    call("cudaSetDevice", device)
    source, target = ctypes.c_void_p(), ctypes.c_void_p()
    for pointer in (source, target):  # freed with the process
        call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(size))

    def copy() -> None:
        call("cudaSetDevice", device)
        for _ in range(COPIES):
            call("cudaMemcpyAsync", target, source, ctypes.c_size_t(size), 3, None)  # 3: on device
        call("cudaDeviceSynchronize")

    return copy


def numpy_copier(device: int, size: int) -> Callable[[], None]:
    """Return the same in the memory of the host, for runs on the CPU engine."""
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)

    def copy() -> None:
        for _ in range(COPIES):
            np.copyto(target, source)

    return copy


COPIERS = {"cupy": cupy_copier, "torch": torch_copier, "cudart": cudart_copier}


if __name__ == "__main__":
    print(json.dumps(measure_copy("cuda_p2p", *map(int, sys.argv[1:4]))))
