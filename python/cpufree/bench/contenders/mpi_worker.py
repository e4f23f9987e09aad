"""The contenders `mpi` and `nccl_mpi`: one process for each GPU.

    mpirun -n P python -m cpufree.bench.contenders.mpi_worker KIND

Rank 0 speaks: it reads requests from stdin and answers on stdout, as every contender does. Each
request that concerns the solver goes to all ranks, which make the same calls of the extension.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.extension import load_part


def load_extension() -> ModuleType:
    """Return the extension; UnsupportedError where it does not load."""
    otherwise = (
        "they need CUDA and an MPI: install one (apt install libopenmpi-dev openmpi-bin) and run "
        "make gpu"
    )
    return load_part("_baselines_mpi", "baselines over MPI", otherwise)


class Rank:
    """What one process does, the same on all of them."""

    def __init__(self, extension: Any, kind: str) -> None:
        self._extension, self._kind = extension, kind
        self._baseline: Any = None
        self._b: Any = None

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Read the problem and lay it out; return facts."""
        self.close()
        begin = time.perf_counter()

        def read(name: str) -> Any:
            path = folder / f"{name}.npy"
            if name in ("part", "order") and not path.exists():
                return None
            return np.array(np.load(path, mmap_mode="r"))

        self._baseline = self._extension.Baseline(
            self._kind,
            *map(read, ("indptr", "indices", "data", "part", "order")),
            int(options["pes"]),
            list(options.get("gpus") or [])[: int(options["pes"])],
            str(options["preconditioner"]),
            dict(options.get("tuning") or {}),
        )
        self._b = read("b")
        return {"setup_seconds": time.perf_counter() - begin, **self._baseline.facts()}

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve; rank 0 writes x."""
        if self._baseline is None:
            raise InvalidInputError("solve was asked for before load")
        exact = request.get("iterations")
        x = np.zeros_like(self._b)
        answer = self._baseline.solve(
            self._b,
            request["method"],
            float(request.get("rtol") or 0.0),
            int(request["max_iterations"] if exact is None else exact),
            exact is not None,
            request.get("variant", "full"),
            x,
        )
        if request.get("save") and self._extension.rank() == 0:
            np.save(request["save"], x)
        return {"split": None, **answer}

    def close(self) -> None:
        """Free the baseline."""
        self._baseline = self._b = None


class Everybody:
    """The contender that rank 0 serves: has all ranks do what it does."""

    def __init__(self, extension: Any, kind: str) -> None:
        self.name = kind
        self._extension = extension
        self._mine = Rank(extension, kind)

    def _announce(self, what: str, **content: Any) -> None:
        self._extension.broadcast(json.dumps({"do": what, **content}))

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Load on all ranks."""
        self._announce("load", folder=str(folder), options=options)
        return self._mine.load(folder, options)

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve on all ranks."""
        self._announce("solve", request=request)
        return self._mine.solve(request)

    def close(self) -> None:
        """Free the baseline on all ranks."""
        self._announce("close")
        self._mine.close()


def follow(extension: Any, kind: str) -> None:
    """Do what rank 0 announces, until it says quit. Errors that all ranks meet are rank 0's."""
    mine = Rank(extension, kind)
    while True:
        request = json.loads(extension.broadcast(""))
        try:
            if request["do"] == "quit":
                return
            if request["do"] == "load":
                mine.load(Path(request["folder"]), request["options"])
            elif request["do"] == "solve":
                mine.solve(request["request"])
            else:
                mine.close()
        except Exception:  # rank 0 has met it too, and answers; or its deadline ends the job
            traceback.print_exc()


def main(arguments: Sequence[str]) -> int:
    """Serve on rank 0, follow on the others; return the exit status."""
    if len(arguments) != 1:
        print(
            "usage: mpirun -n P python -m cpufree.bench.contenders.mpi_worker KIND", file=sys.stderr
        )
        return 2
    kind = arguments[0]
    try:
        extension = load_extension()
    except UnsupportedError as error:
        print(f"mpi_worker: {error}", file=sys.stderr)
        return 2
    if extension.rank() != 0:
        os.dup2(2, 1)  # stdout is for answers
        follow(extension, kind)
        return 0
    try:
        importlib.import_module("cpufree.bench.worker").serve(Everybody(extension, kind))
    except BaseException:
        extension.abort(1)  # the others would wait for a word forever
        raise
    extension.broadcast(json.dumps({"do": "quit"}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
