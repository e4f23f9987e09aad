"""The contender `nvshmem` of the stencils: one process for each GPU, started for each grid."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.contenders.nvshmem import OWN_BYTES
from cpufree.bench.contenders.nvshmem_contender import NvshmemProcesses
from cpufree.bench.stencil.problem import checksum, first_values, read_folder

RANK = (sys.executable, "-m", "cpufree.bench.stencil.nvshmem_rank")
LINE = 128  # bytes: rows begin on lines of memory


def heap_bytes(shape: Sequence[int], value_bytes: int, pes: int) -> int:
    """Return bytes of symmetric memory that suffice for the slabs of a grid on N PEs.

    Two copies of the planes of the largest slab, with a ghost plane on either side.
    """
    planes = -(-shape[0] // pes) + 2
    row = -(-shape[-1] * value_bytes // LINE) * LINE
    rows = shape[1] if len(shape) == 3 else 1
    return 2 * planes * rows * row + OWN_BYTES


class NvshmemSolver(NvshmemProcesses):
    """The baseline, on as many processes as there are PEs."""

    name = "nvshmem"

    def rank_program(self) -> Sequence[str]:
        """Return the command of a rank."""
        return RANK

    def heap_bytes(self, folder: Path, pes: int) -> int:
        """Return bytes for the slabs."""
        start = read_folder(folder, mapped=True)
        return heap_bytes(start.shape, start.itemsize, pes)

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do the iterations of a request; `check`: return the checksum of the values too."""
        if not request.get("check"):
            return self._answer(request, None)
        self._ranks_there()
        # Beside the first values, where there is room for as many. Ranks write their planes into a
        # copy of them: what is fixed at the boundary stays.
        with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
            file = Path(scratch) / "values.npy"
            shutil.copyfile(first_values(self._folder), file)
            answer = self._answer(request, file)
            return {**answer, "checksum": checksum(np.load(file, mmap_mode="r"))}

    def _answer(self, request: dict[str, Any], save: Path | None) -> dict[str, Any]:
        answers = self.ask({**request, "save": None if save is None else str(save)})
        return {key: value for key, value in answers[0].items() if key != "ok"}
