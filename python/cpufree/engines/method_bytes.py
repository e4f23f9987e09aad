"""What an iteration of each method has to move between a GPU and its memory.

Passes over vectors are those that the headers of the solvers count (cpufree/solvers/cg.hpp,
prcg.hpp, pipelined_cg.hpp), vector by vector in the order in which they are kept on chip
(resident.hpp). A vector that stays on chip saves all of its passes.
"""

from __future__ import annotations

from collections.abc import Mapping

# Reads and writes of each private vector; what is exchanged is last, and is not kept on chip where
# rows are many. "d" is the inverse diagonal.
PASSES: Mapping[str, Mapping[str, int]] = {
    "cg": {"r": 3, "s": 2, "x": 2, "d": 2, "p": 3},
    "prcg": {"r": 3, "s": 2, "x": 2, "d": 2, "p": 3},
    "pipecg": {"r": 2, "s": 2, "x": 2, "d": 2, "w": 3, "z": 2, "n": 2, "p": 2, "m": 2},
}
EXCHANGED = ("p", "m")


def passes(method: str, pc: str, on_chip: int = 0) -> int:
    """Return the passes over vectors in memory, with so many of them on chip.

    Args:
        method: cg, prcg or pipecg.
        pc: "jacobi", or "none": then there is no diagonal, and pipecg's m is w.
        on_chip: private vectors that stay on chip.
    """
    counts = dict(PASSES[method])
    if pc == "none":
        counts.pop("d")
        counts.pop("m", None)
    private = [name for name in counts if name not in EXCHANGED]
    return sum(counts.values()) - sum(counts[name] for name in private[:on_chip])


def bytes_of_iteration(
    method: str, pc: str, rows: float, matrix: float, chip: float, value: int = 8
) -> float:
    """Return the bytes that one GPU moves in an iteration.

    Args:
        method, pc: as above.
        rows: of the GPU. matrix: bytes of its part of A, in its format, read from memory.
        chip: bytes on chip for vectors.
        value: bytes of a value.
    """
    on_chip = int(chip // (rows * value)) if rows else 0
    return matrix + passes(method, pc, on_chip) * rows * value


def extra_bytes(rows: float, pc: str, value: int = 8) -> float:
    """Return what pipecg moves beyond prcg, nothing on chip."""
    return (passes("pipecg", pc) - passes("prcg", pc)) * rows * value
